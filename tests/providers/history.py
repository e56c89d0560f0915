"""The check of histories as providers get them: every call answered once, next to it, in its order.

`faults(body)` reads the body of a request in a provider's own format and returns what the provider, or a
person who reads it, would object to; an empty list is a good history. What it does not know is a fault too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    id: str


@dataclass(frozen=True)
class Result:
    """The answer to a call."""

    id: str
    text: str


@dataclass(frozen=True)
class Said:
    """Anything else that stands in the history. `between`: it may stand between the calls of a message."""

    who: str
    between: bool = False


@dataclass(frozen=True)
class Unknown:
    """Something that no history holds."""

    what: str


Item = Call | Result | Said | Unknown


def chat_faults(body: Body) -> list[str]:
    """Return what is wrong with the history of a request to OpenAI's chat completions."""
    return _faults(_chat_items(body["messages"]))


def responses_faults(body: Body) -> list[str]:
    """Return what is wrong with the history of a request to OpenAI's Responses."""
    return _faults(_responses_items(body["input"]))


def anthropic_faults(body: Body) -> list[str]:
    """Return what is wrong with the history of a request to Anthropic's messages."""
    turns = body["messages"]
    own = [] if turns and turns[0]["role"] == "user" else ["a person does not speak first"]
    return own + _faults(_anthropic_items(turns))


Check = Callable[[Body], list[str]]


def _faults(items: Iterator[Item]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    answering = False
    for item in items:
        match item:
            case Call(name):
                if answering and waiting:
                    found.append(f"call {name} comes before {waiting} are answered")
                if not name or name in waiting:
                    found.append(f"call {name!r} has no id of its own")
                waiting.append(name)
                answering = False
            case Result(name, text):
                answering = True
                if name not in waiting:
                    found.append(f"a result answers no open call: {name}")
                    continue
                if name != waiting[0]:
                    found.append(f"the result of {name} is out of order")
                if not text.strip():
                    found.append(f"the result of {name} is empty")
                waiting.remove(name)
            case Said(who, between):
                if waiting and (answering or not between):
                    found.append(f"{who} speaks before {waiting} are answered")
            case Unknown(what):
                found.append(f"not known: {what}")
    return found + ([f"never answered: {waiting}"] if waiting else [])


def _chat_items(messages: list[Body]) -> Iterator[Item]:
    for message in messages:
        match message:
            case {"role": "assistant", "tool_calls": [*calls]}:
                yield Said("the model")
                for call in calls:
                    whole = call.get("type") == "function" and isinstance(call["function"]["arguments"], str)
                    yield Call(call["id"]) if whole else Unknown(str(call))
            case {"role": "tool", "tool_call_id": str(name), "content": content}:
                yield Result(name, _text(content))
            case {"role": "system" | "developer" | "user" | "assistant" as who, "content": content}:
                yield Said(who) if content else Unknown(f"{who} without content")
            case _:
                yield Unknown(str(message))


def _responses_items(items: list[Body]) -> Iterator[Item]:
    for item in items:
        match item:
            case {"type": "function_call", "call_id": str(name), "name": str(), "arguments": str()}:
                yield Call(name)
            case {"type": "function_call_output", "call_id": str(name), "output": output}:
                yield Result(name, _text(output))
            case {"type": "reasoning"} | {"role": "assistant"}:
                yield Said("the model", between=True)
            case {"role": "system" | "developer" | "user" as who, "content": content}:
                yield Said(who) if content else Unknown(f"{who} without content")
            case _:
                yield Unknown(str(item))


def _anthropic_items(turns: list[Body]) -> Iterator[Item]:
    for turn in turns:
        content = turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield Unknown(f"{turn['role']} without content")
        # Calls may be answered by the next turn only, so the model's next one must find none open.
        yield Said(f"{turn['role']}'s turn", between=turn["role"] == "user")
        for block in blocks:
            yield _anthropic_item(turn["role"], block)


def _anthropic_item(role: str, block: Body) -> Item:
    match role, block:
        case "assistant", {"type": "tool_use", "id": str(name), "name": str(), "input": dict()}:
            return Call(name)
        case "user", {"type": "tool_result", "tool_use_id": str(name)}:
            return Result(name, _text(block.get("content")))
        case "assistant", {"type": "text" | "thinking" | "redacted_thinking"}:
            return Said("the model", between=True)
        case "user", {"type": "text", "text": str(text)} if text:
            return Said("the person")
        case _:
            return Unknown(str(block))


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else ""
