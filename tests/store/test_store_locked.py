"""A database that another process has locked: every verb says so in time, and has done nothing by half."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, event

from clearance import turns
from clearance.assembly import new_id
from clearance.errors import StoreError
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.ledger import Ledger
from clearance.outcome import CallState, Outcome
from clearance.policy import Policy, Rule
from clearance.store import runs
from clearance.store.database import Database
from tests.rules.small_reviews import approve
from tests.store.bench import PAYMENT, Bench, Turn

Work = Callable[[], object]


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


def verbs(bench: Bench, gate: Gate, ledger: Ledger, *, fresh: Turn, cleared: Turn) -> dict[str, Work]:
    """Return every verb that writes, ready to be called; `held` is a run that waits."""
    execution = Execution(ledger)
    return {
        "ask": lambda: gate.ask(fresh.question),
        "decide": lambda: gate.decide("held/1/1", [approve()], by="rita", version=1),
        "decide waiting": lambda: gate.decide_waiting("thread-held", [approve()], by="rita"),
        "withdraw": lambda: gate.withdraw("held/1/1", by="tom", reason="x"),
        "start": lambda: turns.start(ledger, "t", "hello", run_id="n", program="chat", by="tom"),
        "cancel": lambda: turns.cancel(ledger, "held", by="tom", reason="x"),
        "claim": lambda: turns.claim(ledger, "thread-held", owner=None),
        "execute": lambda: execution.execute(
            cleared.run, cleared.question.calls, message=1, tools=bench.tools, fence=None
        ),
    }


VERBS = (
    "ask",
    "decide",
    "decide waiting",
    "withdraw",
    "start",
    "cancel",
    "claim",
    "execute",
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_locked_database_is_a_store_error_and_nothing_is_half_done(bench: Bench, verb: str) -> None:
    bench.asked(("pay", PAYMENT), run_id="held")
    cleared, review = bench.asked(("pay", PAYMENT), run_id="cleared")
    bench.decide(review, approve())
    fresh = bench.propose(("pay", PAYMENT))
    with bench.c.database.write() as tx:
        runs.want(tx, "thread-held")
    before = everything(bench)
    with impatient(bench) as (gate, ledger):
        work = verbs(bench, gate, ledger, fresh=fresh, cleared=cleared)[verb]
        with locked(bench.url), pytest.raises(StoreError, match="cannot be used now"):
            work()
        assert everything(bench) == before
        work()
    assert everything(bench) != before


def everything(bench: Bench) -> tuple[object, ...]:
    """Return what there is: rows, how the waiting review and its thread stand, and what tools have done."""
    return bench.counts(), bench.review("held/1/1"), bench.thread("held"), list(bench.effects)


def test_the_sweep_of_a_locked_database_is_a_store_error_and_goes_on_later(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", expire=timedelta(minutes=1)),)))
    _, review = bench.asked(("pay", PAYMENT))
    moment = review.asked_at + timedelta(minutes=1)
    database = Database(bench.url, clock=lambda: moment, patience=0.05)
    gate = Gate(database, programs=bench.c.programs, wake=bench.c.ledger.wake, new_id=new_id)
    with locked(bench.url), pytest.raises(StoreError):
        gate.sweep()
    assert bench.review(review.id) == review
    assert gate.sweep() == 1
    database.close()


def test_a_result_that_cannot_be_kept_leaves_the_call_started_and_is_never_repeated(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve())
    with impatient(bench) as (_, ledger):
        execution = Execution(ledger)
        lock = locked(bench.url)
        bench.does["pay"] = lambda *_: lock.__enter__()
        with pytest.raises(StoreError):
            execution.execute(turn.run, turn.question.calls, message=1, tools=bench.tools, fence=None)
        lock.__exit__(None, None, None)
        row = bench.row("r1/1/0")
        assert row is not None
        assert row.state is CallState.STARTED
        bench.does["pay"] = lambda *_: "paid again"
        (found,) = execution.execute(turn.run, turn.question.calls, message=1, tools=bench.tools, fence=None)
    assert isinstance(found, Outcome)
    assert found.state is CallState.UNCERTAIN
    assert len(bench.effects) == 1
