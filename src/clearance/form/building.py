"""Building: a form from a schema, the arguments as they stand, and what a person did to it so far."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clearance.form.field import UNTOUCHED, Field, Kind, Option, State, below, lines
from clearance.form.parts import Part, Schema, default_text, fits, followed, inferred, named, read_part
from clearance.form.source import Items, Member, Members, Source, read_source, value
from clearance.toolcall import canonical
from clearance.visible import visible, visible_json

MOST_FIELDS = 500
"""Fields of one form; more arguments than that are shown as JSON text."""
MOST_ITEMS = 100
_DEEPEST = 10
_NEW_DEEPEST = 4
_SCALARS = {"string": str, "integer": int | float, "number": int | float, "boolean": bool}


class _TooLargeError(Exception):
    """More fields than a form has."""


def build_form(schema: Schema, arguments: str, state: State = UNTOUCHED) -> Field:
    """Return the form of a call: an object, or JSON text where no form fits.

    `arguments` is JSON text that was read strictly before.
    """
    source = read_source(arguments)
    try:
        return _Builder(schema, state).field(schema, source, name="", label="")
    except (_TooLargeError, RecursionError):
        return raw_form(arguments, state)


def raw_form(arguments: str, state: State = UNTOUCHED) -> Field:
    """Return the form that is one box of JSON text."""
    return _as_json(Field("", "", Kind.JSON, read_source(arguments)), state)


class _Builder:
    def __init__(self, root: Schema, state: State) -> None:
        self._root = root
        self._state = state
        self._left = MOST_FIELDS

    def field(
        self,
        schema: Any,
        original: Source | None,
        *,
        name: str,
        label: str,
        required: bool = True,
        removable: bool = False,
        new: int = 0,
    ) -> Field:
        """Return the field of one part; `new` says how deep inside something added it stands."""
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError
        part = read_part(schema, self._root)
        about = part.schema.get("description") or followed(schema, self._root).get("description")
        given = Field(
            name=name,
            label=label,
            kind=Kind.JSON,
            original=original,
            help=about if isinstance(about, str) else "",
            required=required,
            removable=removable,
        )
        if name.count("/") > _DEEPEST or new > _NEW_DEEPEST:
            return _as_json(given, self._state)
        if part.forms:
            return self._union(given, part, new=new)
        return self._made(given, part, new=new)

    def _union(self, given: Field, part: Part, *, new: int) -> Field:
        """Return the field of the alternative that fits, or that was chosen."""
        names = tuple(named(each, self._root) for each in part.forms)
        names = tuple(f"{name} {at + 1}" if names.count(name) > 1 else name for at, name in enumerate(names))
        found = None
        if given.original is not None:
            standing = value(given.original)
            ways = (at for at, each in enumerate(part.forms) if fits(each, standing, self._root))
            found = next(ways, None)
        chosen = self._state.forms.get(given.name, found)
        if chosen is None and given.original is None:
            chosen = 0
        if chosen is None or not 0 <= chosen < len(part.forms):
            return _as_json(replace(given, forms=names), self._state)
        # Another alternative begins anew: what stood in the old one is not the new one's original.
        original = given.original if chosen == found else None
        inner = read_part(part.forms[chosen], self._root)
        given = replace(given, forms=names, form=chosen, original=original)
        return self._made(given, inner, new=new if original is not None else new + 1)

    def _made(self, given: Field, part: Part, *, new: int) -> Field:
        schema, original = part.schema, given.original
        is_null = original is not None and original.text == "null"
        if part.nullable:
            ticked = f"null{given.name}" in self._state.boxes if self._state.sent else is_null
            given = replace(given, nullable=True, is_null=ticked)
        standing = None if original is None or (is_null and part.nullable) else value(original)
        absent = original is None or (is_null and part.nullable)
        if "const" in schema or part.type == "null":
            fixed = canonical(schema.get("const"))
            if absent or canonical(standing) == fixed:
                return replace(given, kind=Kind.FIXED, text=fixed)
            # What does not fit stays what it is until somebody changes it.
            return _as_json(given, self._state)
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._choice(given, schema["enum"], schema, absent=absent, standing=standing)
        if part.type is None and not schema.get("properties") and not absent:
            schema = {**schema, **inferred(standing)}
        kind = schema.get("type") if isinstance(schema.get("type"), str) else None
        if kind == "boolean" and (absent or isinstance(standing, bool)):
            return self._choice(given, [True, False], schema, absent=absent, standing=standing)
        if kind in _SCALARS and (absent or _is(standing, kind)):
            return self._scalar(given, schema, kind=kind, absent=absent, standing=standing)
        if kind == "array" and isinstance(schema.get("items"), Mapping) and "prefixItems" not in schema:
            if original is None or (isinstance(original, Items) and len(original.items) <= MOST_ITEMS):
                return self._list(given, schema, new=new)
        elif kind in ("object", None) and (
            isinstance(original, Members) or (original is None and kind == "object")
        ):
            return self._object(given, schema, new=new)
        return _as_json(given, self._state)

    def _scalar(self, given: Field, schema: Schema, *, kind: str, absent: bool, standing: Any) -> Field:
        if kind != "string":
            shown = "" if absent or given.original is None else given.original.text
            text = shown if not absent else _default(schema, Kind.NUMBER)
            made = replace(given, kind=Kind.NUMBER, shown=shown, text=text, whole_number=kind == "integer")
        elif absent or is_plain(standing):
            shown = "" if absent else standing
            text = shown if not absent else _default(schema, Kind.TEXT)
            made = replace(given, kind=Kind.TEXT, shown=shown, text=text)
        else:
            shown = visible_json(standing)
            made = replace(given, kind=Kind.QUOTED, shown=shown, text=shown)
        return _typed(made, self._state)

    def _choice(
        self, given: Field, values: list[Any], schema: Schema, *, absent: bool, standing: Any
    ) -> Field:
        options = [Option(canonical(each), _label(each)) for each in values]
        shown = "" if absent else canonical(standing)
        if not absent and shown not in {each.value for each in options}:
            options.insert(0, Option(shown, f"{_label(standing)} (as proposed)"))
        default = schema.get("default")
        text = shown or (canonical(default) if "default" in schema and default is not None else "")
        if not text:
            options.insert(0, Option("", "– choose –"))
        made = replace(given, kind=Kind.CHOICE, shown=shown, text=text, options=tuple(options))
        return _typed(made, self._state)

    def _list(self, given: Field, schema: Schema, *, new: int) -> Field:
        items = given.original.items if isinstance(given.original, Items) else ()
        at_first = tuple(map(str, range(len(items)))) or _first_ids(schema, given.original)
        ids = self._state.members.get(given.name, at_first)[:MOST_ITEMS]
        children: list[Field] = []
        for each in dict.fromkeys(ids):
            original = items[int(each)] if each.isdecimal() and int(each) < len(items) else None
            children.append(
                self.field(
                    schema["items"],
                    original,
                    name=below(given.name, each),
                    label=str(len(children) + 1),
                    removable=True,
                    new=new if original is not None else new + 1,
                )
            )
        return replace(given, kind=Kind.LIST, children=tuple(children), open=len(children) < MOST_ITEMS)

    def _object(self, given: Field, schema: Schema, *, new: int) -> Field:
        found = given.original if isinstance(given.original, Members) else None
        said = schema.get("properties")
        properties: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
        wanted = schema.get("required")
        required = [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []
        at_first = tuple(each.name for each in found.members) if found else tuple(required)
        names = tuple(dict.fromkeys(self._state.members.get(given.name, at_first)))
        others = schema.get("additionalProperties")
        children = tuple(
            self._member(
                found.get(name) if found else None,
                properties.get(name, others if isinstance(others, Mapping) else {}),
                name=below(given.name, name),
                label=name,
                required=name in required,
                new=new,
            )
            for name in names
        )
        left = tuple(name for name in properties if name not in names)
        is_open = others is True or isinstance(others, Mapping)
        return replace(given, kind=Kind.OBJECT, children=children, missing=left, open=is_open)

    def _member(
        self, member: Member | None, schema: Any, *, name: str, label: str, required: bool, new: int
    ) -> Field:
        return self.field(
            schema,
            member.value if member else None,
            name=name,
            label=label,
            required=required,
            removable=not required,
            new=new if member else new + 1,
        )


def is_plain(text: str) -> bool:
    """Whether a text box holds a text as it is, with nothing in it that is not seen."""
    kept = text.replace("\n", "").replace("\t", "")
    return visible_json(kept) == json.dumps(kept, ensure_ascii=False) and min(kept, default=" ") >= " "


def _typed(field: Field, state: State) -> Field:
    """Return the field with what was typed into it."""
    typed = state.texts.get(field.name)
    return field if typed is None else replace(field, text=lines(typed))


def _as_json(field: Field, state: State) -> Field:
    shown = "" if field.original is None else visible_json(value(field.original))
    return _typed(replace(field, kind=Kind.JSON, shown=shown, text=shown), state)


def _default(schema: Schema, kind: Kind) -> str:
    """Return the text that an added field begins with."""
    written = default_text(schema)
    if written is None or written == "null":
        return ""
    if kind is Kind.NUMBER:
        return written
    found = json.loads(written)
    return found if isinstance(found, str) and is_plain(found) else ""


def _first_ids(schema: Schema, original: Source | None) -> tuple[str, ...]:
    """Return the items that a list begins with: none where there is one, else as many as it must have."""
    least = schema.get("minItems")
    if original is not None or not isinstance(least, int):
        return ()
    return tuple(f"n{at}" for at in range(min(least, MOST_ITEMS)))


def _is(standing: Any, kind: str) -> bool:
    return isinstance(standing, _SCALARS[kind]) and (kind == "boolean") == isinstance(standing, bool)


def _label(found: Any) -> str:
    match found:
        case bool():
            return "Yes (true)" if found else "No (false)"
        case str() if found:
            return visible(found)
        case _:
            return canonical(found)
