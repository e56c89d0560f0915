"""Runs as the LangGraph server has them: begun or gone on with, and told about as a stream or later."""

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from clearance.credential import Scope
from clearance.run import RunState
from clearance.store import runs
from clearance.web import sse
from clearance.web.access import Workspace, needs
from clearance.web.bodies import StrictRoute
from clearance.web.events import Leased
from clearance.web.frontends import LANGGRAPH, FrontEndKey, FrontEndUser
from clearance.web.langgraph_server.acting import act
from clearance.web.langgraph_server.asked import RunAsked
from clearance.web.langgraph_server.streaming import Told, frames
from clearance.web.langgraph_server.threads import last_shown
from clearance.web.records import exact
from clearance.web.turns import still_allowed

router = APIRouter(prefix=LANGGRAPH, route_class=StrictRoute, include_in_schema=False)

_STATUS = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "running",
    RunState.WAITING: "interrupted",
    RunState.DONE: "success",
    RunState.FAILED: "error",
    RunState.CANCELLED: "interrupted",
}


@router.post("/threads/{thread_id}/runs/stream")
@needs(Scope.PROPOSE, Scope.DECIDE)
async def stream_run(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, thread_id: str, body: RunAsked
) -> Response:
    """Take what a person says or decides, and stream what the agent makes of it until it stops."""
    shown = last_shown(request)
    release = request.app.state.streams.take(by)
    try:
        run_id = await run_in_threadpool(
            act, here, thread_id, body, by=by, shown=shown.name(key.id, thread_id)
        )
    except BaseException:
        release()
        raise
    told = Told(
        thread_id, run_id, by, body.modes, lambda interrupts: shown.note(key.id, thread_id, interrupts)
    )
    coming = frames(here, request.app.state.changes, told, allowed=still_allowed(here, key, run_id))
    headers = {"Content-Location": f"/threads/{thread_id}/runs/{run_id}"}
    return Leased(sse.stream(coming, headers=headers, retry=None), release)


@router.post("/threads/{thread_id}/runs")
@needs(Scope.PROPOSE, Scope.DECIDE)
def create_run(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, thread_id: str, body: RunAsked
) -> Response:
    """Take what a person says or decides, and tell the run that works on it."""
    run_id = act(here, thread_id, body, by=by, shown=last_shown(request).name(key.id, thread_id))
    with here.database.read() as tx:
        run = runs.run(tx, run_id)
    record: dict[str, Any] = {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.program,
        "created_at": run.created_at.isoformat(),
        "updated_at": (run.ended_at or run.created_at).isoformat(),
        "status": _STATUS[run.state],
        "metadata": {},
        "multitask_strategy": "reject",
    }
    return exact(record, headers={"Content-Location": f"/threads/{thread_id}/runs/{run_id}"})
