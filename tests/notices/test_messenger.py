"""People are told of what waits for them: those who may decide, once, without arguments, and at last."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from clearance.audit import AuditKind
from clearance.channel import ChannelKind, Event, Serves
from clearance.notices.channels import set_enabled
from clearance.notices.messenger import PER_MINUTE, Messenger
from clearance.notices.webhook import PAUSES
from clearance.people import Person, Role
from clearance.policy import Escalation, Policy, Risk, Rule, Threshold
from clearance.program import Program
from clearance.store import audit, people
from clearance.store.deliveries import DeliveryStatus
from clearance.toolcall import Tool
from tests.notices.conftest import Heard
from tests.notices.mail import Mail, free_port, serving
from tests.notices.office import PUBLIC, Office, opened

pytestmark = pytest.mark.sqlite_by_day

SECRET = '{"to":"geheimnis@example.org"}'


@pytest.fixture
def office(migrated_database_url: str, tmp_path: Path) -> Iterator[Office]:
    """An office with ann, ben and cleo, in which nobody is told of anything yet."""
    with opened(migrated_database_url, tmp_path) as found:
        yield found


def test_a_reviewer_gets_a_mail_that_names_the_review_and_no_argument(office: Office, mail: Mail) -> None:
    office.channel(mail.address())
    review = office.ask(("send", SECRET))
    assert (office.turn(), office.turn()) == (1, 0)
    [text] = mail.texts
    assert review.id in text
    assert f"{PUBLIC}/reviews/{review.id}" in text
    assert "send" in text
    assert "ann" in text
    assert "geheimnis" not in text
    assert f"{len(SECRET)} characters, not in this message" in text
    assert mail.messages[0]["to"] == "ben@example.org"
    assert mail.names == ["robot"]
    assert [each.status for each in office.deliveries()] == [DeliveryStatus.DELIVERED]


def test_who_asked_is_not_asked_to_decide(office: Office, mail: Mail) -> None:
    office.channel(mail.address(), whom="ann")
    office.ask()
    assert office.turn() == 0
    assert office.deliveries() == []


def test_only_who_may_decide_is_told(office: Office, mail: Mail) -> None:
    office.channel(mail.address(to="ben@example.org"), whom="ben")
    office.channel(mail.address(to="cleo@example.org"), whom="cleo")
    office.ask_finance()
    office.turn()
    assert [each["to"] for each in mail.messages] == ["cleo@example.org"]


def test_a_channel_of_a_group_gets_one_message_and_no_personal_link(office: Office, elsewhere: Heard) -> None:
    address = elsewhere.address.replace("http://", "json://")
    office.channel(address, serves=Serves.GROUP, whom="finance")
    office.channel(address, serves=Serves.GROUP, whom="legal")
    office.ask_finance()
    office.turn()
    [(_, body)] = elsewhere.messages
    assert "send" in json.loads(body)["message"]
    assert "/l/" not in body


def test_a_channel_takes_the_events_and_risks_that_it_is_for(office: Office, mail: Mail) -> None:
    office.channel(mail.address(), events=(Event.EXPIRED,))
    office.channel(mail.address(to="high@example.org"), min_risk=Risk.HIGH)
    office.ask()
    office.ask(("pay", '{"amount":1}'))
    office.turn()
    assert [each["to"] for each in mail.messages] == ["high@example.org"]


def test_a_webhook_is_signed_as_an_independent_library_checks_it(office: Office, elsewhere: Heard) -> None:
    channel = office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK, serves=Serves.ROLE, whom="reviewer")
    review = office.ask(("send", SECRET))
    office.turn()
    [(headers, body)] = elsewhere.messages
    assert channel.secret is not None
    told = Webhook(channel.secret).verify(body, headers)
    assert told["type"] == "notice.asked"
    assert told["data"]["review_id"] == review.id
    assert told["data"]["tools"] == ["send"]
    assert "geheimnis" not in body


def test_a_redirect_to_this_machine_is_not_followed(office: Office, elsewhere: Heard) -> None:
    elsewhere.answers = [302, 307, 302, 307]
    office.channel(elsewhere.address, kind=ChannelKind.WEBHOOK)
    office.channel(elsewhere.address.replace("http://", "json://") + "?redirect=yes")
    office.ask()
    office.turn()
    assert len(elsewhere.messages) == 2
    assert {each.status for each in office.deliveries()} == {DeliveryStatus.WAITING}


@pytest.mark.parametrize("scheme", ["json", "form", "xml", "mmost", "gotify", "mailto"])
def test_no_service_of_apprise_reaches_what_is_not_public(
    office: Office, elsewhere: Heard, mail: Mail, scheme: str
) -> None:
    port = elsewhere.address.split(":")[2].split("/")[0]
    address = mail.address() if scheme == "mailto" else f"{scheme}://127.0.0.1:{port}/aaaaaaaaaaaaaaa"
    office.channel(address.replace("127.0.0.1", "localhost"))
    office.ask()
    Messenger(office.messenger.database, office.messenger.linking).turn()
    assert (elsewhere.messages, mail.messages) == ([], [])
    [delivery] = office.deliveries()
    assert "not public" in str(delivery.error)


def test_a_mail_server_that_is_away_for_a_while_loses_nothing(office: Office) -> None:
    away = Mail(free_port())
    office.channel(away.address())
    office.ask()
    office.turn()
    [delivery] = office.deliveries()
    assert (delivery.status, delivery.tries) == (DeliveryStatus.WAITING, 1)
    assert office.turn() == 0
    office.pass_time(seconds=PAUSES[0])
    with serving(away):
        assert office.turn() == 1
    assert len(away.messages) == 1
    assert office.deliveries()[0].status is DeliveryStatus.DELIVERED


def test_an_address_is_in_no_trail_error_or_representation(office: Office) -> None:
    away = Mail(free_port())
    channel = office.channel(away.address(secret="ganz-geheim"))
    office.ask()
    office.turn()
    said = [repr(channel), channel.shown_address, str(office.deliveries()), str(office.trail())]
    assert not any("ganz-geheim" in each for each in said)


def test_who_was_disabled_meanwhile_is_not_told(office: Office, mail: Mail) -> None:
    office.channel(mail.address())
    office.ask()
    with office.workspace.database.write() as tx:
        people.disable(tx, "ben")
    office.turn()
    assert mail.messages == []


def test_who_asked_is_told_that_it_was_decided_when_they_want_that(office: Office, mail: Mail) -> None:
    office.channel(mail.address(), whom="ann", events=(Event.SETTLED,))
    review = office.ask()
    office.workspace.gate.decide(review.id, [{"type": "approve"}], by="cleo", version=1)
    office.turn()
    assert "Decided" in mail.texts[0]


def test_a_flood_becomes_a_few_messages_the_last_of_which_counts_the_others(
    office: Office, mail: Mail
) -> None:
    office.channel(mail.address())
    for _ in range(PER_MINUTE + 7):
        office.ask()
    while office.turn():
        pass
    assert len(mail.messages) == PER_MINUTE
    assert [text for text in mail.texts if "7 more wait" in text]
    assert {each.status for each in office.deliveries()} == {DeliveryStatus.DELIVERED}


def test_what_comes_within_the_minute_is_told_together_after_it(office: Office, mail: Mail) -> None:
    office.channel(mail.address())
    for _ in range(PER_MINUTE):
        office.ask()
    assert office.turn() == PER_MINUTE
    for _ in range(3):
        office.ask()
    assert office.turn() == 0
    office.pass_time(seconds=61)
    assert office.turn() == 3
    assert len(mail.messages) == PER_MINUTE + 3


def test_a_channel_that_is_disabled_sends_again_once_it_is_enabled(office: Office, mail: Mail) -> None:
    channel = office.channel(mail.address())
    office.ask()
    office.number()
    office.messenger.read_on()
    set_enabled(office.workspace.database, channel.name, enabled=False, by="ann")
    assert office.turn() == 0
    set_enabled(office.workspace.database, channel.name, enabled=True, by="ann")
    assert office.turn() == 1


def test_a_channel_is_not_told_of_what_was_before_it(office: Office, mail: Mail) -> None:
    office.ask()
    office.turn()
    office.channel(mail.address())
    assert office.turn() == 0


def test_what_happened_before_the_first_turn_is_told(office: Office, mail: Mail) -> None:
    office.channel(mail.address())
    office.ask()
    office.ask()
    assert office.turn() == 2


def test_a_reminder_and_an_escalation_reach_those_they_are_for(office: Office, elsewhere: Heard) -> None:
    address = elsewhere.address
    for whom in ("ben", "cleo"):
        office.channel(f"{address}?{whom}", whom=whom, kind=ChannelKind.WEBHOOK)
    at_once = timedelta(microseconds=1)
    rule = Rule(
        "*", who=(Threshold(group="legal"),), remind=(at_once,), escalate=Escalation(at_once, "finance")
    )
    tool = Tool(name="send", schema={"type": "object"}, run=lambda *_: "done")
    office.workspace.register(Program("late", tools={"send": tool}, policy=Policy(rules=(rule,))))
    with office.workspace.database.write() as tx:
        people.add(tx, Person("lea", "Lea", role=Role.REVIEWER, groups=("legal",)), now=office.now)
    office.channel(f"{address}?lea", whom="lea", kind=ChannelKind.WEBHOOK)
    office.ask(program="late")
    office.workspace.gate.sweep()
    while office.turn():
        pass
    told = sorted(
        (json.loads(body)["data"]["event"], each.person)
        for each in office.deliveries()
        for _, body in elsewhere.messages
        if json.loads(body)["data"]["event"] == each.event
    )
    assert ("escalated", "cleo") in told
    assert ("reminded", "lea") in told
    assert ("escalated", "lea") not in told
    assert {person for _, person in told} == {"cleo", "lea"}


def test_who_could_have_decided_and_who_asked_are_told_that_a_review_expired(
    office: Office, elsewhere: Heard
) -> None:
    for whom in ("ann", "ben", "cleo"):
        office.channel(elsewhere.address, whom=whom, kind=ChannelKind.WEBHOOK, events=(Event.EXPIRED,))
    rule = Rule("*", who=(Threshold(group="finance"),), expire=timedelta(microseconds=1))
    tool = Tool(name="send", schema={"type": "object"}, run=lambda *_: "done")
    office.workspace.register(Program("short", tools={"send": tool}, policy=Policy(rules=(rule,))))
    office.ask(program="short")
    office.workspace.gate.sweep()
    office.turn()
    assert sorted(each.person for each in office.deliveries()) == ["ann", "cleo"]
    assert json.loads(elsewhere.messages[0][1])["data"]["status"] == "expired"


def test_operators_and_who_asked_are_told_of_a_run_that_failed_and_of_an_agent_that_was_parked(
    office: Office, elsewhere: Heard
) -> None:
    for whom in ("ann", "ben"):
        office.channel(elsewhere.address, whom=whom, kind=ChannelKind.WEBHOOK)
    review = office.ask()
    database = office.workspace.database
    with database.write() as tx:
        now = database.now(tx)
        audit.write(tx, AuditKind.RUN_FAILED, review.run_id, actor="clearance", now=now)
        audit.write(tx, AuditKind.AGENT_PARKED, "bot", actor="clearance", now=now)
    office.turn()
    told = sorted((each.event, each.person) for each in office.deliveries())
    assert told == [("asked", "ben"), ("failed", "ann"), ("parked", "ann")]
