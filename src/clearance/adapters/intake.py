"""Intake: an AI message as a model gave it, made into one that can be kept, shown and answered.

Rules of message histories (they were each seen to break a provider or a client): calls are taken only from a
message that ended by itself; each call has an id of its own; what cannot be read, is unknown or breaks its
schema is answered with an error at once, and never shown as approvable.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall
from langchain_core.messages import ToolCall as MessageCall

from clearance.errors import ClearanceError, InvalidInputError
from clearance.schema import check_arguments
from clearance.toolcall import Tool, ToolCall, argument_text, parse_arguments

# How providers say that a message is whole, and where; any other end may have cut a call.
_WHOLE = frozenset({
    "stop", "tool_calls", "tool_call", "function_call", "end_turn", "tool_use", "stop_sequence", "completed",
    "complete", "eos",
})  # fmt: skip
_END_REASONS = ("finish_reason", "stop_reason", "done_reason", "status")
# The blocks of content that hold calls, and where each has the id that its result names.
_CALL_BLOCKS = {"tool_use": "id", "tool_call": "id", "function_call": "call_id"}
_INTEGERS = range(-(2**63), 2**64)


@dataclass(frozen=True)
class Faulty:
    """A call of an AI message that is answered with an error instead of being asked about."""

    tool_call_id: str
    tool: str
    text: str


def taken_in(message: AIMessage, *, tools: Mapping[str, Tool], used_ids: frozenset[str]) -> AIMessage:
    """Return the message as it enters the history: fresh ids where they are missing or used, and every
    call that cannot be offered moved to `invalid_tool_calls`, where its text is kept as it came."""
    message_id = message.id if message.id and message.id not in used_ids else str(uuid4())
    valid: list[MessageCall] = []
    invalid: list[InvalidToolCall] = []
    ids: set[str] = set()
    renamed: list[tuple[str | None, str]] = []
    cut_off = _cut_off(message)
    for place, call in enumerate(message.tool_calls):
        call_id = call["id"] if call["id"] and call["id"] not in ids else f"call_{uuid4().hex}"
        ids.add(call_id)
        renamed.append((call["id"], call_id))
        fault = cut_off or _fault(call, raw=_raw_arguments(message, place), tools=tools)
        if fault is None:
            valid.append({**call, "id": call_id})
        else:
            invalid.append(_invalid(call["name"], _kept_text(call["args"]), call_id, fault))
    for broken in message.invalid_tool_calls:
        call_id = broken["id"] if broken["id"] and broken["id"] not in ids else f"call_{uuid4().hex}"
        ids.add(call_id)
        renamed.append((broken["id"], call_id))
        why = cut_off or "The arguments are not JSON. Send one complete JSON object."
        invalid.append(_invalid(broken["name"] or "", _printable(broken["args"] or ""), call_id, why))
    return message.model_copy(
        update={
            "id": message_id,
            "tool_calls": valid,
            "invalid_tool_calls": invalid,
            "content": _content(message, renamed),
        }
    )


def read_calls(
    message: AIMessage, *, run_id: str, number: int, tools: Mapping[str, Tool]
) -> list[ToolCall | Faulty]:
    """Return the calls of the `number`-th AI message of a run, in order, each with the product's own key.

    Read anew each time: a stored message may have been changed from outside.
    """
    found: list[ToolCall | Faulty] = []
    for place, call in enumerate(message.tool_calls):
        fault = _fault(call, raw=None, tools=tools)
        if fault is not None:
            found.append(Faulty(call["id"] or "", call["name"], fault))
        else:
            key = f"{run_id}/{number}/{place}"
            found.append(ToolCall(key, call["name"], argument_text(call["args"]), call["id"] or ""))
    found += [
        Faulty(call["id"] or "", call["name"] or "", call["error"] or "The call could not be read.")
        for call in message.invalid_tool_calls
    ]
    return found


def end_reasons(message: BaseMessage) -> dict[str, str]:
    """Return what a message, or a piece of one, says about how it ended; empty where it says nothing."""
    metadata = message.response_metadata
    return {name: str(metadata[name]) for name in _END_REASONS if metadata.get(name)}


def storable(value: object) -> bool:
    """Whether a checkpoint keeps the value exactly: its serializer knows integers of 64 bits only."""
    match value:
        case bool() | None | float() | str():
            return True
        case int():
            return value in _INTEGERS
        case dict():
            return all(storable(item) for item in value.values())
        case list():
            return all(storable(item) for item in value)
        case _:
            return False


def _cut_off(message: AIMessage) -> str | None:
    """Say that the message did not end by itself: then its calls may not be whole."""
    reason = next(iter(end_reasons(message).values()), "")
    if reason.lower() in _WHOLE or (not reason and "model_provider" not in message.response_metadata):
        # A model that is no provider's need not say how its messages end.
        return None
    told = f"({_printable(reason)})" if reason else "(it does not say how it ended)"
    return f"The message was cut off {told}, so the call may not be whole. Send it again, shorter."


def _fault(call: MessageCall, *, raw: str | None, tools: Mapping[str, Tool]) -> str | None:
    tool = tools.get(call["name"])
    if tool is None:
        return f"There is no tool {_printable(call['name'])}. The tools are: {', '.join(sorted(tools))}."
    try:
        parsed = check_arguments(tool.name, tool.schema, argument_text(call["args"]))
        # The framework's own reading is lenient (a missing text becomes {}); ours must agree with the raw.
        if raw is not None and parse_arguments(raw) != parsed:
            return "The arguments were read in two ways. Send one complete JSON object."
    except InvalidInputError as error:
        return str(error)
    except ClearanceError as error:
        return str(error)
    if not storable(parsed):
        return "An integer is outside 64 bits, which this conversation cannot hold. Send it as text."
    return None


def _raw_arguments(message: AIMessage, place: int) -> str | None:
    """Return the text that a provider sent as the arguments, where the framework kept it."""
    raw = message.additional_kwargs.get("tool_calls")
    if not isinstance(raw, list) or len(raw) != len(message.tool_calls) + len(message.invalid_tool_calls):
        return None
    by_id = {item.get("id"): item for item in raw if isinstance(item, dict)}
    item = by_id.get(message.tool_calls[place]["id"]) if len(by_id) == len(raw) else raw[place]
    function = item.get("function") if isinstance(item, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else None


def _content(message: AIMessage, renamed: Sequence[tuple[str | None, str]]) -> Any:
    """Return the content with its calls named as outside it; `renamed` has their old and new ids."""
    if isinstance(message.content, str):
        return _printable(message.content)
    left: dict[str | None, list[str]] = {}
    for old, new in renamed:
        left.setdefault(old or None, []).append(new)
    blocks = []
    for block in message.content:
        name = _CALL_BLOCKS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if isinstance(block, dict) and name is not None:
            given = left.get(block.get(name) or None)
            if given and (new := given.pop(0)) != block.get(name):
                block = {**block, name: new}
        blocks.append(block)
    return blocks


def _invalid(name: str, args: str, call_id: str, error: str) -> InvalidToolCall:
    return InvalidToolCall(
        type="invalid_tool_call", name=_printable(name), args=args, id=call_id, error=error
    )


def _kept_text(args: object) -> str:
    """Return arguments that cannot be offered as text that can be kept, integers of any size in it."""
    try:
        return json.dumps(args, ensure_ascii=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return "(not readable)"


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()
