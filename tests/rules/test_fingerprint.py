"""A fingerprint names one call: the same call however it is written, and no other."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from clearance.fingerprint import fingerprint
from clearance.toolcall import ToolCall
from tests.rules.case_tools import PAY, SCHEMAS, WRITE_RECORD
from tests.rules.json_values import json_values, same

SALT = "00" * 16


def of(
    tool: str, arguments: dict[str, Any] | str, *, schema: dict[str, Any] | None = None, **other: str
) -> str:
    """Return the fingerprint of a call whose arguments are given parsed or as text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(key=other.get("key", "r/1/0"), tool=tool, arguments=text)
    return fingerprint(
        call,
        run=other.get("run", "r"),
        schema=SCHEMAS.get(tool, {}) if schema is None else schema,
        salt=other.get("salt", SALT),
    )


SAME: dict[str, tuple[str, Any, Any]] = {
    "key order at every level": (
        "write_record",
        '{"data":{"a":1,"b":{"x":1,"y":[1,2]}}}',
        '{"data":{"b":{"y":[1,2],"x":1},"a":1}}',
    ),
    "white space": ("write_record", '{"data":[1,2]}', ' { "data" : [ 1 ,\n2 ] } '),
    "escapes": ("write_record", '{"data":"\\u00e9\\/"}', '{"d\\u0061ta":"\u00e9/"}'),
    "a default written": (
        "send_email",
        {"to": "ann@corp.example", "subject": "s", "body": "b"},
        {"to": "ann@corp.example", "subject": "s", "body": "b", "urgent": False},
    ),
    "two spellings of one float": ("write_record", '{"data":48250.00}', '{"data":4.825e4}'),
}
DIFFERENT: dict[str, tuple[str, Any, Any]] = {
    "the order of items": ("write_record", {"data": [1, 2]}, {"data": [2, 1]}),
    "a number and a text": ("write_record", {"data": 7}, {"data": "7"}),
    "an integer and a float": ("write_record", '{"data":7}', '{"data":7.0}'),
    "null and an empty text": ("write_record", {"data": None}, {"data": ""}),
    "an empty object and one with null": ("write_record", {"data": {}}, {"data": {"k": None}}),
    "true and 1": ("write_record", {"data": True}, {"data": 1}),
    "false and 0": ("write_record", {"data": False}, {"data": 0}),
    "zero and minus zero": ("write_record", '{"data":0.0}', '{"data":-0.0}'),
    "a composed and a decomposed letter": ("write_record", {"data": "e\u0301"}, {"data": "\u00e9"}),
    "a look-alike letter": ("write_record", {"data": "corp"}, {"data": "c\u043erp"}),
    "an invisible character": ("write_record", {"data": "ab"}, {"data": "a\u200bb"}),
    "a right-to-left override": ("write_record", {"data": "exe.jpg"}, {"data": "\u202eexe.jpg"}),
    "beyond 2^53": ("write_record", {"data": 2**53}, {"data": 2**53 + 1}),
    "beyond 2^64": ("write_record", {"data": 2**64}, {"data": 2**64 + 1}),
    "the last digit of a float": ("write_record", {"data": 0.1}, {"data": 0.10000000000000002}),
    "an amount": ("pay", {"account": "A-1", "amount_cents": 10}, {"account": "A-1", "amount_cents": 11}),
    "another value than the default": (
        "pay",
        {"account": "A-1", "amount_cents": 10},
        {"account": "A-1", "amount_cents": 10, "currency": "USD"},
    ),
    "null where nothing was": (
        "pay",
        {"account": "A-1", "amount_cents": 10},
        {"account": "A-1", "amount_cents": 10, "memo": None},
    ),
}


@pytest.mark.parametrize(("tool", "one", "other"), SAME.values(), ids=SAME.keys())
def test_one_call_in_two_spellings_has_one_fingerprint(tool: str, one: Any, other: Any) -> None:
    assert of(tool, one) == of(tool, other)


@pytest.mark.parametrize(("tool", "one", "other"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_a_difference_that_the_tool_could_see_gives_another_fingerprint(
    tool: str, one: Any, other: Any
) -> None:
    assert of(tool, one) != of(tool, other)


def test_run_key_tool_schema_and_salt_are_all_bound() -> None:
    arguments = {"account": "A-1", "amount_cents": 10}
    found = {
        of("pay", arguments),
        of("pay", arguments, run="r2"),
        of("pay", arguments, key="r/1/1"),
        of("pay2", arguments, schema=PAY),
        of("pay", arguments, schema={**PAY, "title": "Pay"}),
        of("pay", arguments, salt="01" * 16),
    }
    assert len(found) == 6


def test_a_default_that_changed_gives_another_fingerprint_even_where_it_was_written() -> None:
    changed = copy.deepcopy(PAY)
    changed["properties"]["currency"]["default"] = "USD"
    written = {"account": "A-1", "amount_cents": 10, "currency": "EUR"}
    assert of("pay", written) != of("pay", written, schema=changed)


def test_the_model_s_own_call_id_makes_no_difference() -> None:
    one = ToolCall(key="r/1/0", tool="pay", arguments='{"a":1}', tool_call_id="call_0")
    other = ToolCall(key="r/1/0", tool="pay", arguments='{"a":1}', tool_call_id="call_9")
    assert fingerprint(one, run="r", schema={}, salt=SALT) == fingerprint(
        other, run="r", schema={}, salt=SALT
    )


def test_a_fingerprint_is_64_hexadecimal_digits() -> None:
    found = of("pay", {"account": "A-1", "amount_cents": 10})
    assert len(found) == 64
    assert set(found) <= set("0123456789abcdef")


@given(json_values, json_values)
def test_two_calls_share_a_fingerprint_exactly_when_their_values_are_the_same(one: Any, other: Any) -> None:
    schema = {**WRITE_RECORD, "title": "record"}
    found = [of("write_record", {"data": value}, schema=schema) for value in (one, other)]
    assert (found[0] == found[1]) == same(one, other)
