"""Turns over HTTP: what a run comes to, as an answer, or as a stream of what it says on the way."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from clearance.credential import Credential
from clearance.errors import ForbiddenError, NotFoundError, RunFailedError, UnauthorizedError
from clearance.once import Repeated
from clearance.people import Person, may_see
from clearance.run import RunState
from clearance.store import runs
from clearance.web import following, sse
from clearance.web.access import Caller, Shown, Workspace, holder
from clearance.web.bodies import StrictRoute
from clearance.web.events import Leased
from clearance.web.following import OVER, Place, Standing
from clearance.web.problems import refusals
from clearance.web.records import Record, exact
from clearance.workspace import Clearance

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["threads"])


class Turn(Record):
    """What a run came to. `done`: the answer; `waiting`: the review that people must decide."""

    thread_id: str
    run_id: str
    state: RunState
    answer: str | None
    pending_review: dict[str, Any] | None


class Unfinished(Record):
    """The run goes on. Follow it at `/api/v1/runs/{run_id}/stream`, or look at it later."""

    thread_id: str
    run_id: str
    state: RunState


_STREAM: dict[str, Any] = {
    "description": "With `Accept: text/event-stream`, frames: `run`, any number of `token` and `restart`, "
    "then one of `answer`, `review`, `failed`.",
    "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}},
}
TURN: dict[int | str, dict[str, Any]] = {
    200: _STREAM,
    202: {"model": Unfinished, "description": "It goes on after `wait` seconds."},
    **refusals(409, 429, 500),
}


@router.get("/runs/{run_id:path}/stream", response_class=Response, responses={200: _STREAM, **refusals(429)})
async def follow(
    request: Request,
    here: Workspace,
    shown: Shown,
    by: Caller,
    run_id: str,
    *,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="The id of the last frame that came.")
    ] = None,
) -> Response:
    """Stream what a run says: what is there already, and what comes, until it has ended or waits for people.

    With the id of its last frame there is nothing more to send of a run that has ended: 204.
    """
    run = (await run_in_threadpool(following.standing, here, run_id)).run
    if not may_see(by, requester=run.requester):
        raise NotFoundError(f"There is no run {run_id}.")
    if last_event_id == OVER:
        return Response(status_code=204)
    release = request.app.state.streams.take(by)
    return _streamed(request, here, shown, run_id, place=Place.read(last_event_id), release=release)


async def done(
    request: Request,
    here: Clearance,
    shown: Credential,
    by: Person,
    *,
    act: Callable[[], str],
    wait: float,
    accept: str | None,
) -> Response:
    """Do something that a run then works on, and answer with what the run comes to, or with a stream of it.

    What was done before under the same key is followed once more: by its run.
    """

    def acted() -> str:
        try:
            return act()
        except Repeated as repeated:
            return repeated.answer

    if not sse.wants_stream(accept):
        run_id = await run_in_threadpool(acted)
        return _turn(await following.stopped(here, request.app.state.changes, run_id, wait=wait))
    release = request.app.state.streams.take(by)
    try:
        run_id = await run_in_threadpool(acted)
    except BaseException:
        release()
        raise
    return _streamed(request, here, shown, run_id, place=Place(), release=release)


def _streamed(
    request: Request,
    here: Clearance,
    shown: Credential,
    run_id: str,
    *,
    place: Place,
    release: Callable[[], None],
) -> Response:
    changes = request.app.state.changes
    frames = following.frames(here, changes, run_id, place=place, allowed=still_allowed(here, shown, run_id))
    return Leased(sse.stream(frames), release)


def still_allowed(here: Clearance, shown: Credential, run_id: str) -> Callable[[], bool]:
    """Return what tells whether a key still opens a run to who has it: a stream ends when it does not."""

    def allowed() -> bool:
        try:
            with here.database.read() as tx:
                return may_see(holder(tx, shown), requester=runs.run(tx, run_id).requester)
        except (UnauthorizedError, ForbiddenError):
            return False

    return allowed


def _turn(found: Standing) -> Response:
    run = found.run
    told = {"thread_id": run.thread_id, "run_id": run.id, "state": run.state.value}
    if not found.has_stopped:
        return exact(told, status=202)
    if run.state in (RunState.FAILED, RunState.CANCELLED):
        raise RunFailedError(run.id, run.reason or run.state.value)
    return exact({**told, "answer": run.answer, "pending_review": found.review})
