"""Mending: edited arguments as JavaScript's forms send them, made into what the person meant, or left alone.

Such forms send an edited number as a text, and lose digits of numbers that nobody touched: 48250.0 becomes
48250, and a long account number ends in zeros. What is mended here is validated exactly afterwards.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from clearance.errors import InvalidArgumentsError
from clearance.schema import faults
from clearance.toolcall import parse_arguments

_DEEPEST = 16


def mended(
    sent: Mapping[str, Any], *, stored: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return edited arguments as they were meant.

    A text where the schema takes none is read as the JSON that it holds, when that fits. A number that is
    what JavaScript makes of the stored one counts as untouched, and stays as it is stored.
    """
    read = _read(sent, schema, root=schema, depth=0)
    return {name: _untouched(value, stored.get(name)) for name, value in read.items()}


def _read(value: Any, part: Any, *, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(part, Mapping) or depth > _DEEPEST:
        return value
    if isinstance(value, str):
        return _text(value, part, root=root)
    if isinstance(value, Mapping):
        properties = part.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        return {
            name: _read(each, known.get(name), root=root, depth=depth + 1) for name, each in value.items()
        }
    if isinstance(value, list):
        return [_read(each, part.get("items"), root=root, depth=depth + 1) for each in value]
    return value


def _text(text: str, part: Mapping[str, Any], *, root: Mapping[str, Any]) -> Any:
    if _fits(text, part, root=root):
        return text
    try:
        held = parse_arguments(f'{{"value":{text}}}')
    except InvalidArgumentsError:
        return text
    if len(held) != 1 or not _fits(held["value"], part, root=root):
        return text
    return held["value"]


def _fits(value: Any, part: Mapping[str, Any], *, root: Mapping[str, Any]) -> bool:
    schema = {"properties": {"value": part}}
    for name in ("$defs", "definitions"):
        if name in root:
            schema[name] = root[name]
    try:
        return not faults(schema, {"value": value})
    except InvalidArgumentsError:
        return False


def _untouched(value: Any, stored: Any) -> Any:
    """Return the stored value where what was sent is what JavaScript makes of it."""
    if _is_number(value) and _is_number(stored):
        return stored if _same_in_javascript(value, stored) else value
    if isinstance(value, Mapping) and isinstance(stored, Mapping):
        return {name: _untouched(each, stored.get(name)) for name, each in value.items()}
    if isinstance(value, list) and isinstance(stored, list) and len(value) == len(stored):
        return [_untouched(each, before) for each, before in zip(value, stored, strict=True)]
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_in_javascript(value: float, stored: float) -> bool:
    try:
        # The shortest digits that name a double are the same in both languages.
        shown = Decimal(repr(float(stored)))
    except OverflowError:
        return False
    return Decimal(repr(value)) == shown
