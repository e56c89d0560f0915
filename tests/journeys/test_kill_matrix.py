"""A worker is killed at every place that a turn passes, another goes on: nothing is lost or runs twice."""

from collections import Counter
from multiprocessing.process import BaseProcess

import pytest

from clearance.killpoints import PLACES
from clearance.outcome import CallState
from clearance.review import ReviewKind
from clearance.run import RunState
from tests.journeys.front import Front
from tests.journeys.invariants import check
from tests.journeys.nights import sampled
from tests.journeys.processes import Processes, until, was_killed
from tests.journeys.program import Stage, work

# How often a turn with one held call passes each place: once until it is parked and once after the decision,
# but for those that belong to one of the two.
PASSED = {
    "woken": 2,
    "in-claim": 2,
    "claimed": 2,
    "fence-raised": 2,
    "model-answered": 2,
    "in-ask": 1,
    "asked": 1,
    "read-pending": 1,
    "read-settled": 1,
    "in-checkpoint": 6,
    "segment-ended": 2,
    "in-release": 2,
    "released": 2,
    "before-take": 1,
    "in-take": 1,
    "taken": 1,
    "tool-ran": 1,
    "in-keep": 1,
    "outcome-kept": 1,
}
# The notary passes these at its own times, whatever the turn does.
BY_THE_NOTARY = ("in-number", "numbered", "in-seal")

# From the commit of the call's start to the commit of its outcome nobody can know.
UNKNOWABLE = {"taken:1", "tool-ran:1", "in-keep:1"}

# Passed by whoever sends and decides, or only when something else went wrong before: in the other journeys.
ELSEWHERE = {
    "in-start", "in-decide", "decided", "in-close", "in-cancel", "in-fail",
    "in-conclude", "in-resume", "in-take-again", "file-kept", "stage-reached",
    "in-redact", "redacted", "checkpoints-gone",
}  # fmt: skip


def _ordinals(passed: dict[str, int]) -> list[str]:
    return [f"{name}:{n + 1}" for name, count in passed.items() for n in range(count)]


# A kill before one checkpoint is much like that before another one: by day there is a sample.
CHECKPOINTS = {f"in-checkpoint:{n}" for n in (1, 2, 3, 4, 5, 6)}
BY_DAY = [
    *(place for place in _ordinals(PASSED) if "checkpoint" not in place or place in CHECKPOINTS),
    *(f"{name}:1" for name in BY_THE_NOTARY),
]
BY_NIGHT = [
    *(place for place in _ordinals(PASSED) if place not in BY_DAY),
    *(f"{name}:2" for name in BY_THE_NOTARY),
]
# One place of each kind that a database may see in its own way: a claim, a question, a checkpoint, a call's
# start, its unknowable middle and its outcome, a segment's end, the notary.
ON_POSTGRESQL_BY_DAY = (
    "test_the_matrix_names_every_place_that_a_turn_passes",
    "claimed:2", "asked:1", "in-checkpoint:3", "in-take:1", "tool-ran:1", "outcome-kept:1", "in-release:1",
    "in-seal:1",
)  # fmt: skip
TWO_ROUNDS = _ordinals({name: 2 * count for name, count in PASSED.items()})

pytestmark = pytest.mark.sqlite_by_day(but=ON_POSTGRESQL_BY_DAY)


def test_the_matrix_names_every_place_that_a_turn_passes(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage, "record places")
    run_id = front.begin("t1", "send a")
    front.wait_until_parked(run_id)
    front.bring_to_end(run_id)
    check(front)
    passed = Counter((stage.home / "places").read_text().split())
    assert {name: count for name, count in passed.items() if name not in BY_THE_NOTARY} == PASSED
    assert {*PASSED, *BY_THE_NOTARY, *ELSEWHERE} == set(PLACES)


@pytest.mark.parametrize("place", sampled(BY_DAY, by_night=BY_NIGHT))
def test_a_worker_is_killed_and_another_goes_on(
    stage: Stage, processes: Processes, front: Front, place: str
) -> None:
    first = processes.start(work, stage, f"kill {place}")
    taken_over = _TakenOver(stage, processes, first)
    run_id = front.begin("t1", "send a")
    # What is decided before the worker has parked is no different, and has a test of its own.
    until(
        lambda: was_killed(first) or (front.pending_of(run_id) and front.is_idle("t1")), what="the first stop"
    )
    run = front.bring_to_end(run_id, meanwhile=taken_over)
    until(taken_over, what=f"the worker to be killed at {place}")
    [row] = front.calls(run_id)
    assert run.state is RunState.DONE
    assert (row.state is CallState.UNCERTAIN) == (place in UNKNOWABLE), row
    assert [r.id for r in front.reviews("t1") if r.kind is ReviewKind.CALLS] == [f"{run_id}/1/1"]
    if place not in UNKNOWABLE:
        assert run.answer == "send did a"
    assert front.say("t1", "send b") == "send did b"
    check(front)


@pytest.mark.parametrize("place", sampled(["outcome-kept:2"], by_night=TWO_ROUNDS))
def test_a_worker_is_killed_in_a_turn_of_two_rounds(
    stage: Stage, processes: Processes, front: Front, place: str
) -> None:
    first = processes.start(work, stage, f"kill {place}")
    taken_over = _TakenOver(stage, processes, first)
    run_id = front.begin("t1", "send a | send b")
    run = front.bring_to_end(run_id, meanwhile=taken_over)
    assert run.state is RunState.DONE
    # A decision that came before the worker had parked saves a segment, and with it some places.
    if first.exitcode is None:
        first.kill()
        until(taken_over)
    assert front.say("t1", "send c") == "send did c"
    check(front)


class _TakenOver:
    """True once the first worker was killed; the second one is started at that moment."""

    def __init__(self, stage: Stage, processes: Processes, first: BaseProcess) -> None:
        self._stage = stage
        self._processes = processes
        self._first = first
        self._done = False

    def __call__(self) -> bool:
        if not self._done and was_killed(self._first):
            self._done = True
            self._processes.start(work, self._stage)
        return self._done
