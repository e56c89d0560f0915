"""Fields: what a form shows for each part of the arguments. A field's name is the part's JSON pointer.

An item of an array keeps the name it began with, wherever it stands after others were removed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from clearance.form.source import Source


class Kind(StrEnum):
    """How a part is filled in: `json` is anything else, as JSON text; `quoted` a text as JSON writes it."""

    TEXT = "text"
    QUOTED = "quoted"
    NUMBER = "number"
    CHOICE = "choice"
    FIXED = "fixed"
    OBJECT = "object"
    LIST = "list"
    JSON = "json"


@dataclass(frozen=True)
class Option:
    """One of the values of a choice: as JSON text, and as it is shown."""

    value: str
    label: str


@dataclass(frozen=True)
class Field:
    """One part. `text` is what stands in it, `shown` what the original was shown as.

    `original` is None for what was added. `nullable` has a box "Not set", ticked when `is_null`. `forms` are
    the names of the alternatives of a union, `form` the chosen one's place. `missing` are properties that can
    be added; `open` takes entries of any name. `ids` are the last parts of the children's names.
    """

    name: str
    label: str
    kind: Kind
    original: Source | None
    text: str = ""
    shown: str = ""
    help: str = ""
    required: bool = True
    whole_number: bool = False
    nullable: bool = False
    is_null: bool = False
    removable: bool = False
    options: tuple[Option, ...] = ()
    forms: tuple[str, ...] = ()
    form: int | None = None
    children: tuple["Field", ...] = ()
    missing: tuple[str, ...] = ()
    open: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The children, by the last parts of their names, not escaped."""
        return tuple(unescaped(child.name.rpartition("/")[2]) for child in self.children)

    @property
    def is_container(self) -> bool:
        """Whether it has fields of its own."""
        return self.kind in (Kind.OBJECT, Kind.LIST)

    @property
    def rows(self) -> int:
        """How many lines its text needs, within reason."""
        lines = sum(1 + len(line) // 72 for line in self.text.split("\n"))
        return min(max(lines, 1), 24)

    def every(self) -> Iterator["Field"]:
        """Return the field and all below it."""
        yield self
        for child in self.children:
            yield from child.every()

    def find(self, name: str) -> "Field | None":
        """Return the field of this name."""
        return next((each for each in self.every() if each.name == name), None)


def below(name: str, part: str) -> str:
    """Return the JSON pointer of a part of what `name` points at."""
    return f"{name}/{part.replace('~', '~0').replace('/', '~1')}"


def unescaped(part: str) -> str:
    """Return the name that a part of a JSON pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")


def lines(text: str) -> str:
    """Return a text as a browser's text box holds it: every end of a line is a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True)
class State:
    """What a person did to a form so far, by names of fields. Empty: nothing yet.

    `sent` is whether a browser sent it: only then a box that is not in `boxes` is one without a tick.
    `members` are the ids of the children of objects and lists that were changed, `forms` the alternatives
    that were chosen.
    """

    texts: "dict[str, str]"
    boxes: frozenset[str]
    members: "dict[str, tuple[str, ...]]"
    forms: "dict[str, int]"
    sent: bool = True

    def shape(self) -> str:
        """Return what of it no text box holds, as text for a hidden field."""
        return json.dumps({"members": self.members, "forms": self.forms}, separators=(",", ":"))

    def with_members(self, name: str, ids: tuple[str, ...]) -> "State":
        """Return it with other children of one field."""
        return replace(self, members={**self.members, name: ids})

    def with_form(self, name: str, form: int) -> "State":
        """Return it with another alternative for one field; what was changed below begins anew."""
        kept = {each: ids for each, ids in self.members.items() if not _inside(each, name)}
        forms = {each: at for each, at in self.forms.items() if not _inside(each, name)}
        return replace(self, members=kept, forms={**forms, name: form})


UNTOUCHED = State({}, frozenset(), {}, {}, sent=False)


def read_state(texts: dict[str, str], boxes: frozenset[str], shape: str) -> State:
    """Return what a browser sent; a shape that cannot be read is none."""
    try:
        found: Any = json.loads(shape or "{}")
        members = {str(name): tuple(map(str, ids)) for name, ids in found.get("members", {}).items()}
        forms = {str(name): int(at) for name, at in found.get("forms", {}).items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        members, forms = {}, {}
    return State(texts, boxes, members, forms)


def _inside(name: str, of: str) -> bool:
    return name == of or name.startswith(f"{of}/")
