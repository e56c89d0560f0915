"""Times of a review that waits: reminders, escalation and the end, by stored instants, each done once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from clearance.errors import ForbiddenError, ReviewConflictError
from clearance.gate import Gate
from clearance.people import Person, Role
from clearance.policy import Escalation, Policy, Rule, Threshold
from clearance.review import Answer, Counted, Review, ReviewStatus
from clearance.store import audit, reviews, runs
from clearance.store.database import Database
from tests.rules.small_reviews import approve, edit
from tests.store.bench import LONG, PAYMENT, Bench, Turn, states

MINUTE = timedelta(minutes=1)
TO_LEADS = Escalation(2 * MINUTE, "lead")
FINANCE = Threshold(group="finance")
WORKERS = 4


@contextmanager
def at(bench: Bench, moment: datetime) -> Iterator[Gate]:
    """Give a gate of the workspace whose clock stands still at a moment."""
    gate = bench.gate_at(lambda: moment)
    try:
        yield gate
    finally:
        gate.database.close()


def waiting(bench: Bench, *, people: bool = True, **more: Any) -> tuple[Turn, Review]:
    """Ask finance about a payment: reminded after 1 and 3 minutes, escalated after 2, over after 5."""
    rule = {"who": (FINANCE,), "remind": (MINUTE, 3 * MINUTE), "escalate": TO_LEADS, "expire": 5 * MINUTE}
    bench.register(Policy(rules=(Rule(tool="*", **{**rule, **more}),)))
    if people:
        bench.hire(Person(id="lena", name="Lena", role=Role.REVIEWER, groups=("lead",)))
    return bench.asked(("pay", PAYMENT))


def told(bench: Bench, review: Review) -> list[tuple[str, timedelta, str | None]]:
    """Return what the trail says was due: what, how long after the question, and to which group."""
    with bench.c.database.write() as tx:
        audit.number(tx)
    kinds = ("review:reminded", "review:escalated")
    with bench.c.database.read() as tx:
        found = audit.read_after(tx, 0, limit=100, kinds=kinds, subject=review.id)
    assert {entry.actor for entry in found} <= {"clearance"}
    return [
        (entry.kind, datetime.fromisoformat(entry.facts["due"]) - review.asked_at, entry.facts.get("to"))
        for entry in found
    ]


ALL = [
    ("review:reminded", MINUTE, None),
    ("review:escalated", 2 * MINUTE, "lead"),
    ("review:reminded", 3 * MINUTE, None),
]


def test_each_time_is_told_when_it_comes_and_once(bench: Bench) -> None:
    _, review = waiting(bench)
    for count, after in enumerate((MINUTE, 2 * MINUTE, 3 * MINUTE), start=1):
        with at(bench, review.asked_at + after - timedelta(microseconds=1)) as gate:
            gate.sweep()
            assert told(bench, review) == ALL[: count - 1]
        with at(bench, review.asked_at + after) as gate:
            gate.sweep()
            gate.sweep()
            assert told(bench, review) == ALL[:count]
    assert bench.review(review.id) == review


def test_a_worker_that_was_down_over_all_times_does_each_once_in_their_order(bench: Bench) -> None:
    _, review = waiting(bench)
    with at(bench, review.asked_at + timedelta(days=3)) as gate:
        assert gate.sweep() == 1
        assert gate.sweep() == 0
    assert told(bench, review) == ALL
    assert bench.trail(review.id, of="review:")[-1] == "review:expired"
    assert bench.review(review.id).status is ReviewStatus.EXPIRED


def test_several_workers_that_sweep_at_once_do_each_time_once(bench: Bench) -> None:
    asked = [waiting(bench)[1]]
    asked += [bench.asked(("pay", PAYMENT), run_id=f"r{n}")[1] for n in range(2, 5)]
    late = asked[-1].asked_at + 10 * MINUTE
    together = threading.Barrier(WORKERS, timeout=LONG)
    failed: list[BaseException] = []

    def sweep() -> None:
        try:
            with at(bench, late) as gate:
                together.wait()
                gate.sweep()
        except BaseException as error:  # noqa: BLE001 - told in the test's own thread
            failed.append(error)

    workers = [threading.Thread(target=sweep) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LONG)
    assert failed == []
    for review in asked:
        assert told(bench, review) == ALL
        assert bench.trail(review.id, of="review:").count("review:expired") == 1


def test_time_that_runs_out_never_approves(bench: Bench) -> None:
    turn, review = waiting(bench)
    with at(bench, review.asked_at + timedelta(days=3)) as gate:
        gate.sweep()
    assert states(bench.review(review.id)) == [Answer.EXPIRED]
    assert bench.clearances("r1/1/0") == []
    assert bench.outcome(turn).is_error
    assert bench.effects == []


def test_who_it_is_escalated_to_decides_from_the_stored_instant_on_before_any_sweep(bench: Bench) -> None:
    _, review = waiting(bench)
    instant = review.asked_at + 2 * MINUTE
    with at(bench, instant - timedelta(microseconds=1)) as gate, pytest.raises(ForbiddenError):
        gate.decide(review.id, [approve()], by="lena", version=1)
    with at(bench, instant) as gate:
        after = gate.decide(review.id, [approve()], by="lena", version=1)
    assert states(after) == [Answer.APPROVED]
    (said,) = bench.review(review.id).calls[0].decisions
    assert said.counted == (Counted("finance", 1, "lead"),)


def test_what_an_escalation_cleared_is_executed(bench: Bench) -> None:
    turn, review = waiting(bench)
    with at(bench, review.asked_at + 3 * MINUTE) as gate:
        gate.decide(review.id, [approve()], by="lena", version=1)
    assert bench.outcome(turn).state == "executed"


def test_what_was_decided_is_not_told_again(bench: Bench) -> None:
    _, review = waiting(bench)
    bench.decide(review, approve(), by="faye")
    with at(bench, review.asked_at + 10 * MINUTE) as gate:
        gate.sweep()
    assert told(bench, review) == []
    with bench.c.database.read() as tx:
        assert tx.execute(text("SELECT count(*) FROM review_times WHERE done_at IS NULL")).scalar() == 0


def test_an_edit_keeps_the_times_of_the_rules_that_now_hold(bench: Bench) -> None:
    _, review = waiting(bench)
    bench.register(
        Policy(rules=(Rule(tool="*", who=(Threshold(2),), remind=(4 * MINUTE,), expire=8 * MINUTE),))
    )
    with at(bench, review.asked_at + MINUTE / 2) as gate:
        gate.decide(review.id, [edit(None, {**PAYMENT, "amount_cents": 1})], by="faye", version=1)
    with at(bench, review.asked_at + 4 * MINUTE + MINUTE / 2) as gate:
        gate.sweep()
    assert told(bench, review) == [("review:reminded", 4 * MINUTE + MINUTE / 2, None)]


def test_a_policy_without_times_keeps_no_rows_of_them(bench: Bench) -> None:
    bench.asked(("pay", PAYMENT))
    with bench.c.database.read() as tx:
        assert tx.execute(text("SELECT count(*) FROM review_times")).scalar() == 0


# --- the instant of a decision ---


def test_the_clock_goes_on_within_one_transaction(migrated_database_url: str) -> None:
    database = Database(migrated_database_url)
    with database.write() as tx:
        first = database.now(tx)
        while (second := database.now(tx)) == first:
            pass
    database.close()
    assert second > first


def test_a_decision_that_had_to_wait_for_the_thread_counts_from_when_it_had_it(bench: Bench) -> None:
    _, review = waiting(bench)
    assert review.deadline is not None
    clock = {"now": review.deadline - timedelta(seconds=1)}
    gate = bench.gate_at(lambda: clock["now"])
    found: list[Exception] = []

    def decide() -> None:
        try:
            gate.decide(review.id, [approve()], by="faye", version=1)
        except ReviewConflictError as error:
            found.append(error)

    deciding = threading.Thread(target=decide)
    with bench.c.database.write() as tx:
        runs.lock_thread(tx, review.thread_id)
        deciding.start()
        _until_it_waits(bench, deciding)
        clock["now"] = review.deadline
    deciding.join(LONG)
    gate.database.close()
    assert "expired at" in str(found)
    with bench.c.database.read() as tx:
        assert reviews.review(tx, review.id).status is ReviewStatus.EXPIRED


def _until_it_waits(bench: Bench, thread: threading.Thread) -> None:
    """Return once the thread waits for the lock; on SQLite nobody can see that, and any moment will do."""
    waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while not bench.c.database.is_sqlite and thread.is_alive():
        with bench.c.database.read() as tx:
            if tx.execute(waits).scalar_one():
                return
