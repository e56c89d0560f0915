"""Messages: a thread's messages in LangChain's JSON, and the one message that a front end may send."""

from collections.abc import Mapping, Sequence
from typing import Any

from clearance.errors import Fault, InvalidInputError
from clearance.run import Run
from clearance.store import secret_parts
from clearance.workspace import Clearance

_HUMAN, _FORGED = frozenset({"human", "user"}), frozenset({"tool"})


def messages_of(here: Clearance, thread_id: str, newest: Run | None) -> list[dict[str, Any]]:
    """Return the messages of a thread as front ends show them; the newest one also before it is worked on.

    What the product itself tells the model is no word of anybody's, and is left out.
    """
    from clearance.adapters.history import input_id
    from clearance.adapters.transcript import message_records

    with here.database.read() as tx:
        marks = secret_parts.of_thread(tx, thread_id)
        [newest] = secret_parts.veiled(tx, [newest]) if newest is not None else [None]
    records = message_records(here.transcripts.messages(thread_id), marks=marks)
    names = {call["id"]: call["name"] for record in records for call in record["tool_calls"]}
    found = [_message(record, names) for record in records if record["role"] in _KINDS]
    if newest is not None and newest.is_open and newest.input is not None:
        begun = input_id(newest.id)
        if all(each["id"] != begun for each in found):
            found.append(human(newest.input, id=begun))
    return found


_KINDS = {"user": "human", "assistant": "ai", "tool": "tool"}


def _message(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    kind = _KINDS[record["role"]]
    if kind == "human":
        return human(record["text"], id=record["id"])
    if kind == "ai":
        return assistant(record["text"], id=record["id"], calls=record["tool_calls"])
    call_id = record["tool_call_id"]
    status = "error" if record["error"] else "success"
    more = {"tool_call_id": call_id, "name": names.get(call_id), "status": status}
    return {**_base("tool", record["text"], record["id"]), **more}


def human(text: str, *, id: str) -> dict[str, Any]:
    """Return a message of a person."""
    return _base("human", text, id)


def assistant(text: str, *, id: str | None, calls: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return a message of the agent, with the calls that could be read and those that could not."""
    offered = [
        {"id": call["id"], "name": call["name"], "args": call["args"], "type": "tool_call"}
        for call in calls
        if call["error"] is None
    ]
    refused = [
        {
            "id": call["id"],
            "name": call["name"],
            "args": call["arguments"],
            "error": call["error"],
            "type": "invalid_tool_call",
        }
        for call in calls
        if call["error"] is not None
    ]
    return {**_base("ai", text, id), "tool_calls": offered, "invalid_tool_calls": refused}


def _base(kind: str, text: str, id: str | None) -> dict[str, Any]:
    return {"type": kind, "id": id, "content": text, "additional_kwargs": {}, "response_metadata": {}}


def said(given: object) -> str:
    """Return the text of the one message in a run's input. Raises `InvalidInputError`.

    Only a person's message is taken. Results of tools, which one front end makes up for calls that have
    none, are passed over: what became of a call is known here. Ids of messages name nothing here.
    """
    values = given if isinstance(given, Mapping) else {}
    for name, value in values.items():
        if name != "messages" and value not in (None, {}, []):
            raise _refused(f"/input/{name}", "is state, which nobody writes from outside")
    sent = values.get("messages")
    read = [_read(item) for item in (sent if isinstance(sent, list) else [sent])]
    kept = [(kind, content) for kind, content in read if kind not in _FORGED]
    if len(kept) != 1 or kept[0][0] not in _HUMAN:
        raise _refused("/input/messages", "must be one message of a person: type human")
    return _text(kept[0][1])


def _read(item: object) -> tuple[str, object]:
    """Return whose message it is, and what it holds; a bare text is a person's."""
    if isinstance(item, str):
        return "human", item
    if not isinstance(item, Mapping):
        return "", None
    return str(item.get("type") or item.get("role")), item.get("content")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [_text_of(block) for block in content] if isinstance(content, list) else [None]
    if None in texts:
        raise _refused("/input/messages", "has content other than text, which is not taken here")
    return "\n".join(map(str, texts))


def _text_of(block: object) -> str | None:
    if not isinstance(block, Mapping) or block.get("type") != "text":
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _refused(place: str, why: str) -> InvalidInputError:
    return InvalidInputError("A run begins with what one person says.", faults=[Fault(place, why)])
