"""Streams about a research run, frame by frame: each stage, and what the run waits for or has come to.

The id of a frame is its place on the run's way: the number of the stage, with `.gate` behind it when people
are waited for there. A client that comes again with it goes on from that place.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.apps.research.state import PENDING
from clearance.run import Run, RunState
from clearance.store.run_files import RunStage
from clearance.web import sse
from clearance.web.changes import Changes

OVER = "over"
"""The id of the last frame about a run that has ended."""
_GATE = ".gate"
_PAUSE = 0.02
_PLACE = re.compile(r"(\d{1,9})(\.gate)?")


@dataclass(frozen=True)
class Place:
    """How far a client has followed a run: the last stage that it got, and whether it got its gate, too."""

    n: int = 0
    gate: bool = False

    @classmethod
    def read(cls, text: str | None) -> "Place":
        """Return the place of a frame's id; the beginning for what is none."""
        found = _PLACE.fullmatch(text or "")
        return cls() if found is None else cls(int(found[1]), found[2] is not None)

    def __str__(self) -> str:
        return f"{self.n}{_GATE if self.gate else ''}"


@dataclass(frozen=True)
class _Look:
    run: Run
    stages: Sequence[RunStage]
    last: RunStage | None
    waiting: Waiting | None


def place_now(research: ResearchRuns, run_id: str) -> Place:
    """Return the place of a client that has seen everything up to now, the gate too."""
    stages = research.stages(run_id)
    return Place(stages[-1].n, gate=True) if stages else Place()


async def frames(
    research: ResearchRuns,
    changes: Changes,
    run_id: str,
    *,
    place: Place,
    to_the_end: bool,
    allowed: Callable[[], bool],
) -> AsyncIterator[ServerSentEvent]:
    """Yield the frames about a run from a place on, until it waits for people or has ended.

    With `to_the_end` it goes on behind the gates. `allowed` is asked before each look, in a thread; the
    stream ends when the client may see no more.
    """

    def look() -> _Look | None:
        return _look(research, run_id, after=place.n) if allowed() else None

    while not changes.ending:
        await asyncio.sleep(_PAUSE)  # a busy workspace commits often
        count = changes.count
        found = await run_in_threadpool(look)
        if found is None:
            return
        for stage in found.stages:
            place = Place(stage.n)
            yield _stage(run_id, stage, place)
        if not found.run.is_open:
            yield _ended(found)
            return
        if found.waiting is not None and not place.gate:
            place = Place(place.n, gate=True)
            yield _pending(run_id, found.waiting, place)
            if not to_the_end:
                return
        await changes.wait(sse.PING, since=count)


def _look(research: ResearchRuns, run_id: str, *, after: int) -> _Look:
    # First how it stands, then what led there: so the last stage is always told.
    run = research.run(run_id)
    waiting = research.waiting(run_id) if run.is_open else None
    stages = research.stages(run_id, after=after)
    last = stages[-1] if stages else next(iter(research.stages(run_id, after=after - 1)), None)
    at_gate = last is not None and last.stage in PENDING
    return _Look(run, stages, last, waiting if at_gate else None)


def _stage(run_id: str, stage: RunStage, place: Place) -> ServerSentEvent:
    told = {"run_id": run_id, "stage": stage.stage, "line": stage.state.get("line", "")}
    return _frame("stage", {**told, "at": stage.at.isoformat()}, id=str(place))


def _pending(run_id: str, waiting: Waiting, place: Place) -> ServerSentEvent:
    plan = waiting.plan
    told = {"gate": waiting.gate.value, "summary": plan.summary, "run_id": run_id}
    seen = {"plan_sha256": plan.sha256, "plan_version": plan.version, "review_id": waiting.review.id}
    return _frame("hitl_pending", {**told, **seen}, id=str(place))


def _ended(found: _Look) -> ServerSentEvent:
    run, last = found.run, found.last
    stage = "started" if last is None else last.stage
    told: dict[str, Any] = {"run_id": run.id, "stage": stage}
    if run.state is not RunState.DONE or last is None:
        reason = run.reason or run.state.value
        return _frame("error", {**told, "state": run.state.value, "error": reason}, id=OVER)
    given = {name: last.state.get(name, "") for name in ("analyst_summary", "report_artifact_path")}
    return _frame("done", {**told, **given}, id=OVER)


def _frame(kind: str, told: dict[str, Any], *, id: str) -> ServerSentEvent:
    return sse.frame(kind, {"type": kind, **told}, id=id)
