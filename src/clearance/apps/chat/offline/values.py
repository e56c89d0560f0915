"""Typed values: what a text that a person typed means where a JSON schema says what is wanted.

Nothing is bent to fit: `007` is no whole number (its zeros would be lost), and a decimal that the
machine cannot hold exactly is refused. Where a schema allows several kinds, the first that fits
wins, in this order: null, true/false, whole number, number, list or object, text.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, assert_never

from clearance.errors import InvalidArgumentsError
from clearance.schema import faults
from clearance.toolcall import parse_arguments

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_MAX_DEPTH = 16


class Kind(StrEnum):
    """A JSON type, in the order in which a text is tried as one."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    ARRAY = "array"
    OBJECT = "object"
    STRING = "string"


class WrongValueError(ValueError):
    """The text is no value of the kind that the schema wants."""


def typed(text: str, part: Mapping[str, Any], *, root: Mapping[str, Any]) -> Any:
    """Return the value of `text` where `part` of the tool's schema `root` says what is wanted.

    Raises `WrongValueError` when no allowed kind fits.
    """
    branches = list(_branches(part, root))
    for kind in Kind:
        for branch in branches:
            if kind in kinds(branch, root=root):
                found = _attempt(text, kind, branch, root)
                if found:
                    return found[0]
    raise WrongValueError


def kinds(part: Mapping[str, Any], *, root: Mapping[str, Any]) -> tuple[Kind, ...]:
    """Return the JSON types that a schema allows, in the order in which they are tried."""
    allowed: set[Kind] = set()
    for branch in _branches(part, root):
        named = branch.get("type")
        if named is not None:
            allowed.update(Kind(name) for name in ([named] if isinstance(named, str) else named))
        elif listed := branch.get("enum") or ([branch["const"]] if "const" in branch else []):
            allowed.update(_kind_of(value) for value in listed)
        else:
            allowed.update(Kind)
    return tuple(kind for kind in Kind if kind in allowed)


def choices(part: Mapping[str, Any], *, root: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of a schema that lists them, else nothing."""
    found: list[Any] = []
    for branch in _branches(part, root):
        found += branch.get("enum", [])
        found += [branch["const"]] if "const" in branch else []
    return tuple(found)


def _attempt(text: str, kind: Kind, part: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    """Return the value in a list, or an empty list when the text is none of this kind that fits."""
    try:
        value = _read(text, kind)
    except (WrongValueError, InvalidArgumentsError):
        return []
    whole = {"type": "object", "properties": {"value": part}, "$defs": root.get("$defs", {})}
    return [] if faults(whole, {"value": value}) else [value]


def _read(text: str, kind: Kind) -> Any:
    match kind:
        case Kind.NULL:
            return _word(text, {"null": None})
        case Kind.BOOLEAN:
            return _word(text, {"true": True, "false": False})
        case Kind.INTEGER:
            return _integer(text)
        case Kind.NUMBER:
            return _number(text)
        case Kind.ARRAY:
            return _json(text, list)
        case Kind.OBJECT:
            return _json(text, dict)
        case Kind.STRING:
            return text
        case _:
            assert_never(kind)


def _word(text: str, words: Mapping[str, Any]) -> Any:
    if text not in words:
        raise WrongValueError
    return words[text]


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise WrongValueError
    try:
        return int(text)
    except ValueError:  # Python reads at most some thousand digits
        raise WrongValueError from None


def _number(text: str) -> int | float:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if not _NUMBER.fullmatch(text):
        raise WrongValueError
    value = float(text)
    if not math.isfinite(value) or Decimal(repr(value)) != Decimal(text):
        raise WrongValueError
    return value


def _json(text: str, wanted: type) -> Any:
    try:
        held = parse_arguments('{"value":' + text + "}")
    except InvalidArgumentsError:
        raise WrongValueError from None
    if set(held) != {"value"} or not isinstance(held["value"], wanted):
        raise WrongValueError
    return held["value"]


def _branches(
    part: Mapping[str, Any], root: Mapping[str, Any], *, depth: int = 0
) -> Iterator[Mapping[str, Any]]:
    """Yield the alternatives of a schema, which may refer to others and to itself."""
    reference = part.get("$ref", "")
    if reference.startswith("#/$defs/"):
        alternatives = [root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})]
    else:
        alternatives = part.get("anyOf") or part.get("oneOf") or []
    if not alternatives:
        yield part
    elif depth < _MAX_DEPTH:
        for alternative in alternatives:
            yield from _branches(alternative, root, depth=depth + 1)


def _kind_of(value: object) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case float():
            return Kind.NUMBER
        case list():
            return Kind.ARRAY
        case dict():
            return Kind.OBJECT
        case _:
            return Kind.STRING


def shown(value: object) -> str:
    """Return a value as a person would type it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
