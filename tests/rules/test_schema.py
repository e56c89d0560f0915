"""Arguments fit a schema strictly; every fault is named at its place, and no value is told."""

import json
import urllib.request
from typing import Any

import pytest

from clearance.errors import Fault, InvalidArgumentsError
from clearance.schema import check_arguments, faults, schema_hash, with_defaults
from tests.rules.case_tools import PAY, SEND_EMAIL

PAY_FAULTS: dict[str, tuple[str, set[tuple[str, str]]]] = {
    "a text for an integer": (
        '{"account":"A-1","amount_cents":"1000"}',
        {("/amount_cents", "must be integer")},
    ),
    "an exponent in a text": (
        '{"account":"A-1","amount_cents":"1e3"}',
        {("/amount_cents", "must be integer")},
    ),
    "a whole number with a fraction": (
        '{"account":"A-1","amount_cents":10.0}',
        {("/amount_cents", "must be integer")},
    ),
    "a whole number with an exponent": (
        '{"account":"A-1","amount_cents":1e3}',
        {("/amount_cents", "must be integer")},
    ),
    "a bool for an integer": (
        '{"account":"A-1","amount_cents":true}',
        {("/amount_cents", "must be integer")},
    ),
    "below the minimum": (
        '{"account":"A-1","amount_cents":0}',
        {("/amount_cents", "must be at least 1")},
    ),
    "a misspelt name": (
        '{"account":"A-1","amout_cents":900}',
        {("/amount_cents", "is missing"), ("/amout_cents", "is not known to this tool")},
    ),
    "a field too many": (
        '{"account":"A-1","amount_cents":900,"amout":1}',
        {("/amout", "is not known to this tool")},
    ),
    "a field too few": ('{"account":"A-1"}', {("/amount_cents", "is missing")}),
    "null for absent": (
        '{"account":"A-1","amount_cents":900,"currency":null}',
        {("/currency", "must be string"), ("/currency", "must be one of EUR or USD")},
    ),
    "several at once": (
        '{"account":"","amount_cents":-5,"currency":"eur"}',
        {
            ("/account", "must have at least 1 characters"),
            ("/amount_cents", "must be at least 1"),
            ("/currency", "must be one of EUR or USD"),
        },
    ),
    "nothing at all": ("{}", {("/account", "is missing"), ("/amount_cents", "is missing")}),
}


@pytest.mark.parametrize(("text", "expected"), PAY_FAULTS.values(), ids=PAY_FAULTS.keys())
def test_every_fault_is_named_at_its_json_pointer(text: str, expected: set[tuple[str, str]]) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        check_arguments("pay", PAY, text)
    assert {(fault.pointer, fault.message) for fault in caught.value.faults} == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"account":"A-1","amount_cents":900,"memo":null}',
        '{"account":"A-1","amount_cents":900,"currency":"USD","memo":"x"}',
        '{"amount_cents":18446744073709551617,"account":"A-1"}',
    ],
)
def test_what_fits_is_returned_as_it_is(text: str) -> None:
    assert check_arguments("pay", PAY, text) == json.loads(text)


