"""Kills beside the straight way of a turn: of who sends or decides, while parked, in a takeover."""

from collections import Counter

import pytest

from clearance.outcome import CallState
from clearance.review import ReviewStatus
from clearance.run import RunState
from tests.journeys.front import APPROVE, Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import Processes, kill, until, was_killed
from tests.journeys.program import Stage, cancel, decide, send, withdraw, work

# What a database may see in its own way: a commit that is cut off, a wake that was not heard, and takeovers.
pytestmark = pytest.mark.sqlite_by_day(
    but=(
        "test_a_message_whose_sender_dies_before_the_commit_was_never_sent",
        "test_a_parked_run_needs_no_process",
        "read-pending",
        "claimed",
        "test_of_three_parallel_calls_each_ends_as_far_as_it_came",
        "test_a_run_whose_canceller_dies_before_the_commit_goes_on",
    )
)


def test_a_message_whose_sender_dies_before_the_commit_was_never_sent(
    stage: Stage, processes: Processes, front: Front
) -> None:
    sender = processes.start(send, stage, "t1", "send a", "kill in-start")
    until(lambda: was_killed(sender))
    assert front.runs() == []
    processes.start(work, stage)
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_a_decision_whose_person_dies_before_the_commit_was_never_taken(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "send a")
    review = front.wait_until_parked(run_id)
    decider = processes.start(decide, stage, "t1", [APPROVE], "kill in-decide")
    until(lambda: was_killed(decider))
    assert front.pending_of(run_id) == review
    assert front.stage.effects() == []
    assert front.bring_to_end(run_id).answer == "send did a"
    check(front)


@pytest.mark.parametrize("worker_lives", [True, False])
def test_a_committed_decision_counts_whoever_dies_then(
    stage: Stage, processes: Processes, front: Front, worker_lives: bool
) -> None:
    worker = processes.start(work, stage)
    run_id = front.begin("t1", "send a")
    front.wait_until_parked(run_id)
    if not worker_lives:
        kill(worker)
    decider = processes.start(decide, stage, "t1", [APPROVE], "kill decided")
    until(lambda: was_killed(decider))
    if not worker_lives:
        processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert front.run(run_id).answer == "send did a"
    check(front)


def test_a_parked_run_needs_no_process(stage: Stage, processes: Processes, front: Front) -> None:
    first = processes.start(work, stage)
    run_id = front.begin("t1", "send a")
    review = front.wait_until_parked(run_id)
    kill(first)
    front.decide(review)
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert front.run(run_id).answer == "send did a"
    check(front)


@pytest.mark.parametrize(
    ("place", "lives"),
    sampled(
        [("asked", False), ("read-pending", False), ("read-pending", True), ("segment-ended", True)],
        by_night=[("asked", True), ("segment-ended", False), ("released", False), ("released", True)],
    ),
)
def test_a_decision_that_overtakes_the_interrupt_is_not_lost(
    stage: Stage, processes: Processes, front: Front, place: str, lives: bool
) -> None:
    first = processes.start(work, stage, f"wait {place}")
    run_id = front.begin("t1", "send a")
    until((stage.home / "waits").exists)
    review = front.wait_until_pending(run_id)
    front.decide(review)
    if lives:
        stage.release("watcher")
    else:
        kill(first)
        processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert front.run(run_id).answer == "send did a"
    check(front)


@pytest.mark.parametrize(
    "place",
    sampled(
        ["claimed", "before-take", "in-conclude"],
        by_night=["woken", "in-claim", "fence-raised", "in-checkpoint:2", "segment-ended", "in-release"],
    ),
)
def test_who_takes_over_may_die_too(stage: Stage, processes: Processes, front: Front, place: str) -> None:
    first = processes.start(work, stage, "kill tool-ran")
    run_id = front.begin("t1", "send a")
    front.decide(front.wait_until_pending(run_id))
    until(lambda: was_killed(first))
    second = processes.start(work, stage, f"kill {place}")
    until(lambda: was_killed(second))
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    [row] = front.calls(run_id)
    assert row.state is CallState.UNCERTAIN
    assert len(front.open_outcomes("t1")) == 1
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_who_only_decides_is_not_taken_for_the_dead_worker(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage, "kill fence-raised")
    run_id = front.begin("t1", "send a")
    until(lambda: was_killed(first))
    later = Front(stage)
    processes.start(work, stage)
    assert later.bring_to_end(run_id).answer == "send did a"
    check(later)
    later.close()


