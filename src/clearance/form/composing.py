"""Composing: the arguments that a form stands for, as exact JSON text, or what is wrong and where.

What nobody touched keeps the text that it was written as: 48250.0, 1e2 and an integer of twenty digits too.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clearance.errors import Fault, InvalidArgumentsError
from clearance.form.field import Field, Kind, below, lines, unescaped
from clearance.form.source import Members, Source, read_value
from clearance.schema import check_arguments

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Composed:
    """`text` is None where a field cannot be read. Faults point at fields by their names."""

    text: str | None
    faults: tuple[Fault, ...] = ()


@dataclass
class _Work:
    """What is found on the way: faults, and which field each part of the result came from."""

    faults: list[Fault] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)


def compose(form: Field) -> Composed:
    """Return the arguments; the whole text of the original when nothing was changed."""
    return _composed(form)[0]


def checked(
    form: Field,
    *,
    tool: str,
    schema: Mapping[str, Any],
    restored: Callable[[str], str] = lambda text: text,
) -> Composed:
    """Return the arguments, checked by the tool's schema; each fault points at a field of the form.

    `restored` puts back what a mask stands for, for the check alone.
    """
    made, places = _composed(form)
    if made.text is None:
        return made
    try:
        check_arguments(tool, schema, restored(made.text))
    except InvalidArgumentsError as error:
        found = [Fault(_field_of(fault.pointer, places), _said(fault, places)) for fault in error.faults]
        return Composed(made.text, tuple(found) or (Fault("", str(error)),))
    return made


def _composed(form: Field) -> tuple[Composed, dict[str, str]]:
    work = _Work()
    text = _text(form, work, at="")
    return Composed(None if work.faults else text, tuple(work.faults)), work.places


def _text(form: Field, work: _Work, *, at: str) -> str:
    """Return the JSON text of a field, which stands at `at` in the result."""
    work.places[at] = form.name
    if form.nullable and form.is_null:
        if lines(form.text) not in (lines(form.shown), ""):
            work.faults.append(Fault(form.name, 'has a value and is "Not set", too: take one of them away'))
        return "null"
    match form.kind:
        case Kind.OBJECT:
            return _object(form, work, at=at)
        case Kind.LIST:
            return _list(form, work, at=at)
        case Kind.FIXED:
            return form.text if form.original is None else _kept_or(form.original, form.text)
        case _:
            return _single(form, work)


def _single(form: Field, work: _Work) -> str:
    # A text box may give a line's end back in another form, and nothing else.
    original = form.original
    if original is not None and lines(form.text) == lines(form.shown) and not _was_null(form):
        return original.text
    try:
        return _READERS[form.kind](form)
    except InvalidArgumentsError as error:
        work.faults.append(Fault(form.name, str(error)))
        return "null"


def _number(form: Field) -> str:
    text = form.text.strip()
    if not _NUMBER.fullmatch(text):
        such = "250" if form.whole_number else "48250.0"
        raise InvalidArgumentsError(f"must be a number, such as {such}")
    read_value(text)
    return text


def _quoted(form: Field) -> str:
    text = form.text.strip()
    if not isinstance(read_value(text), str):
        raise InvalidArgumentsError('must be a text in quotation marks, such as "Hello"')
    return text


def _choice(form: Field) -> str:
    if form.text == "" or form.text not in {each.value for each in form.options}:
        raise InvalidArgumentsError("must be one of the values that can be chosen")
    return form.text


def _json(form: Field) -> str:
    text = form.text.strip()
    if not text:
        raise InvalidArgumentsError('is empty: write JSON, such as {} or "text"')
    read_value(text)
    return text


_READERS = {
    Kind.TEXT: lambda form: json.dumps(lines(form.text), ensure_ascii=False),
    Kind.QUOTED: _quoted,
    Kind.NUMBER: _number,
    Kind.CHOICE: _choice,
    Kind.JSON: _json,
}


def _object(form: Field, work: _Work, *, at: str) -> str:
    original = form.original if isinstance(form.original, Members) else None
    parts = []
    same = original is not None and form.ids == tuple(each.name for each in original.members)
    for name, child in zip(form.ids, form.children, strict=True):
        text = _text(child, work, at=below(at, name))
        member = original.get(name) if original else None
        same = same and member is not None and member.value.text == text
        key = member.key if member else json.dumps(name, ensure_ascii=False)
        parts.append(f"{key}:{text}")
    return form.original.text if same and form.original is not None else "{" + ",".join(parts) + "}"


def _list(form: Field, work: _Work, *, at: str) -> str:
    count = 0 if form.original is None else len(getattr(form.original, "items", ()))
    texts = [_text(child, work, at=f"{at}/{place}") for place, child in enumerate(form.children)]
    same = form.original is not None and form.ids == tuple(map(str, range(count)))
    if same and all(
        child.original is not None and child.original.text == text
        for child, text in zip(form.children, texts, strict=True)
    ):
        return form.original.text if form.original is not None else "[]"
    return "[" + ",".join(texts) + "]"


def _kept_or(original: Source, text: str) -> str:
    return original.text if json.loads(original.text) == json.loads(text) else text


def _was_null(form: Field) -> bool:
    """Whether the box "Not set" was ticked at first, and is not any more."""
    return form.nullable and form.original is not None and form.original.text == "null"


def _field_of(pointer: str, places: Mapping[str, str]) -> str:
    """Return the field of a place in the result, or the nearest one around it."""
    while pointer not in places and pointer:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer, "")


def _said(fault: Fault, places: Mapping[str, str]) -> str:
    """Say what is wrong, with the rest of the place where the field holds more than it."""
    rest: list[str] = []
    pointer = fault.pointer
    while pointer not in places and pointer:
        pointer, _, last = pointer.rpartition("/")
        rest.insert(0, unescaped(last))
    return f"{' / '.join(rest)} {fault.message}" if rest else fault.message
