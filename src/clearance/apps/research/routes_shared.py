"""What the routes of research runs share: the runs that they are about, who may see one, and its files."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Path, Request, Response

from clearance.apps.research.runs import ResearchRuns
from clearance.errors import NotFoundError
from clearance.people import Person, may_see
from clearance.run import Run
from clearance.store import run_files
from clearance.web import sse
from clearance.workspace import Clearance

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Frames: `stage`, `hitl_pending`, and at the end `done` or `error`.",
        "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}
# A report is a page: where it is opened from here it runs nothing, and reaches nothing.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
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
        # No id has a null character, and not every database could even look for one.
        run = None if "\0" in run_id else research.run(run_id)
    except NotFoundError:
        run = None
    if run is None or not may_see(by, requester=run.requester):
        raise NotFoundError(f"There is no research run {run_id}.")
    return run


def file_answer(
    here: Clearance, run_id: str, name: str, *, known: str | None = None, opened: bool = False
) -> Response:
    """Return a file of a run as it is kept: to be saved, or `opened` where a browser shows such files.

    `known` are the entity tags that the client has. Raises `NotFoundError`: a name is looked up as it is.
    """
    with here.database.read() as tx:
        file = None if "\0" in name else run_files.file_of(tx, run_id, name)
        content = None if file is None else run_files.content_of(tx, run_id, name)
    if file is None or content is None:
        raise NotFoundError(f"Run {run_id} has no file of that name.")
    etag = f'"{file.sha256}"'
    how = "inline" if opened else "attachment"
    headers = {
        "ETag": etag,
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
        "Content-Security-Policy": SANDBOX,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-cache",
    }
    if etag in (known or ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=file.media_type, headers=headers)
