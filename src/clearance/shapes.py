"""Shapes: the form of a set of decisions as clients send it, whatever review it is for."""

from collections.abc import Mapping, Sequence
from typing import Any

from clearance.errors import Fault, InvalidArgumentsError
from clearance.policy import DecisionType
from clearance.schema import pointer
from clearance.toolcall import argument_text, parse_arguments

MAX_TEXT = 64 * 1024
"""Bytes of a message."""
_FIELDS = frozenset({"type", "call", "message", "edited_action", "changes"})


def read_shapes(payload: Sequence[object]) -> tuple[list[Mapping[str, Any]], list[Fault]]:
    """Return the items that are objects, and every fault in the form of each, by JSON pointer."""
    items: list[Mapping[str, Any]] = []
    faults: list[Fault] = []
    for place, item in enumerate(payload):
        found = _shape_faults(item)
        faults.extend(Fault(f"/{place}{fault.pointer}", fault.message) for fault in found)
        if isinstance(item, Mapping):
            items.append(item)
    return items, faults


def _shape_faults(item: object) -> list[Fault]:
    if not isinstance(item, Mapping):
        return [Fault("", 'must be an object such as {"type": "approve"}')]
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in tuple(DecisionType):
        return [Fault("/type", f"must be one of {', '.join(DecisionType)}")]
    faults = [Fault(pointer([_shown(name)]), "is not known here") for name in item if name not in _FIELDS]
    for name in ("call", "message"):
        faults.extend(_text_faults(f"/{name}", item.get(name)))
    if len(str(item.get("message") or "").encode(errors="replace")) > MAX_TEXT:
        faults.append(Fault("/message", f"must have at most {MAX_TEXT} bytes"))
    if kind == DecisionType.EDIT:
        faults.extend(_edit_faults(item.get("edited_action")))
    elif item.get("edited_action") is not None:
        faults.append(Fault("/edited_action", f"belongs to an edit, not to {kind}"))
    if item.get("changes") is not None:
        faults.extend(_change_faults(item["changes"], kind=kind))
    if kind == DecisionType.RESPOND and not str(item.get("message") or "").strip():
        faults.append(Fault("/message", "is missing: the text that the agent gets as the result"))
    return faults


def _edit_faults(action: object) -> list[Fault]:
    if not isinstance(action, Mapping):
        return [Fault("/edited_action", 'is missing: {"name": …, "args": {…}}')]
    faults = [
        Fault("/edited_action" + pointer([_shown(name)]), "is not known here")
        for name in action
        if name not in ("name", "args")
    ]
    faults.extend(_text_faults("/edited_action/name", action.get("name")))
    if action.get("name") == "":
        faults.append(Fault("/edited_action/name", "must be the name of a tool"))
    if not isinstance(action.get("args"), Mapping | str):
        faults.append(Fault("/edited_action/args", "must be an object, all arguments of the call"))
        return faults
    try:
        sent_arguments(action["args"])
    except InvalidArgumentsError as error:
        faults.append(Fault("/edited_action/args", str(error)))
    return faults


def _change_faults(changes: object, *, kind: str) -> list[Fault]:
    if kind != DecisionType.REVISE:
        return [Fault("/changes", f"belongs to revise, not to {kind}")]
    if not isinstance(changes, Mapping):
        return [Fault("/changes", "must be an object")]
    try:
        argument_text(dict(changes))
    except InvalidArgumentsError as error:
        return [Fault("/changes", str(error).replace("The arguments", "The changes", 1))]
    return []


def _text_faults(place: str, value: object) -> list[Fault]:
    """Find what no database keeps as text: anything else, a null character, half of a surrogate pair."""
    if value is None or (isinstance(value, str) and _shown(value) == value and "\0" not in value):
        return []
    return [Fault(place, "must be a text, without null characters and halves of surrogate pairs")]


def _shown(name: object) -> str:
    """Return any key of what was sent as text that can be shown."""
    return str(name).encode(errors="replace").decode()


def sent_arguments(args: Mapping[str, Any] | str) -> str:
    """Return the JSON text of edited arguments, given parsed or as text."""
    if isinstance(args, str):
        return argument_text(parse_arguments(args))
    return argument_text(dict(args))
