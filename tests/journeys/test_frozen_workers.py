"""A worker that was frozen and thaws: its successor has taken over, and what it still writes is refused.

On PostgreSQL only: an SQLite file's frozen worker keeps its threads until it goes on or is killed.
"""

from multiprocessing.process import BaseProcess

import pytest

from clearance.audit import AuditKind, Entry
from clearance.errors import FenceLostError
from clearance.keeping import conclude
from clearance.ledger import Taken
from clearance.outcome import CallState
from clearance.review import ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store.trail import trail
from clearance.toolcall import Tool
from tests.journeys.front import Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import Processes, go_on, is_stopped, stop, until
from tests.journeys.program import Stage, work

# Inside of a transaction a frozen worker keeps its locks until the server ends its session: ten seconds.
BY_DAY = ("claimed", "read-pending", "before-take", "taken", "outcome-kept", "in-take")
BY_NIGHT = (
    "woken", "fence-raised", "model-answered", "asked", "segment-ended", "read-settled", "tool-ran",
    "model-answered:2", "segment-ended:2", "in-claim", "in-ask", "in-checkpoint:8", "in-keep", "in-release",
    "in-release:2",
)  # fmt: skip


@pytest.fixture
def database_kind() -> str:
    """Only this one: see above."""
    return "postgresql"


def test_a_late_result_of_a_frozen_worker_is_kept_and_answers_the_question(
    stage: Stage, processes: Processes, front: Front
) -> None:
    first = processes.start(work, stage)
    run_id = front.begin("t1", "hold a")
    front.decide(front.wait_until_pending(run_id))
    until(stage.effects)
    stop(first)
    processes.start(work, stage)
    front.wait_until_ended(run_id)
    assert "its outcome is unknown" in (front.run(run_id).answer or "")
    [question] = front.open_outcomes("t1")
    stage.release("a")
    go_on(first)
    front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    assert front.open_outcomes("t1") == []
    assert front.stage.effects() == [f"hold a {run_id}/1/0"]
    assert "hold did a" in front.say("t1", "send b")
    told = [entry for entry in trail(front.opened.database).entries if isinstance(entry, Entry)]
    assert [entry.subject for entry in told if entry.kind == AuditKind.CALL_LATE] == [f"{run_id}/1/0"]
    status = {review.id: review.status for review in front.reviews("t1")}
    assert status[question.id] is ReviewStatus.WITHDRAWN
    check(front)


@pytest.mark.parametrize("place", sampled(BY_DAY, by_night=BY_NIGHT))
def test_a_worker_that_thaws_after_it_was_replaced_runs_nothing_twice(
    stage: Stage, processes: Processes, front: Front, place: str
) -> None:
    first = processes.start(work, stage, f"stop {place}")
    run_id = front.begin("t1", "send a")
    until(lambda: is_stopped(first) or (front.pending_of(run_id) and front.is_idle("t1")))
    taken_over = _TakenOver(stage, processes, first)
    run = front.bring_to_end(run_id, meanwhile=taken_over)
    assert run.state is RunState.DONE
    go_on(first)
    # By now two workers live, and either may be the one.
    assert front.say("t1", "send b").endswith("send did b")
    front.wait_until_idle("t1")
    until(lambda: len(front.stage.effects()) == 2)
    front.wait_until_first_call_is(CallState.EXECUTED, run_id)
    assert [r.id for r in front.reviews("t1") if r.kind is ReviewKind.CALLS][-1] == f"{run_id}/1/1"
    check(front)


class _TakenOver:
    """Starts the second worker once the first one is frozen."""

    def __init__(self, stage: Stage, processes: Processes, first: BaseProcess) -> None:
        self._stage = stage
        self._processes = processes
        self._first = first
        self._done = False

    def __call__(self) -> None:
        if not self._done and is_stopped(self._first):
            self._done = True
            self._processes.start(work, self._stage)


def test_a_superseded_segment_calls_nothing_uncertain(front: Front) -> None:
    front.begin("t1", "send a")
    tool = Tool("send", {}, lambda _arguments, _key: None)
    taken = Taken("r1/1/0", 1, "r1", "t1", tool, "{}")
    with pytest.raises(FenceLostError):
        conclude(front.opened.ledger, taken, fence=7)
