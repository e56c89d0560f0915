"""The breaker: an agent that proposes too much in a minute is parked, told of once, and let go on later."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from clearance import breaker
from clearance.assembly import new_id
from clearance.breaker import Limits
from clearance.errors import AgentParkedError, ConflictError, ForbiddenError, NotFoundError
from clearance.gate import Gate
from clearance.people import SYSTEM
from clearance.store import parking
from clearance.store.database import Database
from clearance.store.tables import proposals
from tests.rules.small_reviews import approve
from tests.store.bench import LONG, PAYMENT, Bench, Turn, named

WEATHER = ("read_weather", {"city": "Oslo"})
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOT = "dev-bot"


class Clock:
    """A clock that stands still, and is moved by the test."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def watched(bench: Bench, limits: Limits) -> Iterator[tuple[Gate, Clock]]:
    """Give a gate with a breaker, and its clock."""
    clock = Clock()
    database = Database(bench.url, clock=clock)
    try:
        yield (
            Gate(database, programs=bench.c.programs, wake=bench.c.ledger.wake, new_id=new_id, limits=limits),
            clock,
        )
    finally:
        database.close()


def turn(bench: Bench, n: int, *, by: str = BOT, same: bool = False) -> Turn:
    """Have an agent propose its n-th payment, of another amount each unless they are to be the same."""
    amount = 1 if same else n
    return bench.propose(("pay", {**PAYMENT, "amount_cents": amount}), run_id=f"r{n}", by=by)


def noted(gate: Gate) -> int:
    """Return how many calls the breaker remembers."""
    with gate.database.read() as tx:
        return len(tx.execute(select(proposals)).all())


def is_parked(bench: Bench, agent: str = BOT) -> bool:
    """Whether the agent is parked."""
    with bench.c.database.read() as tx:
        return parking.parked(tx, agent) is not None


@pytest.mark.parametrize(
    ("limits", "same", "reason"),
    [
        (Limits(calls=3), False, "it proposed more than 3 calls in a minute"),
        (Limits(same=3), True, "it proposed the same call more than 3 times in a minute"),
    ],
)
def test_one_call_too_many_in_a_minute_parks_the_agent(
    bench: Bench, limits: Limits, same: bool, reason: str
) -> None:
    with watched(bench, limits) as (gate, _):
        for n in range(1, 4):
            assert gate.ask(turn(bench, n, same=same).question) is not None
        with pytest.raises(AgentParkedError, match=reason):
            gate.ask(turn(bench, 4, same=same).question)
        assert bench.counts()["reviews"] == 3
        with pytest.raises(AgentParkedError, match="clearance agents resume dev-bot"):
            gate.ask(turn(bench, 5).question)
    assert bench.trail(BOT, of="agent:") == ["agent:parked"]


def test_calls_that_differ_are_not_the_same_and_a_minute_later_none_count(bench: Bench) -> None:
    with watched(bench, Limits(calls=6, same=2)) as (gate, clock):
        for n in range(1, 7):
            gate.ask(turn(bench, n).question)
        clock.now += timedelta(minutes=1)
        for n in range(7, 13):
            gate.ask(turn(bench, n).question)
    assert not is_parked(bench)


def test_asking_again_about_the_same_call_counts_once(bench: Bench) -> None:
    with watched(bench, Limits(calls=2, same=1)) as (gate, clock):
        question = turn(bench, 1).question
        for _ in range(10):
            assert gate.ask(question) is not None
            clock.now += timedelta(seconds=50)
    assert not is_parked(bench)


def test_calls_that_nobody_is_asked_about_count_too(bench: Bench) -> None:
    with watched(bench, Limits(calls=3)) as (gate, _), pytest.raises(AgentParkedError):
        gate.ask(bench.propose(*[WEATHER] * 4, by=BOT).question)


def test_nothing_of_a_parked_agent_starts_until_it_may_go_on(bench: Bench) -> None:
    with watched(bench, Limits(calls=2)) as (gate, _):
        cleared = turn(bench, 1)
        review = gate.ask(cleared.question)
        assert review is not None
        allowed = bench.propose(WEATHER, run_id="r2", by=BOT)
        gate.ask(allowed.question)
        with pytest.raises(AgentParkedError):
            gate.ask(turn(bench, 3).question)
    bench.decide(review, approve())
    for each in (cleared, allowed):
        with pytest.raises(AgentParkedError):
            bench.execute(each)
    assert bench.effects == []
    breaker.resume(bench.c.database, BOT, by="olga")
    assert named(bench.execute(cleared) + bench.execute(allowed)) == ["executed", "executed"]
    assert bench.trail(BOT, of="agent:") == ["agent:parked", "agent:resumed"]