@pytest.mark.parametrize(
    "text", ['{"subject": "refund', "null", "[]", "42", "", '"text"', '{"to":"a"} x', "{'to':'a'}"]
)
def test_arguments_that_cannot_be_read_fit_nothing(text: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        check_arguments("send_email", SEND_EMAIL, text)
    with pytest.raises(InvalidArgumentsError):
        check_arguments("anything", {}, text)


def test_a_fault_tells_no_value() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        check_arguments("pay", PAY, '{"account":7741,"amount_cents":"hunter-22","currency":"tok_ABC"}')
    assert not any(secret in str(caught.value) for secret in ("7741", "hunter", "tok_"))


PLACES: dict[str, tuple[dict[str, Any], object, str, str]] = {
    "in an array": ({"items": {"type": "integer"}}, [1, "x"], "/a/1", "must be integer"),
    "a name with a slash": (
        {"properties": {"b/c~d": {"type": "null"}}},
        {"b/c~d": 1},
        "/a/b~1c~0d",
        "must be null",
    ),
    "by a reference": ({"$ref": "#/$defs/positive"}, 0, "/a", "must be more than 0"),
    "a pattern": ({"pattern": "^[A-Z]+$"}, "abc", "/a", "must match ^[A-Z]+$"),
    "a constant object": ({"const": {"x": None}}, 1, "/a", 'must be {"x":null}'),
    "null among the choices": ({"enum": [None, "x", 1.5]}, 2, "/a", "must be one of null or x or 1.5"),
    "no form of several": (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        1,
        "/a",
        "fits none of the forms that are allowed here",
    ),
    "a format": ({"format": "email"}, "x", "/a", "must be a valid email"),
    "items twice": ({"uniqueItems": True}, [1, 1], "/a", "must not repeat an item"),
    # The library points to the object that holds what a schema forbids altogether.
    "never allowed": ({"properties": {"b": False}}, {"b": 1}, "/a", "is not allowed here"),
    "a name that fits no pattern": (
        {"patternProperties": {"^x-": {}}, "additionalProperties": False},
        {"x-a": 1, "b": 2},
        "/a/b",
        "is not known to this tool",
    ),
    "a rule of its own": (
        {"dependentRequired": {"b": ["c"]}},
        {"b": 1},
        "/a",
        "breaks the rule dependentRequired of the schema",
    ),
}


@pytest.mark.parametrize(("part", "value", "pointer", "message"), PLACES.values(), ids=PLACES.keys())
def test_a_fault_inside_points_to_its_place(
    part: dict[str, Any], value: object, pointer: str, message: str
) -> None:
    schema = {"properties": {"a": part}, "$defs": {"positive": {"exclusiveMinimum": 0}}}
    assert faults(schema, {"a": value}) == (Fault(pointer, message),)


@pytest.mark.parametrize(
    ("value", "step", "fits"),
    [(1.1, 0.1, True), (19.99, 0.01, True), (19.999, 0.01, False), (10**400, 0.01, True), (7, 2, False)],
)
def test_multiples_are_counted_on_the_numbers_as_they_are_written(
    value: float, step: float, fits: bool
) -> None:
    assert (faults({"properties": {"a": {"multipleOf": step}}}, {"a": value}) == ()) == fits


UNUSABLE: dict[str, dict[str, Any]] = {
    "a type that is none": {"type": "strng"},
    "a reference to nowhere": {"$ref": "#/$defs/none"},
    "a reference to itself": {"$ref": "#/properties/a"},
    "a pattern that is none": {"pattern": "("},
    "a limit that is no number": {"minimum": "x"},
    "multiples of zero": {"multipleOf": 0},
}


@pytest.mark.parametrize("part", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_nothing_fits_a_schema_that_cannot_be_used(part: dict[str, Any]) -> None:
    value = "hunter-22" if "pattern" in part else 7741
    with pytest.raises(InvalidArgumentsError, match="schema cannot be used") as caught:
        faults({"properties": {"a": part}}, {"a": value})
    assert str(value) not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/x.json", "file:///etc/hostname", "x.json"])
def test_nothing_is_fetched_that_a_schema_refers_to(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda *given, **_: opened.append(given))
    with pytest.raises(InvalidArgumentsError, match="schema cannot be used"):
        faults({"properties": {"a": {"$ref": place}}}, {"a": 1})
    assert not opened


COMPLETED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "left out": (PAY, {"account": "A"}, {"account": "A", "currency": "EUR"}),
    "written": (PAY, {"currency": "EUR"}, {"currency": "EUR"}),
    "another value": (PAY, {"currency": "USD"}, {"currency": "USD"}),
    "null is a value": (PAY, {"currency": None}, {"currency": None}),
    "inside an object": (
        {"properties": {"a": {"properties": {"b": {"default": 1}}}}},
        {"a": {}},
        {"a": {"b": 1}},
    ),
    "inside a default": (
        {"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}},
        {},
        {"a": {"b": 1}},
    ),
    "in items": (
        {"properties": {"a": {"items": {"properties": {"b": {"default": 1}}}}}},
        {"a": [{}, {"b": 2}, 3]},
        {"a": [{"b": 1}, {"b": 2}, 3]},
    ),
    "by a reference": (
        {
            "properties": {"a": {"$ref": "#/$defs/x~1y"}},
            "$defs": {"x/y": {"properties": {"b": {"default": 1}}}},
        },
        {"a": {}},
        {"a": {"b": 1}},
    ),
    "a reference to itself": (
        {"properties": {"a": {"$ref": "#"}, "b": {"default": 1}}},
        {"a": {"a": {}}},
        {"a": {"a": {"b": 1}, "b": 1}, "b": 1},
    ),
    "of another type": ({"properties": {"a": {"properties": {"b": {"default": 1}}}}}, {"a": 3}, {"a": 3}),
    "a part that is a bool": ({"properties": {"a": True}}, {"a": {}}, {"a": {}}),
}


@pytest.mark.parametrize(("schema", "given", "expected"), COMPLETED.values(), ids=COMPLETED.keys())
def test_defaults_that_the_schema_writes_down_are_filled_in(
    schema: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = json.dumps(given)
    assert with_defaults(schema, given) == expected
    assert json.dumps(given) == before


def test_a_default_that_refers_to_itself_ends() -> None:
    twice = {"$ref": "#", "default": {}}
    schema = {"properties": {"a": twice, "b": twice}}
    assert with_defaults(schema, {}) == {"a": {}, "b": {}}


def test_defaults_in_defaults_do_not_multiply() -> None:
    part: dict[str, Any] = {}
    for _ in range(40):
        part = {"default": [{}] * 4, "items": {"properties": {"a": part}}}
    assert with_defaults({"properties": {"a": part}}, {}) == {"a": [{}] * 4}


def test_filling_in_twice_changes_nothing() -> None:
    once = with_defaults(PAY, {"account": "A"})
    assert with_defaults(PAY, once) == once


def test_the_hash_of_a_schema_ignores_key_order_and_nothing_else() -> None:
    turned = dict(reversed(PAY.items()))
    assert list(turned) != list(PAY)
    assert schema_hash(turned) == schema_hash(PAY)
    assert schema_hash({**PAY, "title": "Pay"}) != schema_hash(PAY)
    assert schema_hash({**PAY, "required": ["amount_cents", "account"]}) != schema_hash(PAY)
