"""The calls that an agent's state leaves open: those of its last message, each with the product's own key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages import ToolCall as MessageCall

from clearance.adapters import history
from clearance.adapters.intake import Faulty, read_calls
from clearance.outcome import CallState, Outcome
from clearance.review import Answer, ReviewedCall
from clearance.run import Run
from clearance.store import reviews
from clearance.store.database import Database
from clearance.toolcall import Tool, ToolCall

MARK = "clearance_turn"
"""The state's private field that says which message of which run was numbered last."""


@dataclass(frozen=True)
class Turn:
    """The last message of a run, and its calls. `number` is the message's within the run; `open` are the ids
    that nothing answers yet; `passes` says how often the message came by its review before."""

    run: Run
    message: AIMessage
    number: int
    passes: int
    calls: tuple[ToolCall | Faulty, ...]
    open: frozenset[str]

    @property
    def waiting(self) -> list[ToolCall | Faulty]:
        """The calls that are to be answered."""
        return [call for call in self.calls if call.tool_call_id in self.open]

    @property
    def proposed(self) -> tuple[ToolCall, ...]:
        """Those of them that may be run."""
        return tuple(call for call in self.waiting if isinstance(call, ToolCall))

    def call(self, call_id: str | None) -> ToolCall | Faulty | None:
        """Return the call that the model gave this id."""
        return next((call for call in self.calls if call.tool_call_id == call_id), None)

    def unreadable(self) -> list[Faulty]:
        """Return the open calls that LangChain runs nothing for: it has them as invalid ones."""
        valid = {call["id"] for call in self.message.tool_calls}
        return [c for c in self.waiting if isinstance(c, Faulty) and c.tool_call_id not in valid]

    def mark(self) -> dict[str, Any]:
        """Return what the state keeps of the turn."""
        kept = {"run": self.run.id, "message": self.message.id, "number": self.number}
        return {MARK: {**kept, "passes": self.passes + 1}}


def last_message(messages: Sequence[BaseMessage]) -> tuple[AIMessage, frozenset[str]] | None:
    """Return the AI message that a history ends with, and the ids of its calls that are not answered."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            called = bool(message.tool_calls or message.invalid_tool_calls)
            return (message, frozenset(history.unanswered_tool_calls(messages))) if called else None
        if not isinstance(message, ToolMessage):
            return None
    return None


def read_turn(
    state: Mapping[str, Any], run: Run, *, tools: Mapping[str, Tool], asked: MessageCall | None = None
) -> Turn | None:
    """Return the turn that a state is in; None where its last message has no calls.

    `asked` is a call of the message as it is about to be run: another middleware may have changed it.
    The number of a message does not follow from how many stand before it, which others may have removed.
    """
    messages = state["messages"]
    found = last_message(messages)
    if found is None:
        return None
    message, unanswered = found
    last = state.get(MARK) or {}
    if last.get("run") != run.id:
        number, passes = max(1, history.ai_messages(messages)), 0
    elif last["message"] == message.id:
        number, passes = last["number"], last["passes"]
    else:
        number, passes = last["number"] + 1, 0
    as_run = [asked if asked and asked["id"] == call["id"] else call for call in message.tool_calls]
    changed = message.model_copy(update={"tool_calls": as_run})
    calls = read_calls(changed, run_id=run.id, number=number, tools=tools)
    return Turn(run, message, number, passes, tuple(calls), unanswered)


def asked_calls(database: Database, turn: Turn) -> dict[str, ReviewedCall]:
    """Return what people were last asked about each call of the turn, by its key."""
    with database.read() as tx:
        rounds = reviews.of_message(tx, turn.run.id, turn.number)
    return {call.key: call for review in rounds for call in review.calls}


def as_cleared(asked: Mapping[str, ReviewedCall], turn: Turn) -> AIMessage | None:
    """Return the message with its calls as people cleared them; None where it stays as it is."""
    cleared = {
        key: Outcome(key, CallState.CLEARED, call.tool, call.arguments, "")
        for key, call in asked.items()
        if call.state is Answer.APPROVED
    }
    return history.rewritten(turn.message, turn.proposed, cleared)


def as_proposed(call: ToolCall, asked: ReviewedCall | None) -> ToolCall:
    """Return the call as the model proposed it."""
    if asked is None:
        return call
    return replace(call, tool=asked.proposed_tool, arguments=asked.proposed)