def test_of_three_parallel_calls_each_ends_as_far_as_it_came(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage, "wait before-take:3")
    run_id = front.begin("t1", "send a, hold b, send c")
    front.decide(front.wait_until_pending(run_id))
    until((stage.home / "waits").exists)
    until(lambda: len(stage.effects()) == 2)
    front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    kill(first)
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert [row.state for row in front.calls(run_id)] == [
        CallState.EXECUTED,
        CallState.UNCERTAIN,
        CallState.EXECUTED,
    ]
    assert Counter(line.split()[1] for line in stage.effects()) == {"a": 1, "b": 1, "c": 1}
    assert front.say("t1", "send d") == "send did d"
    check(front)


@pytest.mark.parametrize(
    ("tool", "place", "again"),
    sampled(
        [("post", "tool-ran", None), ("post", "taken", "in-resume"), ("look", "in-keep", "tool-ran")],
        by_night=[
            (tool, place, again)
            for tool in ("post", "look")
            for place in ("taken", "tool-ran", "in-keep")
            for again in (None, "in-resume", "tool-ran")
        ],
    ),
)
def test_a_call_that_may_be_repeated_is_not_uncertain(
    stage: Stage, processes: Processes, front: Front, tool: str, place: str, again: str | None
) -> None:
    first = processes.start(work, stage, f"kill {place}")
    run_id = front.begin("t1", f"{tool} a")
    until(lambda: was_killed(first) or (front.pending_of(run_id) and front.is_idle("t1")))
    if tool == "post":
        front.decide(front.wait_until_pending(run_id))
    until(lambda: was_killed(first))
    if again is not None:
        second = processes.start(work, stage, f"kill {again}")
        until(lambda: was_killed(second))
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    [row] = front.calls(run_id)
    assert row.state is CallState.EXECUTED
    assert {line.split()[2] for line in stage.effects()} == {row.key}
    assert front.run(run_id).answer == f"{tool} did a"
    check(front)


def test_a_question_whose_asker_dies_before_taking_it_back_still_waits(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "send a")
    review = front.wait_until_parked(run_id)
    withdrawer = processes.start(withdraw, stage, review.id, "kill in-close")
    until(lambda: was_killed(withdrawer))
    assert front.pending_of(run_id) == review
    processes.start(withdraw, stage, review.id)
    front.wait_until_ended(run_id)
    assert front.reviews("t1")[0].status is ReviewStatus.WITHDRAWN
    assert front.stage.effects() == []
    check(front)


def test_a_run_whose_canceller_dies_before_the_commit_goes_on(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    run_id = front.begin("t1", "send a")
    front.wait_until_parked(run_id)
    canceller = processes.start(cancel, stage, run_id, "kill in-cancel")
    until(lambda: was_killed(canceller))
    assert front.run(run_id).state is RunState.WAITING
    processes.start(cancel, stage, run_id)
    front.wait_until_ended(run_id)
    assert front.run(run_id).state is RunState.CANCELLED
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_a_call_that_ran_when_its_run_was_cancelled_is_looked_after(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage)
    run_id = front.begin("t1", "hold a")
    front.decide(front.wait_until_pending(run_id))
    until(stage.effects)
    processes.start(cancel, stage, run_id)
    front.wait_until_ended(run_id)
    kill(first)
    processes.start(work, stage)
    front.wait_until_first_call_is(CallState.UNCERTAIN, run_id)
    assert len(front.open_outcomes("t1")) == 1
    assert front.say("t1", "send b") == "send did b"
    check(front)


def test_a_segment_that_fails_may_die_of_it_and_fails_again(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage, "kill in-fail")
    run_id = front.begin("t1", "boom")
    until(lambda: was_killed(first))
    assert front.run(run_id).is_open
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert front.run(run_id).state is RunState.FAILED
    assert front.say("t1", "send b") == "send did b"
    check(front)
