"""Sources: JSON text read into its parts, each with the very text that it was written as."""

import json
from dataclasses import dataclass
from typing import Any

from clearance.errors import InvalidArgumentsError
from clearance.toolcall import MAX_ARGUMENT_BYTES, parse_arguments

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Leaf:
    """A text, a number, true, false or null."""

    text: str


@dataclass(frozen=True)
class Items:
    """An array."""

    text: str
    items: tuple["Source", ...]


@dataclass(frozen=True)
class Member:
    """A member of an object; `key` is its name as it was written."""

    name: str
    key: str
    value: "Source"


@dataclass(frozen=True)
class Members:
    """An object."""

    text: str
    members: tuple[Member, ...]

    def get(self, name: str) -> Member | None:
        """Return the member of this name."""
        return next((each for each in self.members if each.name == name), None)


Source = Leaf | Items | Members


def read_source(text: str) -> Source:
    """Return the parts of JSON text that was read strictly before."""
    found, _ = _read(text, _past(text, 0))
    return found


def read_value(text: str) -> Any:
    """Return the value of JSON text that a person typed, read as strictly as arguments are.

    Raises `InvalidArgumentsError` for anything but one value.
    """
    try:
        json.loads(text)
    except RecursionError:
        raise InvalidArgumentsError("is nested too deep") from None
    except ValueError as error:
        at = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidArgumentsError(f"is not JSON{at}") from None
    try:
        return parse_arguments(f'{{"":{text}}}', limit=MAX_ARGUMENT_BYTES + len('{"":}'))[""]
    except InvalidArgumentsError as error:
        said = str(error).removeprefix("The arguments ").removesuffix(".")
        raise InvalidArgumentsError(_SINGULAR.get(said.partition(" ")[0], "") + said) from None


_SINGULAR = {
    "hold": "cannot stand: its parts ",
    "give": "cannot stand: its parts ",
    "are": "cannot stand: they ",
}


def value(source: Source) -> Any:
    """Return the value of a source."""
    return json.loads(source.text)


def indented(source: Source, *, deep: int = 0) -> str:
    """Return the text of a source on several lines; every text and number in it is written as it was."""
    inner = "\n" + "  " * (deep + 1)
    end = "\n" + "  " * deep
    match source:
        case Members(members=members) if members:
            each = (f"{member.key}: {indented(member.value, deep=deep + 1)}" for member in members)
            return "{" + inner + f",{inner}".join(each) + end + "}"
        case Items(items=items) if items:
            return "[" + inner + f",{inner}".join(indented(item, deep=deep + 1) for item in items) + end + "]"
        case _:
            return source.text


def _read(text: str, at: int) -> tuple[Source, int]:
    match text[at]:
        case "{":
            return _object(text, at)
        case "[":
            return _array(text, at)
        case _:
            _, end = _DECODER.raw_decode(text, at)
            return Leaf(text[at:end]), end


def _array(text: str, start: int) -> tuple[Items, int]:
    found: list[Source] = []
    at = _past(text, start + 1)
    while text[at] != "]":
        if text[at] == ",":
            at = _past(text, at + 1)
        item, at = _read(text, at)
        found.append(item)
        at = _past(text, at)
    return Items(text[start : at + 1], tuple(found)), at + 1


def _object(text: str, start: int) -> tuple[Members, int]:
    found: list[Member] = []
    at = _past(text, start + 1)
    while text[at] != "}":
        if text[at] == ",":
            at = _past(text, at + 1)
        name, end = _DECODER.raw_decode(text, at)
        key = text[at:end]
        inner, after = _read(text, _past(text, _past(text, end) + 1))
        found.append(Member(name, key, inner))
        at = _past(text, after)
    return Members(text[start : at + 1], tuple(found)), at + 1


def _past(text: str, at: int) -> int:
    """Return where the white space from here on ends."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
