"""Schemas, JSON texts that fit them, and what a browser makes of a form."""

import json
from typing import Any

from hypothesis import strategies as st

from clearance.form.building import build_form
from clearance.form.composing import Composed, compose
from clearance.form.field import Field, Kind, State, read_state

Schema = dict[str, Any]
NUMBERS = ["0", "-0.0", "7", "7.0", "48250.0", "1e2", "1E-7", "18446744073709551616", "-3", "0.1", "1e300"]
TEXTS = st.text() | st.sampled_from(
    ["", "\n", "\nleading", "\n\n", "a\r\nb", "a\rb", "tab\there", "<b>x</b>", "\u202eabc", "a\u200bb", " x ",
     "</textarea>", "&amp;", "\0", "null", "1e2", "line\n", "\ufeffx"]
)  # fmt: skip
NAMES = st.sampled_from(["to", "a/b", "m~n", "", "ü", "x y", "0", "<i>"]) | st.text(max_size=4)
SPACES = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])


def _spelled(text: str, *, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)


STRINGS = st.builds(_spelled, TEXTS, ascii_only=st.booleans())
SCALARS = st.sampled_from([*NUMBERS, "true", "false", "null"]) | STRINGS


def _array(items: list[str], space: str) -> str:
    return "[" + space + f"{space},".join(items) + space + "]"


def _object(members: dict[str, str], space: str) -> str:
    return "{" + space + f",{space}".join(f"{json.dumps(k)}{space}:{v}" for k, v in members.items()) + "}"


def objects(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return texts of objects."""
    return st.builds(_object, st.dictionaries(NAMES, value, max_size=4), SPACES)


ANYTHING = st.recursive(
    SCALARS, lambda inner: st.builds(_array, st.lists(inner, max_size=4), SPACES) | objects(inner)
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Schema:
    """Return a part of a schema."""
    simple = ["string", "number", "integer", "boolean", "null", "any", "enum", "const"]
    kind = draw(
        st.sampled_from(
            [*simple, "object", "object", "array", "nullable", "union", "ref"][: None if depth else 8]
        )
    )
    match kind:
        case "any":
            return {}
        case "enum":
            return {"enum": ["red", "a\nb", 1, 1.0, None]}
        case "const":
            return {"const": draw(st.sampled_from(["x", 3, 3.0, None, [1]]))}
        case "object":
            names = draw(st.lists(NAMES, max_size=4, unique=True))
            properties = {name: draw(schemas(depth - 1)) for name in names}
            needed = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
            others = draw(st.sampled_from([None, True, False, {"type": "string"}]))
            more = {} if others is None else {"additionalProperties": others}
            return {"type": "object", "properties": properties, "required": needed, **more}
        case "array":
            return {"type": "array", "items": draw(schemas(depth - 1))}
        case "nullable":
            return {"anyOf": [draw(schemas(depth - 1)), {"type": "null"}]}
        case "union":
            return {"oneOf": draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))}
        case "ref":
            return {"$ref": draw(st.sampled_from(["#/$defs/node", "#/$defs/none", "#"]))}
        case _:
            return {"type": kind}


NODE: Schema = {
    "type": "object",
    "properties": {
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        "name": {"type": "string"},
    },
    "required": ["name"],
}


def values(schema: Schema, *, depth: int = 4) -> st.SearchStrategy[str]:
    """Return JSON texts that fit a part of a schema, more or less."""
    if not depth:
        return SCALARS
    if "$ref" in schema:
        return values(NODE, depth=depth - 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return st.one_of([values(each, depth=depth - 1) for each in schema[word]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"]).map(json.dumps)
    if "const" in schema:
        return st.just(json.dumps(schema["const"]))
    match schema.get("type"):
        case "string":
            return STRINGS
        case "number" | "integer":
            return st.sampled_from(NUMBERS)
        case "boolean":
            return st.sampled_from(["true", "false"])
        case "null":
            return st.just("null")
        case "array":
            items = st.lists(values(schema["items"], depth=depth - 1), max_size=3)
            return st.builds(_array, items, SPACES)
        case "object":
            known = {name: values(each, depth=depth - 1) for name, each in schema["properties"].items()}
            needed = {name: known.pop(name) for name in schema["required"]}
            return st.builds(_object, st.fixed_dictionaries(needed, optional=known), SPACES)
        case _:
            return ANYTHING


@st.composite
def forms(draw: st.DrawFn) -> tuple[Schema, str]:
    """Return a schema of an object, and arguments that fit it or not."""
    root = {**draw(schemas().filter(lambda each: each.get("type") == "object")), "$defs": {"node": NODE}}
    return root, draw(values(root) | objects(ANYTHING))


def sent(form: Field, state: State, *, typed: dict[str, str] | None = None) -> State:
    """Return what a browser sends of a form that it was given, with other texts typed into some fields."""
    texts, boxes = {}, set()
    for field in form.every():
        if field.nullable and field.is_null and field.name not in (typed or {}):
            boxes.add(f"null{field.name}")
        if field.is_container or field.kind is Kind.FIXED:
            continue
        text = (typed or {}).get(field.name, _in_the_page(field))
        texts[field.name] = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    return read_state(texts, frozenset(boxes), state.shape())


def _in_the_page(field: Field) -> str:
    """Return what the parser of a browser reads where the page has the text of a field."""
    parsed = field.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    match field.kind:
        case Kind.NUMBER:
            return parsed.replace("\n", "")
        case Kind.CHOICE:
            assert parsed in {each.value for each in field.options}
            return parsed
        case _:
            # The page has a line feed after the tag, which the parser drops.
            return f"\n{parsed}"[1:]


def given_back(schema: Schema, arguments: str, *, typed: dict[str, str] | None = None) -> Composed:
    """Return what a form gives back after a browser had it."""
    state = State({}, frozenset(), {}, {}, sent=False)
    form = build_form(schema, arguments, state)
    return compose(build_form(schema, arguments, sent(form, state, typed=typed)))
