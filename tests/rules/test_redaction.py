"""What is secret in a call, the masks in its place, and what an edit makes of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import InvalidArgumentsError
from clearance.policy import Policy, Rule, judge
from clearance.redaction import (
    mask,
    masked,
    named_in,
    scrubbed,
    secret_texts,
    secrets_in,
    unmasked,
)
from clearance.schema import pointer

HIDDEN = {"type": "string", "x-secret": True}
SCHEMAS: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    ({"properties": {"a": HIDDEN, "b": {}}}, {"a": "x", "b": "y"}, {"/a"}),
    ({"properties": {"a": {"x-secret": "true"}}}, {"a": "x"}, set()),
    ({"properties": {"x-secret": {"type": "boolean"}}}, {"x-secret": True}, set()),
    ({"properties": {"a": {"properties": {"b": HIDDEN}}}}, {"a": {"b": 1, "c": 2}}, {"/a/b"}),
    ({"properties": {"a": {"items": HIDDEN}}}, {"a": ["x", "y"]}, {"/a/0", "/a/1"}),
    ({"properties": {"a": {"prefixItems": [{}, HIDDEN]}}}, {"a": ["x", "y"]}, {"/a/1"}),
    ({"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": HIDDEN}}, {"a": "x"}, {"/a"}),
    ({"properties": {"a": {"$ref": "#s"}}, "$defs": {"s": {**HIDDEN, "$anchor": "s"}}}, {"a": "x"}, {"/a"}),
    ({"properties": {"a": {"anyOf": [{"type": "null"}, HIDDEN]}}}, {"a": "x"}, {"/a"}),
    ({"properties": {"a": {"oneOf": [{}, {"allOf": [HIDDEN]}]}}}, {"a": "x"}, {"/a"}),
    ({"if": {}, "then": {"properties": {"a": HIDDEN}}}, {"a": "x"}, {"/a"}),
    ({"dependentSchemas": {"b": {"properties": {"a": HIDDEN}}}}, {"a": "x"}, {"/a"}),
    ({"additionalProperties": HIDDEN, "properties": {"b": {}}}, {"a": "x", "b": 1}, {"/a"}),
    ({"patternProperties": {"^a": HIDDEN}}, {"a": "x"}, {"/a"}),
    ({"properties": {"a": {"$ref": "https://elsewhere.example/s"}, "b": HIDDEN}}, {"a": "x"}, {"/a"}),
    ({"properties": {"a": {"$ref": "https://elsewhere.example/s"}}}, {"a": "x"}, set()),
    ({"x-secret": True}, {"a": "x", "b/c": 1}, {"/a", "/b~1c"}),
    (
        {"properties": {"a": {"$ref": "#"}, "s": HIDDEN}},
        {"a": {"a": {"s": "x"}}, "s": "y"},
        {"/a/a/s", "/s"},
    ),
]


@pytest.mark.parametrize(("schema", "arguments", "secret"), SCHEMAS)
def test_what_a_schema_calls_secret_is_found_wherever_it_says_so(
    schema: dict[str, Any], arguments: dict[str, Any], secret: set[str]
) -> None:
    assert secrets_in(schema, arguments) == secret


def test_a_schema_that_asks_for_too_much_work_makes_everything_secret() -> None:
    wide: dict[str, Any] = {"allOf": [{"properties": {f"p{n}": {}}} for n in range(60_000)]}
    schema = {"properties": {"s": HIDDEN}, **wide}
    assert secrets_in(schema, {"plain": 1, "s": "x"}) == {"/plain", "/s"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("password", {"/password"}),
        ("card.number", {"/card/number"}),
        ("/card/number", {"/card/number"}),
        ("cards.number", {"/cards/0/number", "/cards/1/number"}),
        ("/cards/1/number", {"/cards/1/number"}),
        ("/a~1b", {"/a~1b"}),
        ("missing", set()),
        ("password.more", set()),
    ],
)
def test_a_policy_names_arguments_and_what_is_inside_them(name: str, found: set[str]) -> None:
    arguments = {
        "password": "p",
        "card": {"number": 1},
        "cards": [{"number": 2}, {"number": 3}],
        "a/b": 4,
    }
    assert named_in([name], arguments) == found


def test_what_any_matching_rule_hides_is_secret() -> None:
    policy = Policy(rules=(Rule("*", secret=("pin",)), Rule("pay", secret=("card.number",)), Rule("x")))
    verdict = judge(policy, "pay", arguments={"pin": "1", "card": {"number": "2"}, "to": "ann"})
    assert verdict.secret == ("/card/number", "/pin")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("correct horse", "•••• (secret, 13 characters)"),
        ("x", "•••• (secret, 1 character)"),
        (12.5, "•••• (secret, a number)"),
        (True, "•••• (secret, true or false)"),
        (None, "•••• (secret, nothing)"),
        ([1], "•••• (secret, a list)"),
        ({"a": 1}, "•••• (secret, an object)"),
    ],
)
def test_a_mask_says_what_sort_of_secret_it_stands_for(value: object, said: str) -> None:
    assert mask(value) == said


def test_what_is_beside_a_secret_stays_byte_for_byte() -> None:
    text = '{ "to" : "\\u0061nn",\n "pin": "1234" ,"n":1.50e2, "more":[ 1 ,{"pin":2}] }'
    assert masked(text, ["/pin", "/more/1/pin"]) == (
        '{ "to" : "\\u0061nn",\n "pin": "•••• (secret, 4 characters)" ,"n":1.50e2, '
        '"more":[ 1 ,{"pin":"•••• (secret, a number)"}] }'
    )


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def _paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for name, item in inside for found in _paths(item, (*path, str(name))))]


@given(st.dictionaries(st.text(max_size=4), _VALUES, max_size=5), st.sampled_from([None, 2]), st.data())
def test_masked_arguments_differ_in_their_secrets_alone(
    arguments: dict[str, Any], indent: int | None, data: st.DataObject
) -> None:
    text = json.dumps(arguments, indent=indent, ensure_ascii=False)
    paths = [path for path in _paths(arguments) if path]
    chosen = data.draw(st.lists(st.sampled_from(paths), max_size=3, unique=True)) if paths else []
    outer = [path for path in chosen if not any(path[: n + 1] in chosen for n in range(len(path) - 1))]
    expected = json.loads(text)
    for path in outer:
        _put(expected, path)
    assert json.loads(masked(text, [pointer(list(path)) for path in chosen])) == expected
    assert masked(text, []) == text
    assert masked(text, ["/nowhere/at all"]) == text


@given(st.dictionaries(st.text(max_size=4), _VALUES, max_size=5), st.data())
def test_an_edit_that_gives_back_what_was_shown_keeps_every_secret(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    paths = [pointer(list(path)) for path in _paths(arguments) if path]
    chosen = data.draw(st.lists(st.sampled_from(paths), max_size=3, unique=True)) if paths else []
    shown = masked(text, chosen)
    assert json.dumps(json.loads(unmasked(shown, before=text, pointers=chosen))) == text


def _put(value: Any, path: tuple[str, ...]) -> None:
    step: Any = int(path[0]) if isinstance(value, list) else path[0]
    if len(path) == 1:
        value[step] = mask(value[step])
    else:
        _put(value[step], path[1:])


BEFORE = '{"to":"ann","pin":"1234","cards":[{"name":"a","n":"1111"},{"name":"b","n":"2222"}],"limit":70}'
SECRET = ("/pin", "/cards/0/n", "/cards/1/n", "/limit")
MASK = mask("1234")


def test_an_edit_beside_a_secret_keeps_the_secret() -> None:
    shown = json.loads(masked(BEFORE, SECRET))
    kept = json.loads(unmasked(json.dumps({**shown, "to": "bob"}), before=BEFORE, pointers=SECRET))
    assert kept == {**json.loads(BEFORE), "to": "bob"}


def test_an_edit_may_replace_or_leave_out_a_secret() -> None:
    edit = '{"to":"ann","pin":"9999"}'
    assert unmasked(edit, before=BEFORE, pointers=SECRET) == edit


@pytest.mark.parametrize(
    "edit",
    [
        {"to": MASK},
        {"to": "ann", "pin": f"{MASK} "},
        {"to": "ann", "pin": mask("12345")},
        {"to": "ann", "limit": MASK},
        {"cards": [{"name": "b", "n": MASK}]},
        {"cards": [{"name": "b", "n": MASK}, {"name": "a", "n": MASK}]},
        {"other": {"pin": MASK}},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_mask_that_stands_for_no_secret_there_is_refused(edit: dict[str, Any], ascii_only: bool) -> None:
    with pytest.raises(InvalidArgumentsError, match="is the mask of a secret"):
        unmasked(json.dumps(edit, ensure_ascii=ascii_only), before=BEFORE, pointers=SECRET)


def test_secrets_that_others_repeat_are_found_in_their_texts() -> None:
    words = secret_texts('{"pin":"1234","short":"ab","deep":{"n":["5678"]}}', ["/pin", "/short", "/deep"])
    assert words == {"1234", "5678"}
    assert scrubbed("the pin 1234 of ab", words) == f"the pin {MASK} of ab"
