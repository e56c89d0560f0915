"""Telling: the events of a run as AG-UI has them, from what it says and the messages that are kept of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clearance.payload import RESPONSE_SCHEMA
from clearance.run import RunState
from clearance.store.stream import Piece
from clearance.web.agui.asked import interrupt_id
from clearance.web.following import Standing

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent, Interrupt, Message

Record = Mapping[str, Any]


@dataclass
class Telling:
    """What a client was told so far. `known` are the messages that were there before, by id.

    `ids` are the client's own ids of what its user said, with the texts.
    """

    thread_id: str
    run_id: str
    known: frozenset[str]
    ids: Sequence[tuple[str, str]] = ()
    spoken: list[str] = field(default_factory=list)
    text: str = ""
    open_id: str | None = None
    attempt: int = 0

    def began(self) -> "BaseEvent":
        """Return the event with which a run begins, under the id that the client gave it."""
        from ag_ui.core import RunStartedEvent

        return RunStartedEvent(thread_id=self.thread_id, run_id=self.run_id)

    def saying(self, pieces: Sequence[Piece]) -> "Iterator[BaseEvent]":
        """Yield the events of what the model is saying now."""
        for piece in pieces:
            if not piece.text or piece.attempt != self.attempt:
                yield from self._ended()
                self.attempt = piece.attempt
            if piece.text:
                id = self.open_id or f"{self.run_id}/said/{piece.attempt}-{piece.n}"
                yield from self._more(piece.text, id=id)

    def stopped(self, found: Standing, records: Sequence[Record]) -> "Iterator[BaseEvent]":
        """Yield the events with which a run stops: what was not told yet, all messages, and how it stands."""
        from ag_ui.core import MessagesSnapshotEvent

        for record in records:
            if record["id"] not in self.known:
                yield from self._record(record)
        yield from self._ended()
        yield MessagesSnapshotEvent(messages=messages_of(records, ids=self.ids))
        yield self._over(found)

    def _record(self, record: Record) -> "Iterator[BaseEvent]":
        from ag_ui.core import ToolCallArgsEvent, ToolCallEndEvent, ToolCallResultEvent, ToolCallStartEvent

        if record["role"] == "tool":
            yield ToolCallResultEvent(
                message_id=record["id"],
                tool_call_id=record["tool_call_id"],
                content=record["text"],
                role="tool",
            )
        if record["role"] != "assistant":
            return
        yield from self._whole(record)
        for call in _offered(record):
            id = call["id"]
            yield ToolCallStartEvent(
                tool_call_id=id, tool_call_name=call["name"], parent_message_id=record["id"]
            )
            yield ToolCallArgsEvent(tool_call_id=id, delta=call["arguments"])
            yield ToolCallEndEvent(tool_call_id=id)

    def _whole(self, record: Record) -> "Iterator[BaseEvent]":
        """Yield what was not said yet of a message's text."""
        text = record["text"]
        if self.open_id is not None and text.startswith(self.text):
            yield from self._more(text[len(self.text) :], id=self.open_id)
        elif text not in self.spoken:
            yield from self._ended()
            yield from self._more(text, id=record["id"])
        yield from self._ended()

    def _more(self, text: str, *, id: str) -> "Iterator[BaseEvent]":
        from ag_ui.core import TextMessageContentEvent, TextMessageStartEvent

        if text and self.open_id is None:
            self.open_id = id
            yield TextMessageStartEvent(message_id=id, role="assistant")
        if text:
            self.text += text
            yield TextMessageContentEvent(message_id=id, delta=text)

    def _ended(self) -> "Iterator[BaseEvent]":
        from ag_ui.core import TextMessageEndEvent

        if self.open_id is not None:
            yield TextMessageEndEvent(message_id=self.open_id)
            self.spoken.append(self.text)
        self.text, self.open_id = "", None

    def _over(self, found: Standing) -> "BaseEvent":
        from ag_ui.core import (
            RunErrorEvent,
            RunFinishedCancelledOutcome,
            RunFinishedEvent,
            RunFinishedInterruptOutcome,
            RunFinishedSuccessOutcome,
        )

        if found.run.state is RunState.FAILED:
            return RunErrorEvent(message=found.run.reason or "The run failed.", code="run_failed")
        outcome: Any = RunFinishedSuccessOutcome()
        if found.run.state is RunState.CANCELLED:
            outcome = RunFinishedCancelledOutcome()
        elif found.review is not None:
            outcome = RunFinishedInterruptOutcome(interrupts=interrupts_of(found.review))
        return RunFinishedEvent(thread_id=self.thread_id, run_id=self.run_id, outcome=outcome)


def interrupts_of(review: Record) -> "list[Interrupt]":
    """Return what a run waits for: one interrupt for each call, so that every answer names its call."""
    from ag_ui.core import Interrupt

    pairs = zip(review["action_requests"], review["review_configs"], strict=True)
    return [
        Interrupt(
            id=interrupt_id(review, request["call"]),
            reason=review["reason"],
            message=request["description"],
            tool_call_id=request["tool_call_id"],
            response_schema=_answer_schema(config["allowed_decisions"]),
            expires_at=review["expires_at"],
            metadata={
                **{name: request[name] for name in ("name", "args", "arguments", "risk", "flags", "faults")},
                "allowed_decisions": config["allowed_decisions"],
                "args_schema": config["args_schema"],
                **{name: review[name] for name in ("review_id", "review_url", "version")},
            },
        )
        for request, config in pairs
    ]


def _answer_schema(allowed: Sequence[str]) -> dict[str, Any]:
    whole = RESPONSE_SCHEMA["properties"]["decisions"]["items"]
    fields = {name: each for name, each in whole["properties"].items() if name != "call"}
    return {**whole, "properties": {**fields, "type": {"enum": list(allowed)}}}


def messages_of(records: Sequence[Record], *, ids: Sequence[tuple[str, str]] = ()) -> "list[Message]":
    """Return a thread's messages as AG-UI has them; what the product tells the model is not among them.

    What a client has said keeps the id that the client gave it: else it would stand there as something new,
    behind what answers it.
    """
    from ag_ui.core import AssistantMessage, FunctionCall, ToolCall, ToolMessage, UserMessage

    found: list[Message] = []
    unused = list(ids)
    for record in records:
        id, text = record["id"], record["text"]
        match record["role"]:
            case "user":
                given = next((each for each in unused if each[1] == text), (id, text))
                unused = unused[unused.index(given) + 1 :] if given in unused else unused
                found.append(UserMessage(id=given[0], content=text))
            case "assistant":
                calls = [
                    ToolCall(
                        id=call["id"], function=FunctionCall(name=call["name"], arguments=call["arguments"])
                    )
                    for call in _offered(record)
                ]
                found.append(AssistantMessage(id=id, content=text, tool_calls=calls or None))
            case "tool":
                error = text if record["error"] else None
                found.append(
                    ToolMessage(id=id, content=text, tool_call_id=record["tool_call_id"], error=error)
                )
    return found


def _offered(record: Record) -> list[Record]:
    return [call for call in record["tool_calls"] if call["error"] is None]
