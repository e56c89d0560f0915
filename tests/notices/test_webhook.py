"""Callers elsewhere are told, signed, once it matters; and what cannot be told stays visible."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import clearance
from clearance.adapters import foreign
from clearance.adapters.proposal import Proposal
from clearance.notices.targets import Allowed
from clearance.notices.webhook import PAUSES, Courier, new_secret, sign
from clearance.people import Person
from clearance.store import callbacks
from clearance.store.callbacks import Callback
from clearance.store.database import Database
from clearance.workspace import Clearance
from tests.notices.conftest import Heard

pytestmark = pytest.mark.sqlite_by_day

AGENT = Person("ann", "ann")
LOOPBACK = Allowed.read("127.0.0.0/8")


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """An open workspace without a worker: each test sends for itself."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as opened:
        yield opened


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(workspace: Clearance) -> Clock:
    """A clock that stands a minute after the workspace was opened, until it is moved."""
    with workspace.database.read() as tx:
        return Clock(workspace.database.now(tx) + timedelta(minutes=1))


@pytest.fixture
def courier(clock: Clock, migrated_database_url: str) -> Iterator[Courier]:
    """A courier that may reach loopback, and whose time is moved."""
    database = Database(migrated_database_url, clock=clock)
    yield Courier(database, LOOPBACK)
    database.close()


def proposed(workspace: Clearance, url: str) -> Callback:
    """Propose a call that wants to be told about, let it be approved, and return where it is told."""
    made = Callback("", url, new_secret(), created_at=datetime(2026, 3, 1, tzinfo=UTC))
    proposal = Proposal("m-1", "send", '{"to": "ana"}', {"type": "object"})
    standing = foreign.propose(workspace, proposal, by=AGENT, callback=made)
    review = standing.pending
    assert review is not None
    workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=1)
    return kept(workspace)


def kept(workspace: Clearance) -> Callback:
    """Return what is known of the address."""
    with workspace.database.write() as tx:
        found = callbacks.of_run(tx, "ann:m-1")
        assert found is not None
        return found


def test_the_signature_is_that_of_the_specification() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body='{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_caller_is_told_once_and_signed(
    workspace: Clearance, courier: Courier, elsewhere: Heard, clock: Clock
) -> None:
    callback = proposed(workspace, elsewhere.address)
    assert (courier.turn(), courier.turn()) == (1, 0)
    [(headers, body)] = elsewhere.messages
    assert json.loads(body)["data"] == {
        "key": "m-1",
        "state": "cleared",
        "may_take": True,
        "review_id": "ann:m-1/1/1",
    }
    assert headers["webhook-signature"] == sign(
        callback.secret,
        message_id=headers["webhook-id"],
        timestamp=int(headers["webhook-timestamp"]),
        body=body,
    )
    assert abs(int(headers["webhook-timestamp"]) - clock.now.timestamp()) < 2
    assert kept(workspace).delivered_at == clock.now


def test_what_is_sent_holds_no_argument(workspace: Clearance, courier: Courier, elsewhere: Heard) -> None:
    proposed(workspace, elsewhere.address)
    courier.turn()
    assert "ana" not in str(elsewhere.messages)


def test_a_failure_is_tried_again_later_and_then_given_up(
    workspace: Clearance, courier: Courier, elsewhere: Heard, clock: Clock
) -> None:
    elsewhere.answers = [500] * (len(PAUSES) + 1)
    proposed(workspace, elsewhere.address)
    for number, pause in enumerate(PAUSES, start=1):
        assert courier.turn() == 1
        assert (kept(workspace).tries, kept(workspace).error) == (number, "It answered 500.")
        clock.now += timedelta(seconds=pause - 1)
        assert courier.turn() == 0
        clock.now += timedelta(seconds=1)
    assert courier.turn() == 1
    clock.now += timedelta(days=30)
    assert courier.turn() == 0
    with workspace.database.read() as tx:
        assert [each.run_id for each in callbacks.given_up(tx, limit=5)] == ["ann:m-1"]


def test_a_second_try_that_arrives_ends_it(
    workspace: Clearance, courier: Courier, elsewhere: Heard, clock: Clock
) -> None:
    elsewhere.answers = [503]
    proposed(workspace, elsewhere.address)
    courier.turn()
    clock.now += timedelta(seconds=PAUSES[0])
    courier.turn()
    assert [headers["webhook-id"] for headers, _ in elsewhere.messages] == ["ann:m-1/cleared/1"] * 2
    assert (kept(workspace).error, kept(workspace).due_at) == (None, None)


def test_a_redirect_is_not_followed(workspace: Clearance, courier: Courier, elsewhere: Heard) -> None:
    elsewhere.answers = [302]
    proposed(workspace, elsewhere.address)
    courier.turn()
    assert len(elsewhere.messages) == 1
    assert kept(workspace).error == "It answered 302."


def test_nothing_is_sent_to_an_address_that_is_not_public(
    workspace: Clearance, courier: Courier, elsewhere: Heard
) -> None:
    proposed(workspace, elsewhere.address)
    assert Courier(courier.database).turn() == 1
    assert elsewhere.messages == []
    assert "not public" in str(kept(workspace).error)


def test_a_name_that_turns_private_after_it_was_checked_is_not_reached(
    workspace: Clearance, courier: Courier, elsewhere: Heard
) -> None:
    port = elsewhere.address.split(":")[2].split("/")[0]
    proposed(workspace, f"http://hooks.example.org:{port}/")
    answers = iter([["127.0.0.1"]])
    rebinding = Courier(courier.database, resolve=lambda _host, _port: next(answers))
    assert rebinding.turn() == 1
    assert elsewhere.messages == []


def test_a_decision_that_comes_while_a_message_is_sent_is_told_too(
    workspace: Clearance, courier: Courier, elsewhere: Heard, clock: Clock
) -> None:
    proposed(workspace, elsewhere.address)
    database = courier.database

    def resolve(_host: str, _port: int) -> list[str]:
        with database.write() as tx:
            callbacks.due(tx, "ann:m-1", now=clock.now)
        return ["127.0.0.1"]

    Courier(database, LOOPBACK, resolve=resolve).turn()
    assert courier.turn() == 1
    assert len(elsewhere.messages) == 2


def test_two_couriers_send_a_message_once(workspace: Clearance, courier: Courier, elsewhere: Heard) -> None:
    proposed(workspace, elsewhere.address)
    other = Courier(courier.database, LOOPBACK)

    def resolve(_host: str, _port: int) -> list[str]:
        assert other.turn() == 0
        return ["127.0.0.1"]

    assert Courier(courier.database, LOOPBACK, resolve=resolve).turn() == 1
    assert len(elsewhere.messages) == 1
