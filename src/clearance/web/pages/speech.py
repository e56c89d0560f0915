"""What the page of a conversation is told as it happens: the text that is being said, and that more changed.

A frame without a kind is the text so far, as HTML for its place in the page; `changed` makes the page fetch
its parts anew. Nothing has to be resumed: a stream that begins again tells the whole text.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from sqlalchemy import Connection
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance.errors import NotFoundError, UnauthorizedError
from clearance.people import Person
from clearance.store import runs, secret_parts
from clearance.web import following, sse
from clearance.web.access import Workspace
from clearance.web.changes import Changes
from clearance.web.events import Leased
from clearance.web.following import Place, Standing
from clearance.web.pages.live import session_check
from clearance.web.pages.talk import conversation_seen, heard, mark_of, spoken
from clearance.web.pages.viewer import Signed
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

_PAUSE = 0.1
"""Seconds between two looks at a conversation in which nothing goes on."""


@router.get("/events/chat/{thread_id:path}")
async def conversation_events(
    request: Request, here: Workspace, viewer: Signed, thread_id: str, seen: str = ""
) -> Response:
    """Stream a conversation to its page, which has the state `seen`. It ends with the session."""

    def begin() -> bool:
        with here.database.read() as tx:
            program = conversation_seen(here, tx, thread_id, by=viewer.person).program
            return secret_parts.of_program(tx, program).any

    quiet = await run_in_threadpool(begin)
    listener = _Listener(here, thread_id, still=session_check(request, here), quiet=quiet)
    release = request.app.state.streams.take(viewer.person)
    changes: Changes = request.app.state.changes
    return Leased(sse.stream(listener.frames(changes, seen=seen)), release)


@dataclass(frozen=True)
class _Listener:
    """One page that is open. `quiet`: the program has secrets, which a text that is not whole may repeat."""

    here: Clearance
    thread_id: str
    still: Callable[[Connection], Person]
    quiet: bool

    async def frames(self, changes: Changes, *, seen: str) -> AsyncIterator[ServerSentEvent]:
        """Yield the frames, from run to run, for as long as the page is open and its session is."""
        yield sse.frame("hello", {})
        while not changes.ending:
            count = changes.count
            found = await run_in_threadpool(self._look)
            if found is None:
                return
            standing, mark = found
            if mark != seen:
                seen = mark
                yield sse.frame("changed", {})
            if not standing.run.is_open:
                await changes.wait(sse.PING, since=count)
                await asyncio.sleep(_PAUSE)
                continue
            async for frame, mark in self._follow(changes, standing.run.id, seen=seen):
                seen = mark
                yield frame

    async def _follow(
        self, changes: Changes, run_id: str, *, seen: str
    ) -> AsyncIterator[tuple[ServerSentEvent, str]]:
        """Yield the frames about one run until it has ended, each with what the page has then."""
        text = ""
        looks = following.looks(self.here, changes, run_id, place=Place(), allowed=self._may)
        async for found in looks:
            text = heard(text, found.said)
            if found.said and not self.quiet:
                html = await run_in_threadpool(spoken, text)
                yield ServerSentEvent(str(html) or "<p></p>"), seen
            mark = await run_in_threadpool(mark_of, self.here, found)
            if mark != seen:
                seen = mark
                yield sse.frame("changed", {}), seen
            if not found.run.is_open:
                return

    def _look(self) -> tuple[Standing, str] | None:
        if not self._may():
            return None
        with self.here.database.read() as tx:
            newest = runs.list_runs(tx, thread_id=self.thread_id, limit=1)[0]
        standing = following.standing(self.here, newest.id)
        return standing, mark_of(self.here, standing)

    def _may(self) -> bool:
        try:
            with self.here.database.read() as tx:
                conversation_seen(self.here, tx, self.thread_id, by=self.still(tx))
        except (UnauthorizedError, NotFoundError):
            return False
        return True
