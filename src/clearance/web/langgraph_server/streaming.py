"""Streams as the LangGraph server sends them: the frames of one run, in the modes that a client asks for."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance.people import Person
from clearance.run import RunState
from clearance.store.stream import Piece
from clearance.web.changes import Changes
from clearance.web.following import Place, Standing, looks
from clearance.web.langgraph_server.messages import assistant
from clearance.web.langgraph_server.states import ThreadState, state_of
from clearance.workspace import Clearance

Interrupts = list[dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """Whom a stream tells what: the run, in which modes; `shown` is told of what was shown."""

    thread_id: str
    run_id: str
    by: Person
    modes: frozenset[str]
    shown: Callable[[Interrupts], None]


async def frames(
    here: Clearance, changes: Changes, told: Told, *, allowed: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    """Yield the frames of a run until it has ended or waits for people."""
    yield _frame("metadata", {"run_id": told.run_id, "thread_id": told.thread_id, "attempt": 1})
    speech = _Speech(told)
    first = True
    async for found in looks(here, changes, told.run_id, place=Place(), allowed=allowed):
        for frame in speech.frames(found.said):
            yield frame
        if found.has_stopped:
            state = await run_in_threadpool(state_of, here, told.thread_id, by=told.by)
            for frame in _last(found, state, told):
                yield frame
            return
        if (first or speech.is_new) and "values" in told.modes:
            state = await run_in_threadpool(state_of, here, told.thread_id, by=told.by)
            yield _frame("values", state.streamed)
        first = speech.is_new = False


@dataclass
class _Speech:
    """What the model is saying. A text that begins anew gets an id of its own."""

    told: Told
    text: str = ""
    place: Place = field(default_factory=Place)
    is_new: bool = False

    def frames(self, pieces: tuple[Piece, ...] | list[Piece] | Any) -> Iterator[ServerSentEvent]:
        """Yield what a client shows of new pieces."""
        for piece in pieces:
            if not piece.text or piece.attempt != self.place.attempt:
                self.is_new = self.place.n > 0
                self.text, self.place = "", Place(piece.attempt, piece.n)
            self.text += piece.text
            if piece.text:
                yield from self._spoken(piece.text)

    def _spoken(self, more: str) -> Iterator[ServerSentEvent]:
        id = f"{self.told.run_id}/said/{self.place}"
        if "messages-tuple" in self.told.modes:
            chunk = {**assistant(more, id=id), "type": "AIMessageChunk", "tool_call_chunks": []}
            node = {"langgraph_node": "llm_call", "thread_id": self.told.thread_id}
            yield _frame("messages", [chunk, {**node, "run_id": self.told.run_id}])
        if "messages" in self.told.modes:
            yield _frame("messages/partial", [assistant(self.text, id=id)])


def _last(found: Standing, state: ThreadState, told: Told) -> Iterator[ServerSentEvent]:
    """Yield the frames that end a stream: how the thread stands, or what went wrong."""
    told.shown(state.interrupts)
    if "messages" in told.modes and state.messages and state.messages[-1]["type"] == "ai":
        yield _frame("messages/complete", [state.messages[-1]])
    if "updates" in told.modes:
        answered = {"llm_call": {"messages": state.messages[-1:]}}
        yield _frame("updates", {"__interrupt__": state.interrupts} if state.interrupts else answered)
    if "values" in told.modes:
        yield _frame("values", state.streamed)
    if found.run.state in (RunState.FAILED, RunState.CANCELLED):
        reason = found.run.reason or found.run.state.value
        yield _frame("error", {"error": f"run_{found.run.state.value}", "message": reason})
    else:
        yield _frame("end", None)


def _frame(kind: str, data: Any) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data, allow_nan=False), event=kind, sep="\n")
