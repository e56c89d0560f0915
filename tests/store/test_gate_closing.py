"""How a question ends without an answer: late, taken back, with its run; and what a failed write leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from clearance import turns
from clearance.assembly import new_id
from clearance.errors import (
    ClearanceError,
    ConflictError,
    FenceLostError,
    ForbiddenError,
    ReviewConflictError,
    StoreError,
)
from clearance.gate import Gate
from clearance.outcome import CallState, Outcome
from clearance.policy import Policy, Rule, Threshold
from clearance.review import Answer, ReviewStatus
from clearance.run import RunState
from clearance.store import runs
from tests.rules.small_reviews import approve, reject, respond
from tests.store.bench import MAIL, PAYMENT, PROGRAM, Bench, in_run, named, states

MINUTE = timedelta(minutes=1)


@contextmanager
def at(bench: Bench, moment: datetime) -> Iterator[Gate]:
    """Give a gate of the workspace whose clock stands still at a moment."""
    gate = bench.gate_at(lambda: moment)
    try:
        yield gate
    finally:
        gate.database.close()


# --- deadlines ---


def expiring(bench: Bench, *proposals: Any, **more: Any) -> tuple[Any, Any]:
    """Ask about calls that wait for a minute."""
    bench.register(Policy(rules=(Rule(tool="*", expire=MINUTE, **more),)))
    return bench.asked(*(proposals or (("pay", PAYMENT),)))


def test_a_review_that_nobody_decides_expires_and_its_run_goes_on(bench: Bench) -> None:
    turn, review = expiring(bench)
    assert review.deadline == review.asked_at + MINUTE
    with at(bench, review.deadline) as gate:
        assert gate.sweep() == 1
        assert gate.sweep() == 0
    after = bench.review(review.id)
    assert (after.status, after.ended_at, states(after)) == (
        ReviewStatus.EXPIRED,
        review.deadline,
        [Answer.EXPIRED],
    )
    assert bench.run("r1").state is RunState.RUNNING
    assert bench.thread("r1").wanted > bench.thread("r1").done
    assert bench.ask(turn) is None
    found = bench.outcome(turn)
    assert (found.state, found.is_error) == (CallState.REJECTED, True)
    assert found.text == "Nobody cleared this call in time; pay did not run."
    assert bench.effects == []


def test_an_expiry_is_the_product_s_own_and_names_no_person(bench: Bench) -> None:
    _, review = expiring(bench)
    with at(bench, review.deadline) as gate:
        gate.sweep()
    assert bench.trail(review.id) == ["review:asked", "review:expired"]
    with bench.c.database.read() as tx:
        actors = tx.execute(text("SELECT actor FROM entries WHERE kind = 'review:expired'")).scalars().all()
    assert actors == ["clearance"]


def test_nothing_expires_before_its_instant(bench: Bench) -> None:
    _, review = expiring(bench)
    with at(bench, review.deadline - timedelta(microseconds=1)) as gate:
        assert gate.sweep() == 0
        assert gate.decide(review.id, [approve()], by="rita", version=1).status is ReviewStatus.SETTLED


def test_a_decision_at_the_instant_of_the_deadline_is_late_even_before_the_sweep(bench: Bench) -> None:
    _, review = expiring(bench)
    with at(bench, review.deadline) as gate:
        with pytest.raises(ReviewConflictError, match="expired at"):
            gate.decide(review.id, [approve()], by="rita", version=1)
        assert bench.review(review.id).status is ReviewStatus.EXPIRED
        with pytest.raises(ReviewConflictError, match="expired already"):
            gate.decide(review.id, [approve()], by="rita", version=1)


def test_who_was_told_that_it_is_late_is_not_in_time_when_the_clock_is_set_back(bench: Bench) -> None:
    _, review = expiring(bench)
    with at(bench, review.deadline) as gate, pytest.raises(ReviewConflictError, match="expired at"):
        gate.decide(review.id, [approve()], by="rita", version=1)
    earlier = review.deadline - timedelta(seconds=1)
    with at(bench, earlier) as gate, pytest.raises(ReviewConflictError, match="expired already"):
        gate.decide(review.id, [approve()], by="rita", version=1)
    assert bench.effects == []


def test_a_review_without_a_deadline_waits_for_ever(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    with at(bench, datetime(9999, 12, 31, tzinfo=UTC)) as gate:
        assert gate.sweep() == 0
    assert bench.review(review.id).status is ReviewStatus.PENDING


def test_a_sweep_ends_everything_that_is_due_and_nothing_else(bench: Bench) -> None:
    bench.register(Policy(rules=(Rule(tool="pay", expire=MINUTE), Rule(tool="send_email"))))
    due = [bench.asked(("pay", PAYMENT), run_id=f"due{n}")[1] for n in range(3)]
    _, other = bench.asked(("send_email", MAIL), run_id="other")
    with at(bench, due[-1].asked_at + MINUTE) as gate:
        assert gate.sweep() == 3
    assert {bench.review(review.id).status for review in due} == {ReviewStatus.EXPIRED}
    assert bench.review(other.id).status is ReviewStatus.PENDING


def test_what_was_decided_about_a_call_alone_is_told_when_its_review_expires(bench: Bench) -> None:
    bench.register(
        Policy(
            rules=(
                Rule(tool="send_email", expire=MINUTE, decisions=("approve", "reject", "respond")),  # type: ignore[arg-type]
                Rule(tool="pay", who=(Threshold(approve=2),)),
            )
        )
    )
    turn, review = bench.asked(("send_email", MAIL), ("send_email", MAIL), ("pay", PAYMENT))
    bench.decide(
        review, reject("r1/1/0", message="no mail"), respond("r1/1/1", "sent by hand"), approve("r1/1/2")
    )
    with at(bench, review.asked_at + MINUTE) as gate:
        gate.sweep()
    found = [item for item in bench.execute(turn) if isinstance(item, Outcome)]
    assert [item.state for item in found] == [CallState.REJECTED, CallState.RESPONDED, CallState.REJECTED]
    assert "no mail" in found[0].text
    assert found[1].text == "sent by hand"
    assert "in time" in found[2].text


# --- taken back ---


@pytest.mark.parametrize("by", ["tom", "olga"])
def test_who_asked_or_an_operator_takes_a_question_back(bench: Bench, by: str) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    after = bench.c.gate.withdraw(review.id, by=by, reason="no longer needed")
    assert after == bench.review(review.id)
    assert (after.status, after.reason, states(after)) == (
        ReviewStatus.WITHDRAWN,
        "no longer needed",
        [Answer.WITHDRAWN] * 2,
    )
    assert bench.trail(review.id, of="review:") == ["review:asked", "review:withdrawn"]
    found = bench.execute(turn)
    assert named(found) == ["rejected", "rejected"]
    assert "no longer needed" in str(found[0])
    with pytest.raises(ReviewConflictError, match="withdrawn already"):
        bench.decide(review, approve(), approve())


@pytest.mark.parametrize("by", ["rita", "mallory", "dev-bot"])
def test_others_do_not_take_a_question_back(bench: Bench, by: str) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    if by == "dev-bot":
        bench.change_person("dev-bot", role="viewer")
    with pytest.raises(ForbiddenError):
        bench.c.gate.withdraw(review.id, by=by, reason="x")
    assert bench.review(review.id) == review


def test_what_was_decided_is_not_taken_back(bench: Bench) -> None:
    _, review = bench.asked(("pay", PAYMENT))
    bench.decide(review, approve())
    with pytest.raises(ReviewConflictError, match="settled already"):
        bench.c.gate.withdraw(review.id, by="tom", reason="too late")
    assert bench.clearances("r1/1/0") == ["open"]


# --- with its run ---


@pytest.mark.parametrize("decided", [False, True])
def test_cancelling_a_run_takes_back_what_waits_and_what_was_cleared(bench: Bench, decided: bool) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    if decided:
        bench.decide(review, approve())
    after = turns.cancel(bench.c.ledger, "r1", by="tom", reason="changed my mind")
    assert (after.state, after.reason) == (RunState.CANCELLED, "changed my mind")
    assert bench.review(review.id).status is (ReviewStatus.SETTLED if decided else ReviewStatus.WITHDRAWN)
    assert bench.clearances("r1/1/0") == (["void"] if decided else [])
    assert bench.ask(turn) is None
    assert named(bench.execute(turn)) == ["rejected"]
    assert bench.effects == []
    assert bench.trail("r1")[-1] == "run:cancelled"


def test_a_cancelled_run_asks_and_starts_nothing_any_more(bench: Bench) -> None:
    turn = bench.propose(("pay", PAYMENT), ("read_weather", {"city": "Oslo"}))
    turns.cancel(bench.c.ledger, "r1", by="tom", reason="changed my mind")
    assert bench.ask(turn) is None
    found = bench.execute(turn)
    assert named(found) == ["rejected", "rejected"]
    assert "changed my mind" in str(found[0])
    assert bench.effects == []
    assert bench.counts()["reviews"] == 0


@pytest.mark.parametrize(("by", "allowed"), [("tom", True), ("olga", True), ("rita", False)])
def test_who_asked_or_an_operator_cancels_a_run(bench: Bench, by: str, allowed: bool) -> None:
    bench.asked(("pay", PAYMENT))
    if not allowed:
        with pytest.raises(ForbiddenError):
            turns.cancel(bench.c.ledger, "r1", by=by, reason="x")
    else:
        turns.cancel(bench.c.ledger, "r1", by=by, reason="x")
    assert bench.run("r1").is_open != allowed


def test_a_run_that_ended_is_not_cancelled(bench: Bench) -> None:
    bench.asked(("pay", PAYMENT))
    turns.cancel(bench.c.ledger, "r1", by="tom", reason="x")
    with pytest.raises(ConflictError, match="has ended already"):
        turns.cancel(bench.c.ledger, "r1", by="tom", reason="x")


def test_a_run_whose_segment_failed_waits_for_nobody_any_more(bench: Bench) -> None:
    run = turns.start(bench.c.ledger, "t", "hello", run_id="q", program=PROGRAM, by="tom")
    claimed = turns.claim(bench.c.ledger, run.thread_id, owner=None)
    assert claimed is not None
    turn = in_run(bench.propose(("pay", PAYMENT)), run, fence=claimed.fence)
    asked = bench.ask(turn)
    assert asked is not None
    turns.fail(bench.c.ledger, claimed, reason="RuntimeError")
    assert bench.review(asked.id).status is ReviewStatus.WITHDRAWN
    assert bench.run("q").state is RunState.FAILED
    turns.start(bench.c.ledger, "t", "again", run_id="q2", program=PROGRAM, by="tom")


def test_a_segment_that_was_taken_over_asks_nothing(bench: Bench) -> None:
    turn = bench.propose(("pay", PAYMENT))
    with bench.c.database.write() as tx:
        runs.want(tx, "thread-r1")
        assert runs.claim(tx, "thread-r1", owner=None)
    with pytest.raises(FenceLostError):
        bench.ask(in_run(turn, turn.run, fence=0))
    assert bench.counts()["reviews"] == 0


# --- what a failed write leaves ---


def test_a_failure_before_the_commit_leaves_nothing_of_a_decision(bench: Bench) -> None:
    def fail(_: Connection, __: str) -> None:
        raise ZeroDivisionError

    turn, review = bench.asked(("pay", PAYMENT))
    before = bench.counts()
    failing = Gate(bench.c.database, programs=bench.c.programs, wake=fail, new_id=new_id)
    with pytest.raises(ZeroDivisionError):
        failing.decide(review.id, [approve()], by="rita", version=1)
    assert bench.counts() == before
    assert bench.review(review.id) == review
    assert named(bench.execute(turn)) == ["ask again"]
    bench.decide(review, approve())
    assert named(bench.execute(turn)) == ["executed"]


@contextmanager
def full_disk(bench: Bench) -> Iterator[None]:
    """Let every entry of the trail fail as on a full disk."""
    on_sqlite = bench.c.database.is_sqlite
    with bench.c.database.write() as tx:
        if on_sqlite:
            pages = tx.exec_driver_sql("PRAGMA page_count").scalar_one()
            tx.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        else:
            tx.exec_driver_sql(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
            )
            tx.exec_driver_sql(
                "CREATE TRIGGER full_disk BEFORE INSERT ON entries EXECUTE FUNCTION full_disk()"
            )
    yield
    with bench.c.database.write() as tx:
        if on_sqlite:
            tx.exec_driver_sql("PRAGMA max_page_count = 1000000")
        else:
            tx.exec_driver_sql("DROP TRIGGER full_disk ON entries")


def test_where_the_trail_cannot_be_written_nothing_is_decided_and_it_can_be_decided_later(
    bench: Bench,
) -> None:
    turn, review = bench.asked(("pay", PAYMENT))
    before = bench.counts()
    long = approve(message="x" * 60_000)
    with full_disk(bench):
        with pytest.raises(StoreError, match="cannot be used now"):
            bench.decide(review, long)
        assert bench.counts() == before
        assert named(bench.execute(turn)) == ["ask again"]
    bench.decide(review, long)
    assert named(bench.execute(turn)) == ["executed"]


def test_an_error_of_the_database_tells_no_values(bench: Bench) -> None:
    _, review = bench.asked(("pay", {**PAYMENT, "memo": "hunter-22"}))
    with full_disk(bench), pytest.raises(ClearanceError) as caught:
        bench.decide(review, approve(message="tok_ABCDEF" * 6000))
    assert not any(secret in str(caught.value) for secret in ("hunter-22", "tok_ABCDEF", "INSERT"))
