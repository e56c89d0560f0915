"""Parts of a schema as a form reads them: references followed, alternatives counted, types named."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clearance.errors import InvalidArgumentsError
from clearance.schema import faults
from clearance.toolcall import canonical

Schema = Mapping[str, Any]
_FOLLOWED = 32
_NULL: Schema = {"type": "null"}
_SCALARS = {"string", "number", "integer", "boolean"}


@dataclass(frozen=True)
class Part:
    """One part of a schema. `forms` are its alternatives, where it has more than one."""

    schema: Schema
    nullable: bool = False
    forms: tuple[Schema, ...] = ()

    @property
    def type(self) -> str | None:
        """The JSON type, where the schema names one."""
        found = self.schema.get("type")
        return found if isinstance(found, str) else None


def read_part(schema: Any, root: Schema) -> Part:
    """Return a part of the schema `root`, with what it refers to in place of its references."""
    found = followed(schema, root)
    types = found.get("type")
    for word in ("anyOf", "oneOf"):
        if isinstance(found.get(word), list) and found[word]:
            shared = {name: said for name, said in found.items() if name not in (word, "default")}
            forms: list[Schema] = [{**shared, **followed(each, root)} for each in found[word]]
            return _alternatives(forms)
    if isinstance(types, list) and types and all(isinstance(each, str) for each in types):
        return _alternatives([{**found, "type": each} for each in types])
    if isinstance(found.get("enum"), list) and None in found["enum"] and len(found["enum"]) > 1:
        rest = [each for each in found["enum"] if each is not None]
        return Part({**found, "enum": rest}, nullable=True)
    return Part(found)


def followed(schema: Any, root: Schema) -> Schema:
    """Return a part without references; what stands beside a reference adds to what it refers to."""
    found: Any = schema
    beside: dict[str, Any] = {}
    for _ in range(_FOLLOWED):
        if not isinstance(found, Mapping):
            return beside
        only = found.get("allOf")
        if isinstance(only, list) and len(only) == 1:
            beside = {**{name: said for name, said in found.items() if name != "allOf"}, **beside}
            found = only[0]
            continue
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return {**found, **beside}
        beside = {**{name: said for name, said in found.items() if name != "$ref"}, **beside}
        found = _at(reference, root)
    return beside


def fits(schema: Schema, value: Any, root: Schema) -> bool:
    """Whether a value fits a part, with the definitions of its whole schema."""
    definitions = {name: root[name] for name in ("$defs", "definitions") if name in root}
    try:
        return not faults({**definitions, **schema}, value)
    except InvalidArgumentsError:
        return False


def named(schema: Schema, root: Schema) -> str:
    """Return the name of an alternative: its title, what its constants say, else its type."""
    if isinstance(schema.get("title"), str):
        return str(schema["title"])
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        constants = [followed(each, root).get("const") for each in properties.values()]
        said = [str(each) for each in constants if isinstance(each, str)]
        if said:
            return ", ".join(said)
    if "const" in schema:
        return canonical(schema["const"])
    return _TYPES.get(str(schema.get("type")), "other")


def inferred(value: Any) -> Schema:
    """Return the schema of a value of which its own schema says nothing."""
    match value:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case _:
            return {}


def default_text(schema: Schema) -> str | None:
    """Return the JSON text of the default that a part writes down."""
    return None if "default" not in schema else json.dumps(schema["default"], ensure_ascii=False)


_TYPES = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "null": "nothing",
    "array": "list",
    "object": "group of fields",
}


def _alternatives(forms: list[Schema]) -> Part:
    real = [each for each in forms if each.get("type") != "null" and each.get("const", "") is not None]
    nullable = len(real) < len(forms)
    if not real:
        return Part(_NULL)
    if len(real) > 1:
        return Part({}, forms=tuple([*real, _NULL] if nullable else real))
    if nullable and real[0].get("type") not in _SCALARS and "enum" not in real[0]:
        return Part({}, forms=(real[0], _NULL))
    return Part(real[0], nullable=nullable)


def _at(reference: str, root: Schema) -> Any:
    if not reference.startswith("#"):
        return {}
    found: Any = root
    for name in reference[1:].split("/")[1:]:
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
