"""Forms: what nobody touched comes back as the same bytes, and what was typed is exactly what was typed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import InvalidInputError
from clearance.form.building import build_form, raw_form
from clearance.form.changing import change
from clearance.form.composing import checked, compose
from clearance.form.differences import differences
from clearance.form.field import UNTOUCHED, Field, Kind, read_state
from clearance.form.source import Members, read_source
from tests.rules.forms import Schema, forms, given_back, sent


def _object(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _members(text: str) -> dict[str, str]:
    found = read_source(text)
    assert isinstance(found, Members)
    return {each.name: each.value.text for each in found.members}


@given(forms())
def test_an_untouched_form_gives_the_same_bytes_back(made: tuple[Schema, str]) -> None:
    schema, arguments = made
    assert given_back(schema, arguments).text == arguments


@given(forms(), st.data())
def test_editing_one_field_leaves_the_others_byte_equal(
    made: tuple[Schema, str], data: st.DataObject
) -> None:
    schema, arguments = made
    form = build_form(schema, arguments)
    mine = {"text": "typed\ntext", "quoted": '"typed"', "number": "12345678901234567890.0", "json": "[31e2]"}
    fields = [each for each in form.every() if each.kind.value in mine and each.name]
    if not fields:
        return
    field = data.draw(st.sampled_from(fields))
    made_text = given_back(schema, arguments, typed={field.name: mine[field.kind]}).text
    assert made_text is not None
    top = field.name.split("/")[1].replace("~1", "/").replace("~0", "~")
    before, after = _members(arguments), _members(made_text)
    assert list(after) == list(before)
    assert {name for name in before if before[name] != after[name]} == {top}


@given(forms(), st.data())
def test_only_the_place_of_the_edit_differs(made: tuple[Schema, str], data: st.DataObject) -> None:
    schema, arguments = made
    fields = [each for each in build_form(schema, arguments).every() if each.kind is Kind.TEXT]
    if not fields:
        return
    field = data.draw(st.sampled_from(fields))
    made_text = given_back(schema, arguments, typed={field.name: field.text + "!"}).text
    assert made_text is not None
    [found] = differences(arguments, made_text)
    assert found.pointer == field.name
    assert json.loads(found.after or "") == field.text + "!"


EVERYTHING = _object(
    account={"type": "integer"},
    amount={"type": "number"},
    text={"type": "string"},
    code={"type": "string"},
    any={},
)
ARGUMENTS = (
    '{"account":18446744073709551616,"amount":48250.0,"text":"\\nfirst\\nsecond","code":"a\\r\\nb","any":1e2}'
)


@pytest.mark.parametrize(
    ("name", "typed", "wanted"),
    [
        ("/account", "18446744073709551617", "18446744073709551617"),
        ("/amount", "48250.00", "48250.00"),
        ("/text", "\nother", '"\\nother"'),
        ("/text", 'with "quotes" and \\', '"with \\"quotes\\" and \\\\"'),
        ("/code", '"a\\rb"', '"a\\rb"'),
        ("/any", "2e2", "2e2"),
    ],
)
def test_what_is_typed_is_taken_exactly(name: str, typed: str, wanted: str) -> None:
    text = given_back(EVERYTHING, ARGUMENTS, typed={name: typed}).text
    assert text is not None
    assert _members(text) == {**_members(ARGUMENTS), name[1:]: wanted}


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("/amount", "1,5", "must be a number"),
        ("/amount", "", "must be a number"),
        ("/amount", "NaN", "must be a number"),
        ("/amount", "01", "must be a number"),
        ("/amount", "1e999", "beyond bounds"),
        ("/code", "no quotes", "is not JSON"),
        ("/code", "3", "quotation marks"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field(name: str, typed: str, said: str) -> None:
    made = given_back(EVERYTHING, ARGUMENTS, typed={name: typed})
    assert made.text is None
    [fault] = made.faults
    assert fault.pointer == name
    assert said in fault.message


@pytest.mark.parametrize(
    "typed",
    ["", "{", "{}}", "NaN", '{"a":1,"a":2}', '1},"x":{"y":2', "[" * 70 + "]" * 70, '"\\ud800"', "1 2"],
)
def test_json_text_is_read_strictly(typed: str) -> None:
    assert given_back(_object(x={}), '{"x":[]}', typed={"/x": typed}).text is None


def test_what_breaks_the_schema_is_said_at_the_field_it_stands_in() -> None:
    schema = _object(people={"type": "array", "items": _object(name={"type": "string", "minLength": 2})})
    arguments = '{"people":[{"name":"ann"},{"name":"bob"},{"name":"eva"}]}'
    form = build_form(schema, arguments)
    state = change(form, sent(form, UNTOUCHED), "remove /people/0", entry=str)
    form = build_form(schema, arguments, state)
    form = build_form(schema, arguments, sent(form, state, typed={"/people/2/name": "e"}))
    made = checked(form, tool="invite", schema=schema)
    assert [(fault.pointer, fault.message) for fault in made.faults] == [
        ("/people/2/name", "must have at least 2 characters")
    ]


def test_what_is_missing_is_said_at_what_it_is_missing_from() -> None:
    schema = _object(to={"type": "string"})
    made = checked(raw_form("{}"), tool="send", schema=schema)
    assert [(fault.pointer, fault.message) for fault in made.faults] == [("", "to is missing")]


def _pressed(schema: Schema, arguments: str, *commands: str, typed: dict[str, str] | None = None) -> Field:
    """Press buttons, one page after the other, and then type."""
    state = UNTOUCHED
    form = build_form(schema, arguments)
    for command in commands:
        state = change(form, sent(form, state), command, entry=lambda _: "new/name")
        form = build_form(schema, arguments, state)
    return build_form(schema, arguments, sent(form, state, typed=typed))


OPTIONAL: Schema = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "cc": {"type": "string"},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["to"],
}


@pytest.mark.parametrize(
    ("arguments", "commands", "typed", "wanted"),
    [
        ('{"to":"a"}', ["set /cc"], {"/cc": "b"}, '{"to":"a","cc":"b"}'),
        ('{"to":"a","cc":"b"}', ["remove /cc"], {}, '{"to":"a"}'),
        ('{"to":"a","cc":"b"}', ["remove /cc", "set /cc"], {}, '{"to":"a","cc":"b"}'),
        ('{"to":"a","tags":["x","y"]}', ["remove /tags/0"], {}, '{"to":"a","tags":["y"]}'),
        ('{"to":"a","tags":["x"]}', ["add /tags"], {"/tags/n0": "z"}, '{"to":"a","tags":["x","z"]}'),
        ('{"to":"a","days":null}', [], {"/days": "3"}, '{"to":"a","days":3}'),
        ('{"to":"a","labels":{"k": "v"}}', ["entry /labels"], {"/labels/new~1name": "w"},
         '{"to":"a","labels":{"k":"v","new/name":"w"}}'),
    ],
)  # fmt: skip
def test_parts_are_added_and_taken_away_by_buttons(
    arguments: str, commands: list[str], typed: dict[str, str], wanted: str
) -> None:
    assert compose(_pressed(OPTIONAL, arguments, *commands, typed=typed)).text == wanted


def test_the_box_not_set_makes_a_value_null() -> None:
    arguments = '{"to":"a","days":3}'
    form = build_form(OPTIONAL, arguments, read_state({"/days": "3"}, frozenset({"null/days"}), ""))
    assert compose(form).text == '{"to":"a","days":null}'


def test_a_value_under_the_box_not_set_is_a_contradiction_that_is_said() -> None:
    form = build_form(
        OPTIONAL, '{"to":"a","days":null}', read_state({"/days": "3"}, frozenset({"null/days"}), "")
    )
    assert [fault.pointer for fault in compose(form).faults] == ["/days"]


PAYMENT: Schema = {
    "type": "object",
    "properties": {
        "by": {
            "oneOf": [{"$ref": "#/$defs/card"}, {"$ref": "#/$defs/bank"}],
            "discriminator": {"propertyName": "kind"},
        }
    },
    "required": ["by"],
    "$defs": {
        "card": _object(kind={"const": "card"}, number={"type": "string"}),
        "bank": _object(kind={"const": "bank"}, iban={"type": "string"}),
    },
}


def test_a_union_shows_the_alternative_that_fits_and_names_the_others() -> None:
    form = build_form(PAYMENT, '{"by":{"kind":"bank","iban":"DE1"}}')
    field = form.find("/by")
    assert field is not None
    assert (field.forms, field.form, field.ids) == (("card", "bank"), 1, ("kind", "iban"))


def test_another_alternative_begins_with_what_it_requires() -> None:
    arguments = '{"by":{"kind":"bank","iban":"DE1"}}'
    form = _pressed(PAYMENT, arguments, "choose 0 /by", typed={"/by/number": "42"})
    assert compose(form).text == '{"by":{"kind":"card","number":"42"}}'
    assert compose(_pressed(PAYMENT, arguments, "choose 0 /by", "choose 1 /by")).text == arguments


@pytest.mark.parametrize(
    "command",
    ["", "drop", "add /to", "add /nowhere", "set /to", "set /unknown", "remove /nowhere", "choose x /to"],
)
def test_a_button_that_does_not_fit_the_form_is_refused(command: str) -> None:
    form = build_form(OPTIONAL, '{"to":"a"}')
    with pytest.raises(InvalidInputError):
        change(form, UNTOUCHED, command, entry=str)


@pytest.mark.parametrize(
    "shape", ["", "x", "[]", "null", '{"members":3}', '{"forms":{"/a":"x"}}', "[" * 9999]
)
def test_a_shape_that_cannot_be_read_is_none(shape: str) -> None:
    assert (
        compose(build_form(OPTIONAL, '{"to":"a"}', read_state({}, frozenset(), shape))).text == '{"to":"a"}'
    )


def test_a_schema_without_end_is_shown_as_far_as_anybody_reads() -> None:
    endless: Schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
        "required": ["a", "b"],
    }
    form = build_form(endless, "{}", read_state({}, frozenset(), '{"members":{"":["a","b"]}}'))
    assert len(list(form.every())) < 600
    assert build_form({"$ref": "#"}, '{"a":1}').kind is not Kind.TEXT


def test_more_arguments_than_a_form_shows_are_json_text() -> None:
    arguments = json.dumps({"rows": [{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6} for _ in range(99)]})
    schema = _object(rows={"type": "array", "items": {"type": "object"}})
    assert build_form(schema, arguments).kind is Kind.JSON
    assert given_back(schema, arguments).text == arguments
