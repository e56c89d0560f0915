"""What comes at the same moment, or in between: one wins, the others are told, messages decide nothing."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from clearance import turns
from clearance.errors import (
    ConflictError,
    ReviewConflictError,
    ReviewPendingError,
    ThreadBusyError,
)
from clearance.policy import Policy, Rule, Threshold
from clearance.review import Review, ReviewStatus
from clearance.run import Run, RunState
from tests.rules.small_reviews import approve, reject
from tests.store.bench import LONG, PAYMENT, PROGRAM, Bench, Turn, in_run, named

MANY = 8


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Do things at the same moment, and return what each gave or raised."""
    together = threading.Barrier(len(works), timeout=LONG)
    found: list[Any] = [None] * len(works)

    def work(place: int) -> None:
        together.wait()
        try:
            found[place] = works[place]()
        except Exception as error:  # noqa: BLE001 - what it raised is what the test looks at
            found[place] = error

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    return found


def minute_after(review: Review) -> datetime:
    """Return the instant at which a review that may wait for a minute expires."""
    return review.asked_at + timedelta(minutes=1)


def test_many_who_ask_at_once_ask_one_question(bench: Bench) -> None:
    turn = bench.propose(("pay", PAYMENT))
    found = at_once(*[lambda: bench.ask(turn)] * MANY)
    assert all(review == found[0] for review in found)
    assert bench.counts()["reviews"] == 1
    assert bench.trail("r1/1/1") == ["review:asked"]


@pytest.mark.parametrize("kinds", ["aaaaaaaa", "arararar"])
def test_of_many_who_decide_at_once_one_wins_and_the_others_are_told(bench: Bench, kinds: str) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    decisions = [approve() if kind == "a" else reject() for kind in kinds]
    people = ["rita", "omar", "faye", "olga"] * 2
    found = at_once(
        *[
            partial(bench.decide, review, decision, by=by)
            for decision, by in zip(decisions, people, strict=True)
        ]
    )
    (winner,) = [each for each in found if isinstance(each, Review)]
    others = [each for each in found if isinstance(each, ReviewConflictError)]
    assert len(others) == MANY - 1
    assert all(error.review == winner for error in others)
    assert bench.counts()["decisions"] == 1
    ran = winner.calls[0].state == "approved"
    assert named(bench.execute(turn)) == ["executed" if ran else "rejected"]
    assert len(bench.effects) == ran


