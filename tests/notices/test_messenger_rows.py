"""What is to be sent is not lost and not sent twice: among many workers, and where one of them is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clearance import turns
from clearance.audit import AuditKind
from clearance.channel import ChannelKind
from clearance.notices.channels import remove_channel
from clearance.notices.messenger import LEASE, PER_MINUTE, Messenger
from clearance.notices.webhook import PAUSES
from clearance.review import ReviewStatus
from clearance.store import channels, deliveries, retention
from clearance.store.database import Database
from clearance.store.deliveries import DeliveryStatus
from tests.house.sources import ROOT
from tests.notices.conftest import Heard
from tests.notices.mail import Mail
from tests.notices.office import LOOPBACK, Office, opened
from tests.notices.visiting import visiting
from tests.web.live import LONG

_WORK = """
import sys
import threading
import clearance
with clearance.open(sys.argv[1], home=sys.argv[2]):
    threading.Event().wait()
"""


@pytest.fixture
def office(migrated_database_url: str, tmp_path: Path) -> Iterator[Office]:
    """An office with ann, ben and cleo, in which nobody is told of anything yet."""
    with opened(migrated_database_url, tmp_path) as found:
        yield found


def test_messengers_at_the_same_time_send_each_message_once(
    office: Office, elsewhere: Heard, migrated_database_url: str
) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    for _ in range(12):
        office.ask()
    databases = [Database(migrated_database_url, clock=lambda: office.now) for _ in range(4)]
    messengers = [Messenger(each, office.messenger.linking, LOOPBACK) for each in databases]
    ready = threading.Barrier(len(messengers))

    def work(messenger: Messenger) -> None:
        ready.wait()
        while messenger.turn():
            pass

    threads = [threading.Thread(target=work, args=(each,)) for each in messengers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        database.close()
    ids = [headers["webhook-id"] for headers, _ in elsewhere.messages]
    assert len(ids) == len(set(ids)) == 12


def test_what_was_decided_meanwhile_is_not_told(office: Office, mail: Mail) -> None:
    office.channel(mail.address())
    review = office.ask()
    office.workspace.gate.decide(review.id, [{"type": "approve"}], by="cleo", version=1)
    office.turn()
    assert mail.messages == []
    assert [each.status for each in office.deliveries()] == [DeliveryStatus.OVERTAKEN]


def test_what_never_arrives_is_given_up_and_said_in_the_trail(office: Office, elsewhere: Heard) -> None:
    elsewhere.answers = [500] * (len(PAUSES) + 1)
    channel = office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    review = office.ask()
    for pause in (*PAUSES, 0):
        assert office.turn() == 1
        office.pass_time(seconds=pause)
    office.pass_time(days=30)
    assert office.turn() == 0
    [delivery] = office.deliveries()
    assert (delivery.status, delivery.error) == (DeliveryStatus.UNDELIVERED, "It answered 500.")
    entry = office.trail()[-1]
    assert (entry.kind, entry.subject) == (AuditKind.NOTICE_UNDELIVERED, channel.id)
    assert entry.facts["about"] == review.id


def test_a_worker_that_is_killed_while_it_sends_leaves_the_message_to_another(
    office: Office, elsewhere: Heard, migrated_database_url: str, tmp_path: Path
) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    review = office.ask()
    elsewhere.held.clear()
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORK, migrated_database_url, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CLEARANCE_WEBHOOK_ALLOW": "127.0.0.0/8"},
    )
    assert elsewhere.came.wait(60)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    elsewhere.held.set()
    [delivery] = office.deliveries()
    assert (delivery.status, delivery.tries) == (DeliveryStatus.WAITING, 0)
    assert office.turn() == 0
    office.pass_time(seconds=LEASE.total_seconds())
    assert office.turn() == 1
    assert len({headers["webhook-id"] for headers, _ in elsewhere.messages}) == 1
    assert len(elsewhere.messages) == 2
    assert [each.subject for each in office.deliveries()] == [review.id]
    assert office.deliveries()[0].status is DeliveryStatus.DELIVERED


def test_what_was_claimed_and_never_sent_is_sent_when_the_lease_is_over(
    office: Office, elsewhere: Heard
) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    office.ask()
    office.messenger.read_on()
    with office.messenger.database.write() as tx:
        assert len(office.messenger.claim(tx)) == 1
    assert office.turn() == 0
    office.pass_time(minutes=10)
    assert office.turn() == 1
    assert len(elsewhere.messages) == 1


def test_reading_and_noting_what_is_to_be_sent_are_one_transaction(office: Office, elsewhere: Heard) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    office.ask()
    office.number()

    def fail() -> None:
        with office.messenger.database.write() as tx:
            deliveries.move_reader(tx, 10_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert office.turn() == 1


def test_an_entry_makes_one_message_however_often_it_is_read(office: Office, elsewhere: Heard) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    office.ask()
    office.turn()
    with office.messenger.database.write() as tx:
        deliveries.move_reader(tx, 0)
    assert office.turn() == 0
    assert len(elsewhere.messages) == 1


def test_a_flood_of_webhooks_is_sent_whole(office: Office, elsewhere: Heard) -> None:
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    for _ in range(PER_MINUTE + 7):
        office.ask()
    until = time.monotonic() + LONG
    # A try that a busy machine cuts off is made again a little later.
    while office.turn() or (office.waits() and time.monotonic() < until):
        pass
    assert len({headers["webhook-id"] for headers, _ in elsewhere.messages}) == PER_MINUTE + 7


def test_a_channel_goes_with_all_that_it_had_to_send(office: Office, elsewhere: Heard) -> None:
    channel = office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    office.ask()
    office.messenger.read_on()
    remove_channel(office.workspace.database, channel.name, by="ann")
    assert office.turn() == 0
    assert office.deliveries() == []
    with office.workspace.database.read() as tx:
        assert channels.listed(tx) == []


def test_two_presses_at_the_same_moment_decide_once(migrated_database_url: str, tmp_path: Path) -> None:
    with visiting(migrated_database_url, tmp_path) as visit:
        review = visit.office.ask()
        token = visit.token(review)
        ready = threading.Barrier(6)

        def press(number: int) -> int:
            ready.wait()
            return visit.press(token, "approve" if number % 2 else "reject").status_code

        with ThreadPoolExecutor(6) as people:
            codes = sorted(people.map(press, range(6)))
        assert codes == [200, 410, 410, 410, 410, 410]
        after = visit.review(review)
        assert after.status is ReviewStatus.SETTLED
        assert len(after.calls[0].decisions) == 1
        assert [each.kind for each in visit.office.trail()].count(AuditKind.REVIEW_DECIDED) == 1


def test_retention_forgets_the_messages_and_links_of_a_thread(
    migrated_database_url: str, tmp_path: Path, elsewhere: Heard
) -> None:
    with visiting(migrated_database_url, tmp_path) as visit:
        office = visit.office
        office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
        gone, kept = office.ask(), office.ask()
        token, other = visit.token(gone), visit.token(kept)
        office.turn()
        turns.cancel(office.workspace.ledger, gone.run_id, by="ann", reason="No longer.")
        with office.workspace.database.write() as tx:
            retention.empty(tx, gone.thread_id, now=office.now)
        assert [each.subject for each in office.deliveries()] == [kept.id]
        assert (visit.look(token).status_code, visit.look(other).status_code) == (404, 200)
