"""Edits as JavaScript's forms send them: what was meant is taken, and what nobody touched stays exact."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.web.mending import mended

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Money": {"type": "number", "minimum": 0}},
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "money": {"$ref": "#/$defs/Money"},
        "sure": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "integer"}},
        "inner": {"type": "object", "properties": {"count": {"type": "integer"}}},
        "free": {},
    },
}


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": "18446744073709551617"}, {"count": 18446744073709551617}),
        ({"money": "48250.0"}, {"money": 48250.0}),
        ({"money": "7"}, {"money": 7}),
        ({"sure": "true"}, {"sure": True}),
        ({"maybe": "null"}, {"maybe": None}),
        ({"tags": "[1, 2]"}, {"tags": [1, 2]}),
        ({"tags": ["1", "2"]}, {"tags": [1, 2]}),
        ({"inner": '{"count": 4}'}, {"inner": {"count": 4}}),
        ({"inner": {"count": "4"}}, {"inner": {"count": 4}}),
        # What fits as it is, or does not fit as JSON either, is left to the exact check that follows.
        ({"text": "3"}, {"text": "3"}),
        ({"free": "3"}, {"free": "3"}),
        ({"count": "3.0"}, {"count": "3.0"}),
        ({"count": "three"}, {"count": "three"}),
        ({"count": ""}, {"count": ""}),
        ({"count": '3, "text": "x"'}, {"count": '3, "text": "x"'}),
        ({"money": "-1"}, {"money": "-1"}),
        ({"money": "NaN"}, {"money": "NaN"}),
        ({"unknown": "3"}, {"unknown": "3"}),
    ],
    ids=str,
)
def test_a_text_is_read_as_what_the_schema_takes(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert json.dumps(mended(sent, stored={}, schema=SCHEMA)) == json.dumps(meant)


@pytest.mark.parametrize(
    ("stored", "sent", "kept"),
    [
        (48250.0, 48250, True),
        (48250.0, "48250", True),
        (48250.0, 48251, False),
        (12345678901234567890, 12345678901234567000, True),
        (12345678901234567890, 12345678901234567891, False),
        (10**400, 1, False),
        (True, 1, False),
        (1, True, False),
    ],
)
def test_what_javascript_makes_of_a_number_counts_as_untouched(stored: Any, sent: Any, kept: bool) -> None:
    schema = {"properties": {"it": {"type": "number"}}}
    found = mended({"it": sent}, stored={"it": stored}, schema=schema)
    assert (json.dumps(found["it"]) == json.dumps(stored)) is kept


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _in_javascript(value: Any) -> Any:
    """Return a value as JSON.parse and JSON.stringify of a browser give it back."""
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            shown = float(value)
            return int(shown) if shown.is_integer() and abs(shown) < 2**53 else shown
        case list():
            return [_in_javascript(each) for each in value]
        case _:
            return {name: _in_javascript(each) for name, each in value.items()}


@given(stored=st.dictionaries(st.text(), _VALUES, max_size=4))
def test_a_form_that_nobody_touched_gives_back_what_was_stored(stored: dict[str, Any]) -> None:
    sent = _in_javascript(stored)
    assert json.dumps(mended(sent, stored=stored, schema={"type": "object"})) == json.dumps(stored)
