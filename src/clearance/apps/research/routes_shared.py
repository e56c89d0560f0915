"""What the routes of research runs share: the runs that they are about, and who may see one."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from clearance.apps.research.runs import ResearchRuns
from clearance.errors import NotFoundError
from clearance.people import Person, may_see
from clearance.run import Run
from clearance.web import sse

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Frames: `stage`, `hitl_pending`, and at the end `done` or `error`.",
        "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}
RunId = Annotated[str, Path(max_length=1000)]


def with_research(research: ResearchRuns) -> Callable[[Request], Awaitable[None]]:
    """Return what hands the runs to the routes of an application."""

    async def given(request: Request) -> None:
        request.state.research = research

    return given


async def _research(request: Request) -> ResearchRuns:
    found: ResearchRuns = request.state.research
    return found


Runs = Annotated[ResearchRuns, Depends(_research)]


def seen(research: ResearchRuns, run_id: str, *, by: Person) -> Run:
    """Return a research run; for who may not see it there is none, nor for one of another program."""
    try:
        run = research.run(run_id)
    except NotFoundError:
        run = None
    if run is None or not may_see(by, requester=run.requester):
        raise NotFoundError(f"There is no research run {run_id}.")
    return run
