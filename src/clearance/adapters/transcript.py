"""Transcripts: the messages of a thread as its checkpoints keep them, read without a model or tools.

Only the workspace's own checkpoints are read: an agent with a checkpointer of its own has no transcript here.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langgraph.graph import START, StateGraph

from clearance.adapters import history
from clearance.adapters.checkpoints import FencedSaver
from clearance.adapters.langgraph import AgentState
from clearance.redaction import mask, masked, scrubbed, scrubbed_json, secret_texts
from clearance.review import Review
from clearance.store.secret_parts import Marks
from clearance.toolcall import argument_text, parse_arguments

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class Transcripts:
    """The transcripts of a workspace, to be read from any thread of this process, one at a time."""

    def __init__(self, saver: FencedSaver) -> None:
        reader = StateGraph(AgentState)
        reader.add_node("read", lambda state: state)
        reader.add_edge(START, "read")
        self._graph = reader.compile(checkpointer=saver)

    def messages(self, thread_id: str) -> list[BaseMessage]:
        """Return the thread's messages, oldest first; none for a thread that has no state here."""
        state = self._graph.get_state({"configurable": {"thread_id": thread_id}})
        found: list[BaseMessage] = state.values.get("messages", [])
        return found

    def model_text(self, review: Review) -> str | None:
        """Return what the model wrote beside the calls of a review; None when there is none to be had.

        It is a claim, to be read with care.
        """
        messages = self.messages(review.thread_id)
        begins = [at for at, message in enumerate(messages) if message.id == history.input_id(review.run_id)]
        if not begins:
            return None
        said = [message for message in messages[begins[0] :] if isinstance(message, AIMessage)]
        if len(said) < review.message:
            return None
        return said[review.message - 1].text or None


def message_records(messages: Sequence[BaseMessage], *, marks: Marks) -> list[dict[str, Any]]:
    """Return messages as every door gives them in JSON: who says what, which calls, which results.

    `marks` say what is masked in the calls, and in every text that repeats it.

    `run_id` is set from the message that begins a run on. A call that could not be offered has an `error`.
    """
    records: list[dict[str, Any]] = []
    run_id: str | None = None
    words = marks.words | (_secret_words(messages, marks) if marks.any else frozenset())
    for message in messages:
        run_id = history.run_of(message) or run_id
        records.append({
            "id": message.id,
            "run_id": run_id,
            "role": _role(message),
            "text": scrubbed(message.text, words),
            "tool_calls": _calls(message, marks, words=words),
            "tool_call_id": message.tool_call_id if isinstance(message, ToolMessage) else None,
            "state": message.additional_kwargs.get("clearance") if isinstance(message, ToolMessage) else None,
            "error": isinstance(message, ToolMessage) and message.status == "error",
        })  # fmt: skip
    return records


def _role(message: BaseMessage) -> str:
    """Return who speaks; what the product itself tells the model is no word of the user."""
    if history.is_note(message):
        return "notice"
    return _ROLES.get(message.type, message.type)


def _secret_words(messages: Sequence[BaseMessage], marks: Marks) -> frozenset[str]:
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    texts = [(call["name"], argument_text(call["args"])) for call in calls]
    return frozenset(word for name, text in texts for word in secret_texts(text, marks.of(name, text)))


def _offered(call: ToolCall, marks: Marks, *, words: frozenset[str]) -> dict[str, Any]:
    text = argument_text(call["args"])
    text = scrubbed_json(masked(text, marks.of(call["name"], text)), words)
    return {
        "id": call["id"],
        "name": call["name"],
        "args": parse_arguments(text),
        "arguments": text,
        "error": None,
    }


def _calls(message: BaseMessage, marks: Marks, *, words: frozenset[str]) -> list[dict[str, Any]]:
    if not isinstance(message, AIMessage):
        return []
    offered = [_offered(call, marks, words=words) for call in message.tool_calls]
    # What cannot be read cannot be masked in parts.
    hidden = marks.any or bool(words)
    refused = [
        {
            "id": call["id"],
            "name": call["name"],
            "args": None,
            "arguments": mask(call["args"] or "") if hidden else call["args"],
            "error": call["error"] or "The call could not be read.",
        }
        for call in message.invalid_tool_calls
    ]
    return [*offered, *refused]