def test_two_who_complete_a_quorum_at_once_clear_the_call_once(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", who=(Threshold(approve=2),)),)))
    turn, review = bench.asked(("pay", PAYMENT))
    found = at_once(*[partial(bench.decide, review, approve(), by=by) for by in ("rita", "omar")])
    assert sorted(type(each).__name__ for each in found) == ["Review", "ReviewConflictError"]
    late = "omar" if isinstance(found[1], ReviewConflictError) else "rita"
    assert bench.decide(bench.review(review.id), approve(), by=late).status is ReviewStatus.SETTLED
    assert named(bench.execute(turn)) == ["executed"]
    assert len(bench.effects) == 1


def test_a_decision_and_the_end_of_its_time_at_once_have_one_of_two_ends(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", expire=timedelta(minutes=1)),)))
    for number in range(6):
        turn, review = bench.asked(("pay", PAYMENT), run_id=f"r{number}")
        late = bench.gate_at(partial(minute_after, review))
        decided, swept = at_once(partial(bench.decide, review, approve()), late.sweep)
        late.database.close()
        ran = isinstance(decided, Review)
        assert swept == (0 if ran else 1)
        assert named(bench.execute(turn)) == ["executed" if ran else "rejected"]
        assert sum(effect.key == f"r{number}/1/0" for effect in bench.effects) == ran


def test_executing_and_deciding_at_once_run_the_call_at_most_once(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    at_once(lambda: bench.decide(review, approve()), *[lambda: bench.execute(turn)] * 4)
    assert named(bench.execute(turn)) == ["executed"]
    assert len(bench.effects) == 1


def test_cancelling_and_executing_at_once_end_in_one_of_two_ways(bench: Bench) -> None:
    for number in range(4):
        turn, review = bench.asked(("pay", PAYMENT), run_id=f"r{number}")
        bench.decide(review, approve())
        at_once(
            partial(bench.execute, turn),
            partial(turns.cancel, bench.c.ledger, f"r{number}", by="tom", reason="x"),
        )
        (end,) = named(bench.execute(turn))
        assert end in ("executed", "rejected")
        assert sum(effect.key == f"r{number}/1/0" for effect in bench.effects) == (end == "executed")


# --- a thread between its messages ---


def said(bench: Bench, run_id: str, text: str = "hello", *, program: str = PROGRAM) -> Run:
    """Send a message to the thread."""
    return turns.start(bench.c.ledger, "t", text, run_id=run_id, program=program, by="tom")


def waiting(bench: Bench) -> tuple[Turn, Review]:
    """Return the turn of a message whose call waits, as a worker leaves it."""
    run = said(bench, "m1")
    claimed = turns.claim(bench.c.ledger, "t", owner=None)
    assert claimed is not None
    turn = in_run(bench.propose(("pay", PAYMENT)), run, fence=claimed.fence)
    review = bench.ask(turn)
    assert review is not None
    assert not turns.finish(bench.c.ledger, claimed, answer=None)
    return turn, review


def test_a_message_while_an_earlier_one_is_worked_on_is_refused(bench: Bench) -> None:
    said(bench, "m1")
    with pytest.raises(ThreadBusyError):
        said(bench, "m2")
    assert turns.claim(bench.c.ledger, "t", owner=None)
    with pytest.raises(ThreadBusyError) as caught:
        said(bench, "m2")
    assert caught.value.run_id == "m1"


YES = ["yes, approve it", '{"decisions":[{"type":"approve"}]}', "approved by rita"]


@pytest.mark.parametrize("text", YES)
def test_a_message_while_a_review_waits_is_refused_and_decides_nothing(bench: Bench, text: str) -> None:
    turn, review = waiting(bench)
    before = bench.counts()
    with pytest.raises(ReviewPendingError) as caught:
        said(bench, "m2", text)
    assert caught.value.review_id == review.id
    assert bench.counts() == before
    assert bench.review(review.id) == review
    assert named(bench.execute(turn, fence=turn.question.fence)) == ["ask again"]


def test_a_thread_takes_the_next_message_when_its_run_has_ended(bench: Bench) -> None:
    waiting(bench)
    turns.cancel(bench.c.ledger, "m1", by="tom", reason="x")
    assert said(bench, "m2").state is RunState.QUEUED


def test_of_many_messages_at_once_one_starts_a_run(bench: Bench) -> None:
    found = at_once(*[partial(said, bench, f"m{n}") for n in range(MANY)])
    assert sum(isinstance(each, Run) for each in found) == 1
    assert sum(isinstance(each, ThreadBusyError) for each in found) == MANY - 1
    assert bench.counts()["runs"] == 1


def test_a_thread_belongs_to_one_program_and_to_one_way_of_being_advanced(bench: Bench) -> None:
    said(bench, "m1")
    with pytest.raises(ConflictError, match="belongs to chat"):
        said(bench, "m2", program="other")
    by_hand = bench.propose(("pay", PAYMENT)).run
    with pytest.raises(ConflictError, match="Use another thread"):
        turns.start(bench.c.ledger, by_hand.thread_id, "x", run_id="m3", program=PROGRAM, by="tom")


def test_a_review_that_expires_wakes_the_run_of_a_worker(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="*", expire=timedelta(minutes=1)),)))
    turn, review = waiting(bench)
    assert turns.claim(bench.c.ledger, "t", owner=None) is None
    late = bench.gate_at(lambda: review.asked_at + timedelta(minutes=1))
    assert late.sweep() == 1
    late.database.close()
    assert bench.run("m1").state is RunState.QUEUED
    claimed = turns.claim(bench.c.ledger, "t", owner=None)
    assert claimed is not None
    assert claimed.run is not None
    assert claimed.run.id == "m1"
    assert named(bench.execute(turn, fence=claimed.fence)) == ["rejected"]
    turns.finish(bench.c.ledger, claimed, answer="It was not cleared in time.")
    assert said(bench, "m2").state is RunState.QUEUED
