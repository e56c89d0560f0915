"""The store on both databases: transactions that end well or not at all, exact values, one clock."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, event, insert, select

from clearance import turns
from clearance.assembly import new_id
from clearance.errors import (
    EmptyMessageError,
    InvalidInputError,
    NotFoundError,
    SettingsError,
    StoreError,
)
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.ledger import Ledger
from clearance.people import Person
from clearance.policy import DecisionType, Policy, Predicate, Rule, Threshold
from clearance.run import RunState
from clearance.store import people, policies, reviews
from clearance.store import tables as t
from clearance.store.database import Database, retrying
from tests.rules.json_values import json_objects
from tests.rules.small_reviews import MAIL, PAYMENT, RITA, Desk, approve, call, edit, review
from tests.store.bench import LONG, Bench
from tests.store.bench import PAYMENT as PAY

NOW = datetime(2026, 3, 2, 9, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    made = Database(migrated_database_url)
    yield made
    made.close()


# --- transactions ---


def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as tx:
            people.add(tx, RITA, now=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.read() as tx:
        assert people.nobody(tx)


def test_a_reader_sees_nothing_of_a_transaction_that_is_not_committed(database: Database) -> None:
    with database.write() as tx:
        people.add(tx, RITA, now=NOW)
        with database.read() as other:
            assert people.nobody(other)
    with database.read() as tx:
        assert not people.nobody(tx)


def test_the_clock_is_aware_utc_and_goes_on_inside_a_transaction(database: Database) -> None:
    with database.write() as tx:
        first = database.now(tx)
        threading.Event().wait(0.01)
        second = database.now(tx)
    assert first.utcoffset() == timedelta(0)
    assert first < second
    assert abs(second - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_test_moves_the_clock(migrated_database_url: str) -> None:
    moved = Database(migrated_database_url, clock=lambda: NOW)
    with moved.read() as tx:
        assert moved.now(tx) == NOW
    moved.close()


@given(st.datetimes(timezones=st.just(UTC)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_instants_come_back_to_the_microsecond(database: Database, instant: datetime) -> None:
    with database.write() as tx:
        tx.execute(t.artifacts.delete())
        tx.execute(t.people.delete())
        people.add(tx, RITA, now=instant)
        assert tx.execute(select(t.people.c.created_at)).scalar_one() == instant


def test_an_instant_without_a_zone_is_never_stored(database: Database) -> None:
    with pytest.raises(Exception, match="offset-naive"), database.write() as tx:
        people.add(tx, RITA, now=NOW.replace(tzinfo=None))


@given(json_objects)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_json_comes_back_with_type_and_precision(database: Database, value: dict[str, Any]) -> None:
    with database.write() as tx:
        tx.execute(t.facts.delete())
        tx.execute(insert(t.facts).values(name="f", value=value))
        found = tx.execute(select(t.facts.c.value)).scalar_one()
    assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_a_child_of_a_fork_may_not_use_its_parent_s_connections(database: Database) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with database.read() as tx:
                people.nobody(tx)
            said = b"used"
        except SettingsError:
            said = b"refused"
        os.write(writing, said)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("mysql://localhost/x", "mysql is neither"),
        ("not a url", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_database_that_cannot_serve_is_refused_with_a_sentence(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Database(url)


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "clearance.db"
    file.write_text("this is no database, but a text of some length" * 100)
    database = Database(f"sqlite:///{file}")
    with pytest.raises(StoreError, match="not a database"):
        database.migrate()
    database.close()
    assert file.read_text().startswith("this is no database")


def test_a_server_that_is_not_there_is_a_store_error(tmp_path: Path) -> None:
    database = Database(f"postgresql:///nothing?host={tmp_path}")
    with pytest.raises(StoreError, match="cannot be used now"):
        database.migrate()
    database.close()


def test_a_connection_that_was_cut_is_a_store_error_and_the_next_one_works(database: Database) -> None:
    if database.is_sqlite:
        return
    with pytest.raises(StoreError), database.write() as tx:
        tx.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    with database.read() as tx:
        assert people.nobody(tx)


def test_retrying_tries_again_only_while_the_database_is_away() -> None:
    tried: list[int] = []

    def work() -> str:
        tried.append(1)
        if len(tried) < 3:
            raise StoreError("away")
        return "done"

    assert retrying(work, pause=0.001) == "done"
    assert len(tried) == 3
    with pytest.raises(StoreError):
        retrying(lambda: (_ for _ in ()).throw(StoreError("away")), tries=2, pause=0.001)
    with pytest.raises(ZeroDivisionError):
        retrying(lambda: 1 / 0, pause=100)


# --- a database that another process has locked ---


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold what every writing transaction needs, as a process that was stopped inside one does."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
        with engine.begin():
            yield
    else:
        with engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE threads IN ACCESS EXCLUSIVE MODE")
            yield
    engine.dispose()


@contextmanager
def impatient(bench: Bench) -> Iterator[tuple[Gate, Ledger]]:
    """Give a gate and a ledger that wait for a lock a moment only."""
    database = Database(bench.url, patience=0.05)
    known, wake = bench.c.programs, bench.c.ledger.wake
    yield (
        Gate(database, programs=known, wake=wake, new_id=new_id),
        Ledger(database, known, wake, worker="w", new_id=new_id),
    )
    database.close()


METHODS: dict[str, Callable[[Bench, Gate, Ledger], object]] = {
    "ask": lambda bench, gate, _: gate.ask(bench.propose(("pay", PAY)).question),
    "decide": lambda _, gate, __: gate.decide("held/1/1", [approve()], by="rita", version=1),
    "decide waiting": lambda _, gate, __: gate.decide_waiting("thread-held", [approve()], by="rita"),
    "withdraw": lambda _, gate, __: gate.withdraw("held/1/1", by="tom", reason="x"),
    "start": lambda _, __, ledger: turns.start(ledger, "t", "hello", run_id="n", program="chat", by="tom"),
    "cancel": lambda _, __, ledger: turns.cancel(ledger, "held", by="tom", reason="x"),
    "claim": lambda _, __, ledger: turns.claim(ledger, "thread-held", owner=None),
    "execute": lambda bench, _, ledger: Execution(ledger).execute(
        bench.run("cleared"),
        bench.propose(("pay", PAY), run_id="cleared").question.calls,
        message=1,
        tools=bench.tools,
        fence=None,
    ),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_a_locked_database_is_a_store_error_and_nothing_is_half_done(
    bench: Bench, method: Callable[[Bench, Gate, Ledger], object]
) -> None:
    bench.asked(("pay", PAY), run_id="held")
    _, cleared = bench.asked(("pay", PAY), run_id="cleared")
    bench.decide(cleared, approve())
    bench.propose(("pay", PAY))
    before = bench.counts()
    with impatient(bench) as (gate, ledger):
        prepared = _prepared(bench, method, gate, ledger)
        with locked(bench.url), pytest.raises(StoreError, match="cannot be used now"):
            prepared()
        assert bench.counts() == before
        assert bench.effects == []
        prepared()
    assert bench.counts() != before or method is METHODS["claim"]


def _prepared(
    bench: Bench, method: Callable[[Bench, Gate, Ledger], object], gate: Gate, ledger: Ledger
) -> Callable[[], object]:
    """Return the method with its question made before the lock: that is the test's own doing."""
    if method is METHODS["ask"]:
        question = bench.propose(("pay", PAY)).question
        return lambda: gate.ask(question)
    if method is METHODS["execute"]:
        turn = bench.propose(("pay", PAY), run_id="cleared")
        execution = Execution(ledger)
        return lambda: execution.execute(
            turn.run, turn.question.calls, message=1, tools=bench.tools, fence=None
        )
    return lambda: method(bench, gate, ledger)


