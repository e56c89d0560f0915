"""Following a run from its page: a word each time that there is something new to see."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from sqlalchemy import Connection
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance.apps.research.pages.addresses import HERE
from clearance.apps.research.routes_shared import RunId, Runs, seen
from clearance.credential import digest_of
from clearance.run import OPEN
from clearance.store import reviews, run_files, runs, sessions
from clearance.web import sse
from clearance.web.access import Workspace
from clearance.web.changes import Changes
from clearance.web.events import Leased
from clearance.web.pages.viewer import Signed, shown

router = APIRouter(include_in_schema=False)

_PAUSE = 0.05


@router.get(f"{HERE}/{{run_id}}/events")
async def follow(
    request: Request,
    here: Workspace,
    research: Runs,
    viewer: Signed,
    run_id: RunId,
    *,
    known: Annotated[str, Query(max_length=100, description="How the run stood on the page.")] = "",
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Stream that a run has moved, and no more: what is new is fetched. It ends with the session.

    The frame `over` says that nothing comes any more.
    """
    await run_in_threadpool(lambda: seen(research, run_id, by=viewer.person))
    digest = digest_of(shown(request, here) or "")

    def look() -> str | None:
        with here.database.read() as tx:
            now = here.database.now(tx)
            if sessions.opened_by(tx, digest, now=now, idle=here.session_limits.idle) is None:
                return None
            return standing(tx, run_id)

    release = request.app.state.streams.take(viewer.person)
    frames = _frames(request.app.state.changes, look, known=last_event_id or known)
    return Leased(sse.stream(frames), release)


def standing(tx: Connection, run_id: str) -> str:
    """Return how a run stands, as a text that differs as soon as its page would."""
    stage, run, review = run_files.last_stage(tx, run_id), runs.run(tx, run_id), reviews.pending(tx, run_id)
    place = 0 if stage is None else stage.n
    return f"{run.state}-{place}-{'' if review is None else f'{review.round}.{review.version}'}"


async def _frames(
    changes: Changes, look: Callable[[], str | None], *, known: str
) -> AsyncIterator[ServerSentEvent]:
    # With an id: a tab that is hidden before its first event would else begin anew when it comes back.
    yield sse.frame("hello", {}, id=known)
    while not changes.ending:
        count = changes.count
        found = await run_in_threadpool(look)
        if found is None:
            return
        if found != known:
            known = found
            yield sse.frame("moved", {}, id=known)
        if known.partition("-")[0] not in OPEN:
            yield sse.frame("over", {}, id=known)
            return
        await changes.wait(sse.PING, since=count)
        await asyncio.sleep(_PAUSE)  # a busy workspace commits often
