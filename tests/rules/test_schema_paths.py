"""What a schema says of a part of the arguments, before there are any; what it leaves open is not known."""

from typing import Any

import pytest

from clearance.schema_paths import Missing, kinds, missing

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CARD: dict[str, Any] = {
    "type": "object",
    "properties": {"number": TEXT, "owner": {"properties": {"name": TEXT}}},
}
WAYS: dict[str, Any] = {
    "card": CARD,
    "reference": {"$ref": "#/$defs/card"},
    "anchored": {"$ref": "#card"},
    "either": {"anyOf": [{"$ref": "#/$defs/card"}, {"type": "null"}]},
    "one": {"oneOf": [{"type": "string"}, CARD]},
    "all": {"type": "object", "allOf": [{"$ref": "#/$defs/card"}, {"required": ["number"]}]},
    "beside": {**CARD, "anyOf": [{"required": ["number"]}, {"required": ["owner"]}]},
    "list": {"type": "array", "items": CARD},
    "lists": {"type": "array", "items": {"type": "array", "items": CARD}},
    "first": {"type": "array", "prefixItems": [CARD], "items": False},
    "either list": {"anyOf": [CARD, {"type": "array", "items": CARD}]},
    "by name": {"type": "object", "additionalProperties": False, "properties": CARD["properties"]},
}
OPEN: dict[str, Any] = {
    "anything": {},
    "true": True,
    "an object": {"type": "object"},
    "a list": {"type": "array"},
    "others": {**CARD, "additionalProperties": True},
    "others that fit": {**CARD, "unevaluatedProperties": {}},
    "patterns": {**CARD, "patternProperties": {"^x-": TEXT}},
    "a way out": {"$ref": "https://elsewhere.example/card"},
    "an open form": {"anyOf": [CARD, {"type": "object"}]},
    "an open list": {"anyOf": [CARD, {"type": "array"}]},
    "only what is required": {"type": "object", "allOf": [{"required": ["number"]}]},
    "a condition": {"if": {"required": ["number"]}, "then": {"required": ["owner"]}},
    "itself": {"type": "array", "items": {"$ref": "#/properties/part"}},
}


def schema(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"part": part}, "$defs": {"card": {**CARD, "$anchor": "card"}}}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_no_form_of_a_part_lists_is_missing(way: str) -> None:
    known = schema(WAYS[way])
    assert missing(known, ["part", "number"]) is None
    assert missing(known, ["part", "owner", "name"]) is None
    assert missing(known, ["part", "numbr"]) == Missing(1, ("number", "owner"))
    assert missing(known, ["part", "owner", "nam"]) == Missing(2, ("name",))
    assert missing(known, ["part", "number", "x"]) == Missing(2, ())


@pytest.mark.parametrize("way", OPEN)
def test_what_a_schema_leaves_open_is_not_missing(way: str) -> None:
    assert missing(schema(OPEN[way]), ["part", "whatever"]) is None
    assert kinds(schema(OPEN[way]), ("part", "whatever")) in (None, frozenset())


def test_an_item_is_named_by_its_number_and_a_map_by_any_name() -> None:
    listed = schema({"type": "array", "items": CARD})
    assert missing(listed, ["part", "0", "number"]) is None
    assert missing(listed, ["part", "0", "numbr"]) == Missing(2, ("number", "owner"))
    mapped = schema({"type": "object", "additionalProperties": CARD})
    assert missing(mapped, ["part", "whatever", "number"]) is None
    assert missing(mapped, ["part", "whatever", "numbr"]) == Missing(2, ("number", "owner"))


def test_the_first_step_is_not_judged_here() -> None:
    assert missing({**schema({}), "additionalProperties": False}, ["prat", "x"]) is None


KINDS: list[tuple[Any, tuple[str | int | None, ...], set[str] | None]] = [
    (TEXT, (), {"text"}),
    (NUMBER, (), {"number"}),
    ({"type": ["number", "null"]}, (), {"number", "null"}),
    ({"anyOf": [TEXT, {"type": "boolean"}]}, (), {"text", "bool"}),
    ({"type": "string", "enum": ["a", "b"]}, (), {"text"}),
    ({"enum": ["a", 1]}, (), None),
    ({"const": 1}, (), None),
    ({}, (), None),
    ({"anyOf": [TEXT, {}]}, (), None),
    (CARD, (), {"other"}),
    (CARD, ("number",), {"text"}),
    (CARD, ("numbr",), set()),
    ({"type": "array", "items": TEXT}, (None,), {"text"}),
    ({"type": "array", "prefixItems": [TEXT, NUMBER], "items": False}, (1,), {"number"}),
    ({"type": "array", "prefixItems": [TEXT, NUMBER], "items": False}, (None,), {"text", "number"}),
    ({"type": "array", "items": CARD}, (None, "number"), {"text"}),
    ({"type": "array", "items": CARD}, ("number",), None),
    ({"$ref": "#/$defs/card"}, ("number",), {"text"}),
    ({"$ref": "#/$defs/nothing"}, (), None),
]


@pytest.mark.parametrize(("part", "path", "expected"), KINDS)
def test_the_kinds_of_a_value_are_those_of_all_its_forms(
    part: Any, path: tuple[str | int | None, ...], expected: set[str] | None
) -> None:
    found = kinds(schema(part), ("part", *path))
    assert found == (None if expected is None else frozenset(expected))
