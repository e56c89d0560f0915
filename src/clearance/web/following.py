"""Following: waiting for what a run comes to, and streaming what it says on the way there.

Whoever waits holds no thread: a look at the database is taken when something was committed, and not more
often than `_LEAST` to `_MOST` seconds apart, the rarer the longer it takes.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance.payload import build_review_request
from clearance.run import Run, RunState
from clearance.store import policies, reviews, runs, secret_parts, stream
from clearance.store.stream import Piece
from clearance.web import sse
from clearance.web.changes import Changes
from clearance.workspace import Clearance

_LEAST, _MOST = 0.02, 0.2
_PLACE = re.compile(r"(\d{1,15})-(\d{1,9})(?:-([\d.]{5,40}))?")
OVER = "over"
"""The id of the last frame about a run that has ended: nothing comes after it."""


@dataclass(frozen=True)
class Standing:
    """How a run stands at one instant; `review` is what it waits for, as clients get it."""

    run: Run
    review: dict[str, Any] | None
    said: Sequence[Piece] = ()

    @property
    def has_stopped(self) -> bool:
        """Whether it goes no further by itself: it has ended, or waits for people."""
        return not self.run.is_open or self.review is not None


@dataclass(frozen=True)
class Place:
    """How far a client has followed a run: the last piece it got, and the review that it was told of."""

    attempt: int = 0
    n: int = 0
    review: str = ""

    @classmethod
    def read(cls, text: str | None) -> "Place":
        """Return the place of a frame's id; the beginning for what is none."""
        found = _PLACE.fullmatch(text or "")
        if found is None:
            return cls()
        return cls(int(found[1]), int(found[2]), found[3] or "")

    def __str__(self) -> str:
        return f"{self.attempt}-{self.n}" + (f"-{self.review}" if self.review else "")


def standing(here: Clearance, run_id: str, *, place: Place | None = None) -> Standing:
    """Return how a run stands; with a place also what it said since."""
    with here.database.read() as tx:
        [run] = secret_parts.veiled(tx, [runs.run(tx, run_id)])
        said = stream.after(tx, run_id, attempt=place.attempt, n=place.n) if place is not None else []
        found = reviews.pending(tx, run.thread_id) if run.state is RunState.WAITING else None
        if found is None:
            return Standing(run, None, said)
        schemas = {call.schema_hash: policies.schema(tx, call.schema_hash) for call in found.waiting}
    page = None if here.public_url is None else f"{here.public_url}/reviews/{quote(found.id)}"
    return Standing(run, build_review_request(found, schemas=schemas, address=page), said)


async def stopped(here: Clearance, changes: Changes, run_id: str, *, wait: float) -> Standing:
    """Return how a run stands as soon as it has stopped, or when `wait` seconds are over."""
    pace = _Pace()
    until = _now() + wait
    while True:
        await pace.turn()
        count = changes.count
        found = await run_in_threadpool(standing, here, run_id)
        left = until - _now()
        if found.has_stopped or left <= 0 or changes.ending:
            return found
        await changes.wait(left, since=count)


async def frames(
    here: Clearance, changes: Changes, run_id: str, *, place: Place, allowed: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    """Yield the frames about a run from a place on, until it has stopped, or `allowed` says no."""

    first = True
    async for found in looks(here, changes, run_id, place=place, allowed=allowed):
        if first:
            yield sse.frame("run", _told(found.run), id=str(place))
            first = False
        for frame, behind in _said(found.said, place):
            place = behind
            yield frame
        last = _last(found, place)
        if last is not None:
            yield last
            return


async def looks(
    here: Clearance, changes: Changes, run_id: str, *, place: Place, allowed: Callable[[], bool]
) -> AsyncIterator[Standing]:
    """Yield how a run stands, each time with what it said since the time before, for as long as one asks.

    `allowed` is asked before each look, in a thread; it ends when the client may see no more, and with the
    process.
    """

    def look(since: Place) -> Standing | None:
        return standing(here, run_id, place=since) if allowed() else None

    pace = _Pace()
    while not changes.ending:
        await pace.turn()
        count = changes.count
        found = await run_in_threadpool(look, place)
        if found is None:
            return
        if found.said:
            place = Place(found.said[-1].attempt, found.said[-1].n)
        yield found
        await changes.wait(sse.PING, since=count)


def _said(pieces: Sequence[Piece], place: Place) -> Iterator[tuple[ServerSentEvent, Place]]:
    """Yield the frames of new pieces, each with the place behind it; texts that belong together are one."""
    text = ""
    for piece in pieces:
        again = not piece.text or (place.attempt > 0 and piece.attempt != place.attempt)
        if again and text:
            yield sse.frame("token", {"text": text, "attempt": place.attempt}, id=str(place)), place
            text = ""
        place = Place(piece.attempt, piece.n)
        if again:
            yield sse.frame("restart", {"attempt": place.attempt}, id=str(place)), place
        text += piece.text
    if text:
        yield sse.frame("token", {"text": text, "attempt": place.attempt}, id=str(place)), place


def _last(found: Standing, place: Place) -> ServerSentEvent | None:
    """Return the frame that ends a stream; None while the run goes on, or waits as the client knows."""
    run, review = found.run, found.review
    if run.state is RunState.DONE:
        return sse.frame("answer", {**_told(run), "answer": run.answer or ""}, id=OVER)
    if not run.is_open:
        return sse.frame("failed", {**_told(run), "reason": run.reason or run.state.value}, id=OVER)
    if review is None:
        return None
    _, message, round = review["review_id"].rsplit("/", 2)
    told = Place(place.attempt, place.n, f"{message}.{round}.{review['version']}")
    return sse.frame("review", review, id=str(told)) if told != place else None


def _told(run: Run) -> dict[str, Any]:
    return {"thread_id": run.thread_id, "run_id": run.id, "state": run.state.value}


class _Pace:
    """Keeps looks apart: many who wait at once must not keep the database busy with looking."""

    def __init__(self) -> None:
        self._pause = _LEAST
        self._due = 0.0

    async def turn(self) -> None:
        """Return when it is time for the next look."""
        await asyncio.sleep(max(0.0, self._due - _now()))
        self._due = _now() + self._pause
        self._pause = min(self._pause * 1.1, _MOST)


def _now() -> float:
    return asyncio.get_running_loop().time()
