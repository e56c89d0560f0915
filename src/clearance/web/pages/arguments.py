"""Arguments as they are read before a decision: each whole and exact, the flagged ones apart."""

import json
from dataclasses import dataclass

from clearance.form.differences import Difference, differences
from clearance.form.source import Items, Leaf, Members, Source, indented, read_source, value
from clearance.review import ReviewedCall

_LONG = 200


@dataclass(frozen=True)
class Argument:
    """One argument. `text` is None for one that is flagged and not given; `flag` says why it is flagged."""

    name: str
    text: str | None
    note: str = ""
    flag: str | None = None


@dataclass(frozen=True)
class Change:
    """One difference that an edit made, each side as it is read; None is: not there."""

    name: str
    before: str | None
    after: str | None


def arguments_of(call: ReviewedCall) -> tuple[list[Argument], list[Argument]]:
    """Return the flagged arguments of a call as it stands, and the others."""
    source = read_source(call.arguments)
    flags = call.verdict.flags
    flagged: list[Argument] = []
    others: list[Argument] = []
    for member in source.members if isinstance(source, Members) else ():
        text, note = drawn(member.value)
        into = flagged if member.name in flags else others
        into.append(Argument(member.name, text, note, flags.get(member.name)))
    given = {each.name for each in flagged}
    flagged += [Argument(name, None, flag=why) for name, why in flags.items() if name not in given]
    return flagged, others


def changes_between(before: str, after: str) -> list[Change]:
    """Return what differs between two sets of arguments."""
    return [_change(each) for each in differences(before, after)]


def drawn(source: Source) -> tuple[str, str]:
    """Return a value as it is read, and a word about it where its look could mislead.

    A text stands without quotation marks; everything else is JSON, each number as it was written.
    """
    if not isinstance(source, Leaf) or not source.text.startswith('"'):
        return indented(source), _size(source)
    text = str(value(source))
    count = text.count("\n") + 1
    if not text:
        return "", "an empty text"
    if count > 1 or len(text) > _LONG:
        lines = f"{count:,} lines, " if count > 1 else ""
        return text, f"a text, {lines}{len(text):,} characters"
    return text, _unlike(text)


def _size(source: Source) -> str:
    match source:
        case Items(items=items):
            return f"a list of {len(items):,}" if items else "an empty list"
        case Members(members=members):
            return "" if members else "no fields"
        case _:
            return ""


def _unlike(text: str) -> str:
    """Return a word about a text that would be read as another value where it stands without its quotes."""
    try:
        seen = json.loads(text)
    except ValueError:
        return ""
    match seen:
        case bool() | None:
            return f"a text, not the value {text.strip()}"
        case int() | float():
            return "a text, not a number"
        case str():
            return "a text, its quotation marks are in it"
        case _:
            return f"a text, not {'a list' if isinstance(seen, list) else 'fields'}"


def _change(found: Difference) -> Change:
    def side(text: str | None) -> str | None:
        return None if text is None else drawn(read_source(text))[0]

    name = found.pointer.removeprefix("/").replace("~1", "/").replace("~0", "~")
    return Change(name or "all arguments", side(found.before), side(found.after))
