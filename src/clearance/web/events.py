"""Events: what happens, as it happens, read from the trail with a cursor and filtered by who may see it.

A frame carries no arguments: what changed is fetched. Its id is the number of the trail's entry, so that a
client that comes again with `Last-Event-ID` misses nothing.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from sqlalchemy import Connection
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from clearance.audit import Entry, time_text
from clearance.errors import Fault, ForbiddenError, InvalidInputError, UnauthorizedError
from clearance.people import Person, sees_only
from clearance.store import audit, runs
from clearance.store.trailing import Wanted, of_viewer
from clearance.web import sse
from clearance.web.access import Caller, Shown, Workspace, holder
from clearance.web.bodies import StrictRoute
from clearance.web.changes import Changes
from clearance.web.problems import refusals
from clearance.web.runs import seen
from clearance.workspace import Clearance

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["events"])

MOST_STREAMS = 8
"""Streams that one person may have open in one application."""
Topics = Annotated[
    str, Query(max_length=2000, description="`reviews`, `runs`, `run:ID`; several with commas between.")
]
LastEventId = Annotated[
    str | None, Header(pattern="^[0-9]{1,15}$", description="The id of the last frame that came.")
]
_FAMILIES = {"reviews": "review", "runs": "run"}
_AT_ONCE = 500


class Streams:
    """How many streams each person has open here; used from the event loop alone."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def take(self, person: Person) -> Callable[[], None]:
        """Take one more, and return what gives it back. Raises the problem 429 when there are too many."""
        if self._open[person.id] >= MOST_STREAMS:
            raise HTTPException(429, headers={"Retry-After": "15"})
        self._open[person.id] += 1
        return lambda: self._open.subtract([person.id])


class Leased(Response):
    """A stream that gives its place back when it has ended, however it did."""

    def __init__(self, inner: EventSourceResponse, release: Callable[[], None]) -> None:
        self._inner = inner
        self._release = release
        super().__init__(media_type=sse.MEDIA_TYPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await self._inner(scope, receive, send)
        finally:
            self._release()


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: {
            "description": "Frames: `id` is the number in the trail, `event` the kind, `data` JSON.",
            "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        **refusals(404, 429),
    },
)
async def events(
    request: Request,
    here: Workspace,
    shown: Shown,
    by: Caller,
    *,
    topics: Topics = "reviews,runs",
    last_event_id: LastEventId = None,
) -> Response:
    """Stream what happens from now on, or since the frame that the client saw last."""
    return await streamed(
        request, here, by, still=lambda tx: holder(tx, shown), topics=topics, last_event_id=last_event_id
    )


async def streamed(
    request: Request,
    here: Clearance,
    by: Person,
    *,
    still: Callable[[Connection], Person],
    topics: str,
    last_event_id: str | None,
) -> Response:
    """Return the stream of a person, whichever door it goes through.

    `still` gives the person as they are now. It raises `UnauthorizedError` or `ForbiddenError` when what
    opened the door opens it no more: then the stream ends. Raises `InvalidInputError` and `NotFoundError`
    for the topics, and the problem 429.
    """
    wanted = _wanted(topics)
    start = await run_in_threadpool(
        _start, here, wanted, by, None if last_event_id is None else int(last_event_id)
    )
    release = request.app.state.streams.take(by)
    changes: Changes = request.app.state.changes
    frames = _frames(_Viewer(here, wanted, still), changes, start=start)
    return Leased(sse.stream(frames), release)


@dataclass(frozen=True)
class _Viewer:
    """Who looks at a stream, as `still` gives them at each look, and what at."""

    here: Clearance
    wanted: Wanted
    still: Callable[[Connection], Person]

    def read(self, after: int, until: int) -> list[Entry] | None:
        """Return the entries up to `until`; None when what opened the stream opens nothing any more."""
        with self.here.database.read() as tx:
            try:
                person = self.still(tx)
            except (UnauthorizedError, ForbiddenError):
                return None
            where = of_viewer(self.wanted, asked_by=sees_only(person))
            return audit.read_after(tx, after, limit=until - after, where=[*where, audit.up_to(until)])


async def _frames(
    viewer: _Viewer, changes: Changes, *, start: tuple[int, str]
) -> AsyncIterator[ServerSentEvent]:
    after, time = start
    topics = {"topics": [*viewer.wanted.families, *(f"run:{each}" for each in viewer.wanted.run_ids)]}
    # With an id: a tab that is hidden before its first event would else begin anew when it comes back.
    yield _frame(after, "hello", time=time, subject="", data=topics)
    while not changes.ending:
        count, last = changes.count, changes.last_seq
        while after < last:
            until = min(after + _AT_ONCE, last)
            found = await run_in_threadpool(viewer.read, after, until)
            if found is None:
                return
            for entry in found:
                yield _frame(
                    entry.seq or 0,
                    entry.kind,
                    time=time_text(entry.time),
                    subject=entry.subject,
                    data={**entry.facts, "actor": entry.actor},
                )
            after = until
        await changes.wait(sse.PING, since=count)


def _frame(seq: int, kind: str, *, time: str, subject: str, data: dict[str, Any]) -> ServerSentEvent:
    told = {"v": 1, "seq": seq, "type": kind, "time": time, "subject": subject, "data": data}
    return sse.frame(kind, told, id=str(seq))


def _start(here: Clearance, wanted: Wanted, by: Person, last_event_id: int | None) -> tuple[int, str]:
    """Return the number to begin after, and the time. Raises `NotFoundError` for a run that is not theirs."""
    with here.database.read() as tx:
        for run_id in wanted.run_ids:
            seen(runs.run(tx, run_id), by=by)
        last = audit.last_seq(tx)
        now = time_text(here.database.now(tx))
    return (last if last_event_id is None else min(last_event_id, last)), now


def _wanted(topics: str) -> Wanted:
    families, run_ids, faults = [], [], []
    for topic in filter(None, (each.strip() for each in topics.split(","))):
        if topic in _FAMILIES:
            families.append(_FAMILIES[topic])
        elif topic.startswith("run:") and topic != "run:":
            run_ids.append(topic.removeprefix("run:"))
        else:
            faults.append(Fault("/query/topics", f"{topic!r} is none of reviews, runs, run:ID"))
    if faults or not (families or run_ids):
        raise InvalidInputError("There are no such topics.", faults=faults)
    return Wanted(families=tuple(dict.fromkeys(families)), run_ids=tuple(dict.fromkeys(run_ids)))