def test_a_parked_agent_gets_no_second_attempt(bench: Bench) -> None:
    go_on = threading.Event()
    bench.say("pay", timeout=0.2)
    bench.register()
    bench.does["pay"] = lambda *_: go_on.wait(LONG)
    cleared = turn(bench, 1)
    review = bench.ask(cleared)
    assert review is not None
    bench.decide(review, approve())
    bench.outcome(cleared)
    bench.decide(bench.review("r1/1/0/outcome/1"), approve(), by="olga")
    with bench.c.database.write() as tx:
        parking.park(tx, parking.Parked(BOT, "too much", NOON))
    with pytest.raises(AgentParkedError):
        bench.c.execution.execute_again("r1/1/0", tools=bench.tools)
    assert len(bench.effects) == 1
    go_on.set()


@pytest.mark.parametrize("remove", ["sweep", "retention"])
def test_nothing_of_what_was_proposed_is_noted_longer_than_it_counts(bench: Bench, remove: str) -> None:
    with watched(bench, Limits(calls=2)) as (gate, clock):
        gate.ask(turn(bench, 1).question)
        retention = replace(bench.c.retention, database=gate.database)
        ways: dict[str, Callable[[], object]] = {
            "sweep": gate.sweep,
            "retention": partial(retention.apply, by=SYSTEM),
        }
        forget = ways[remove]
        forget()
        assert noted(gate) == 1
        clock.now += timedelta(minutes=1)
        forget()
        assert noted(gate) == 0


def test_who_may_go_on_starts_counting_anew(bench: Bench) -> None:
    with watched(bench, Limits(calls=2)) as (gate, _):
        for n in (1, 2):
            gate.ask(turn(bench, n).question)
        with pytest.raises(AgentParkedError):
            gate.ask(turn(bench, 3).question)
        breaker.resume(gate.database, BOT, by="olga")
        for n in (4, 5):
            assert gate.ask(turn(bench, n).question) is not None


def test_other_agents_and_people_go_on(bench: Bench) -> None:
    with watched(bench, Limits(calls=1)) as (gate, _):
        for n in range(1, 5):
            assert gate.ask(turn(bench, n, by="tom").question) is not None
        gate.ask(turn(bench, 5).question)
        with pytest.raises(AgentParkedError):
            gate.ask(turn(bench, 6).question)
        assert gate.ask(turn(bench, 7, by="sub-bot").question) is not None
    assert is_parked(bench)
    assert not is_parked(bench, "sub-bot")


def test_without_limits_nothing_is_counted(bench: Bench) -> None:
    with watched(bench, Limits()) as (gate, _):
        for n in range(1, 30):
            gate.ask(turn(bench, n, same=True).question)
    assert not is_parked(bench)


def test_a_flood_that_comes_all_at_once_parks_the_agent_once(bench: Bench) -> None:
    turns = [turn(bench, n) for n in range(12)]

    def ask(gate: Gate, each: Turn) -> None:
        with suppress(AgentParkedError):
            gate.ask(each.question)

    with watched(bench, Limits(calls=4)) as (gate, _):
        asking = [threading.Thread(target=ask, args=(gate, each)) for each in turns]
        for each in asking:
            each.start()
        for each in asking:
            each.join(LONG)
        # Those of one instant may not have seen one another; the next one has seen them all.
        with pytest.raises(AgentParkedError):
            gate.ask(turn(bench, 13).question)
    assert bench.trail(BOT, of="agent:") == ["agent:parked"]


@pytest.mark.parametrize(
    ("agent", "by", "error"),
    [
        (BOT, "rita", ForbiddenError),
        (BOT, "sub-bot", ForbiddenError),
        (BOT, "olga", ConflictError),
        ("rita", "olga", NotFoundError),
        ("nobody", "olga", NotFoundError),
    ],
    ids=["by a reviewer", "by an agent", "that is not parked", "that is a person", "that is not here"],
)
def test_only_an_operator_lets_a_parked_agent_go_on(bench: Bench, agent: str, by: str, error: Any) -> None:
    with pytest.raises(error):
        breaker.resume(bench.c.database, agent, by=by)
