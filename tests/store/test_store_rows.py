"""Rows of reviews, policies, tools and people come back from both databases as they went."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clearance import turns
from clearance.errors import EmptyMessageError, InvalidInputError, NotFoundError
from clearance.people import Person
from clearance.policy import DecisionType, Policy, Predicate, Risk, Rule, Threshold
from clearance.run import RunState
from clearance.store import listing, people, policies, reviews
from clearance.store.database import Database
from tests.rules.small_reviews import MAIL, PAYMENT, Desk, approve, call, edit, review
from tests.store.bench import MAIL as MAIL_ARGUMENTS
from tests.store.bench import PAYMENT as PAYMENT_ARGUMENTS
from tests.store.bench import Bench, Proposal

NOW = datetime(2026, 3, 2, 9, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    made = Database(migrated_database_url)
    yield made
    made.close()


def test_a_review_comes_back_as_it_was_decided(bench: Bench) -> None:
    bench.propose(("pay", PAYMENT_ARGUMENTS), run_id="r")
    who = (Threshold(approve=2, group="finance"), Threshold(reject=2))
    asked = review(
        call("c1", tool="pay", arguments=PAYMENT, who=who, decisions=tuple(DecisionType), reason=True),
        call("c2", arguments=MAIL),
        thread_id="thread-r",
        deadline=NOW + timedelta(hours=1),
    )
    desk = Desk(asked)
    with bench.c.database.write() as tx:
        assert reviews.insert_review(tx, asked)
        assert not reviews.insert_review(tx, asked)
    desk.decide([edit("c1", {"account": "A-2", "amount_cents": 5}, message="less"), approve("c2")])
    identified = tuple(
        replace(each, decisions=tuple(replace(d, id=f"d-{each.key}") for d in each.decisions))
        for each in desk.review.calls
    )
    after = replace(desk.review, calls=identified)
    with bench.c.database.write() as tx:
        assert reviews.save(tx, asked, after)
        assert not reviews.save(tx, asked, after)
        assert reviews.review(tx, "r/1/1") == after


def test_the_inbox_shows_the_highest_risk_first_and_then_what_was_asked_first(bench: Bench) -> None:
    risks = {"pay": Risk.CRITICAL, "send_email": Risk.LOW, "delete_file": Risk.HIGH}
    bench.register(Policy(rules=tuple(Rule(tool=tool, risk=risk) for tool, risk in risks.items())))
    proposals: dict[str, Proposal] = {
        "a": ("send_email", MAIL_ARGUMENTS),
        "b": ("delete_file", {"path": "/a"}),
        "c": ("pay", PAYMENT_ARGUMENTS),
        "d": ("delete_file", {"path": "/b"}),
        "e": ("pay", PAYMENT_ARGUMENTS),
    }
    for run_id, proposal in proposals.items():
        bench.asked(proposal, run_id=run_id)
    _, settled = bench.asked(("pay", PAYMENT_ARGUMENTS), run_id="f")
    bench.decide(settled, approve())
    with bench.c.database.read() as tx:
        assert [found.run_id for found in listing.inbox(tx)] == ["c", "e", "b", "d", "a"]
        assert [found.run_id for found in listing.inbox(tx, limit=2)] == ["c", "e"]
        assert reviews.waiting_count(tx) == 5


def test_the_active_policy_is_the_one_that_was_made_active_last(database: Database) -> None:
    first, second = Policy(), Policy(rules=(Rule(tool="pay"),))
    with database.write() as tx:
        assert policies.active(tx, "chat") == Policy()
        assert [policies.activate(tx, "chat", p, now=NOW) for p in (first, first, second, first)] == [
            True,
            False,
            True,
            True,
        ]
        assert policies.active_version(tx, "chat") == first.version
        assert policies.active_version(tx, "other") is None


def test_conditions_of_the_active_policy_come_from_what_this_process_knows(database: Database) -> None:
    known = Predicate("large", "1", lambda arguments: bool(arguments))
    active = Policy(rules=(Rule(tool="pay", when=known), Rule(tool="*")))
    older = Policy(rules=(Rule(tool="*", when=known),))
    with database.write() as tx:
        policies.activate(tx, "chat", active, now=NOW)
        (lacking, _) = policies.active(tx, "chat").rules
        (found, _) = policies.active(tx, "chat", known=[older]).rules
    assert isinstance(lacking.when, Predicate)
    assert lacking.when.function is None
    assert isinstance(found.when, Predicate)
    assert found.when.function is known.function


def test_tools_are_those_that_were_registered_last(bench: Bench) -> None:
    with bench.c.database.read() as tx:
        assert policies.tool_names(tx, "chat") == sorted(bench.tools)
        assert policies.tool_schema(tx, "chat", "pay") == bench.tools["pay"].schema
        assert policies.tool_schema(tx, "chat", "wipe") is None
    del bench.tools["pay"]
    bench.register(Policy())
    with bench.c.database.read() as tx:
        assert "pay" not in policies.tool_names(tx, "chat")


def test_unknown_rows_are_not_found(database: Database) -> None:
    with database.read() as tx:
        for look in (reviews.review, people.person):
            with pytest.raises(NotFoundError):
                look(tx, "nothing")


def test_whoever_stands_behind_agents_is_found_even_in_a_circle(database: Database) -> None:
    with database.write() as tx:
        for one, behind in (("a", "b"), ("b", "c"), ("x", "y"), ("y", "x")):
            people.add(tx, Person(id=one, name=one, behind=behind), now=NOW)
        assert people.party(tx, "a") == "c"
        assert people.party(tx, "c") == "c"
        assert people.party(tx, "x") in ("x", "y")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", EmptyMessageError),
        (" \n\t", EmptyMessageError),
        ("a\0b", InvalidInputError),
        ("\ud800", InvalidInputError),
        ("x" * (turns.MAX_MESSAGE + 1), InvalidInputError),
    ],
    ids=["nothing", "blanks", "null", "surrogate", "too long"],
)
def test_a_message_that_cannot_be_kept_is_refused(
    bench: Bench, text: str, error: type[InvalidInputError]
) -> None:
    with pytest.raises(error):
        turns.start(bench.c.ledger, "t", text, run_id="n", program="chat", by="tom")
    assert bench.counts()["runs"] == 0
    found = turns.start(bench.c.ledger, "t", "\u202ehello", run_id="n", program="chat", by="tom")
    assert (found.state, bench.run("n").input) == (RunState.QUEUED, "\u202ehello")