# --- rows ---


def test_a_review_comes_back_as_it_was_decided(bench: Bench) -> None:
    bench.propose(("pay", PAY), run_id="r")
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
    rules = (
        Rule(tool="pay", risk="critical"),  # type: ignore[arg-type]
        Rule(tool="send_email", risk="low"),  # type: ignore[arg-type]
        Rule(tool="delete_file", risk="high"),  # type: ignore[arg-type]
    )
    bench.register(Policy(rules=rules))
    mail = {"to": "a", "subject": "s", "body": "b"}
    for run_id, proposal in {
        "a": ("send_email", mail),
        "b": ("delete_file", {"path": "/a"}),
        "c": ("pay", PAY),
        "d": ("delete_file", {"path": "/b"}),
        "e": ("pay", PAY),
    }.items():
        bench.asked(proposal, run_id=run_id)
    _, settled = bench.asked(("pay", PAY), run_id="f")
    bench.decide(settled, approve())
    with bench.c.database.read() as tx:
        assert [found.run_id for found in reviews.inbox(tx)] == ["c", "e", "b", "d", "a"]
        assert [found.run_id for found in reviews.inbox(tx, limit=2)] == ["c", "e"]
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
    assert lacking.when is not None
    assert lacking.when.function is None
    assert found.when is not None
    assert found.when.function is known.function


def test_tools_are_those_that_were_registered_last(bench: Bench) -> None:
    with bench.c.database.read() as tx:
        assert policies.tool_names(tx, "chat") == sorted(bench.tools)
        assert policies.tool_schema(tx, "chat", "pay") == bench.tools["pay"].schema
        assert policies.tool_schema(tx, "chat", "wipe") is None
    del bench.tools["pay"]
    bench.register()
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


def test_a_writer_on_sqlite_waits_for_the_other_one(tmp_path: Path, databases: Any) -> None:
    database = Database(databases.migrated("sqlite", tmp_path))
    other = sqlite3.connect(str(database.path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = threading.Event()

    def write() -> None:
        with database.write() as tx:
            people.add(tx, RITA, now=NOW)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not done.wait(0.1)
    other.execute("COMMIT")
    assert done.wait(LONG)
    thread.join()
    other.close()
    database.close()
