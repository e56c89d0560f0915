"""Arguments are read strictly: what JSON cannot carry exactly is refused where it enters, never mended."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from clearance.errors import InvalidArgumentsError
from clearance.toolcall import MAX_ARGUMENT_BYTES, MAX_DEPTH, MAX_DIGITS, argument_text, parse_arguments
from tests.rules.json_values import json_objects, same


def nested(levels: int) -> str:
    """Return an object inside an object inside …, so many of them."""
    return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)


def sized(size: int) -> str:
    """Return arguments of so many bytes."""
    return '{"a":"' + "x" * (size - len('{"a":""}')) + '"}'


REFUSED = {
    "nothing": "",
    "white space": " \n",
    "cut off": '{"subject": "refund',
    "null": "null",
    "an array": "[]",
    "a number": "42",
    "a text": '"text"',
    "true": "true",
    "trailing text": '{"to":"a@corp.example"} trailing',
    "two objects": "{}{}",
    "single quotes": "{'subject':'refund'}",
    "no quotes": '{subject:"refund"}',
    "a trailing comma": '{"a":1,}',
    "a comment": '{"a":1 /* one */}',
    "a byte order mark": "\ufeff{}",
    "NaN": '{"a":NaN}',
    "-NaN": '{"a":-NaN}',
    "Infinity": '{"a":Infinity}',
    "-Infinity": '{"a":[-Infinity]}',
    "beyond the largest float": '{"a":1e400}',
    "beyond the smallest float": '{"a":-1e400}',
    "so small that it would become 0": '{"a":1e-400}',
    "so small, negative, without exponent": '{"a":-0.' + "0" * 400 + "1}",
    "a leading zero": '{"a":01}',
    "a plus sign": '{"a":+1}',
    "a hexadecimal number": '{"a":0x10}',
    "digits of another script": '{"a":\u0661}',
    "a point without digits": '{"a":1.}',
    "an integer of too many digits": '{"a":' + "9" * (MAX_DIGITS + 1) + "}",
    "an integer of 5000 digits": '{"a":-' + "9" * 5000 + "}",
    "a repeated key": '{"a":1,"a":1}',
    "a repeated key inside": '{"a":{"b":[{"c":1,"c":2}]}}',
    "a key repeated by an escape": '{"a":1,"\\u0061":2}',
    "a lone surrogate": '{"a":"\\ud800"}',
    "a lone surrogate as it is": '{"a":"\ud800"}',
    "a low surrogate": '{"a":"x\\udc00y"}',
    "surrogates in the wrong order": '{"a":"\\udc00\\ud800"}',
    "a lone surrogate in a key": '{"\\udfff":1}',
    "a lone surrogate inside": '{"a":[{"b":"\\ud83d"}]}',
    "a line feed in a text": '{"a":"x\ny"}',
    "a null character in a text": '{"a":"x\x00y"}',
    "nested too deep": nested(MAX_DEPTH + 1),
    "arrays nested too deep": '{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
    "nested beyond any stack": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "one byte too many": sized(MAX_ARGUMENT_BYTES + 1),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_text_that_is_not_one_exact_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_arguments(text)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_is_a_short_sentence_that_tells_no_value(text: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        parse_arguments(text)
    said = str(caught.value)
    assert said.startswith("The arguments ")
    assert said.endswith(".")
    assert len(said) < 120
    assert "refund" not in said


ACCEPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "empty": ("{}", {}),
    "white space around": (' \n{ "a" : 1 }\t', {"a": 1}),
    "an integer beyond 2^53": ('{"a":9007199254740993}', {"a": 2**53 + 1}),
    "an integer beyond 2^64": ('{"a":-18446744073709551617}', {"a": -(2**64) - 1}),
    "an integer of as many digits as may be": (
        '{"a":' + "9" * MAX_DIGITS + "}",
        {"a": 10**MAX_DIGITS - 1},
    ),
    "the largest float": ('{"a":1.7976931348623157e308}', {"a": 1.7976931348623157e308}),
    "the smallest float": ('{"a":5e-324}', {"a": 5e-324}),
    "zero with a large exponent": ('{"a":0e999}', {"a": 0.0}),
    "an escaped null character": ('{"a":"\\u0000"}', {"a": "\x00"}),
    "a pair of surrogates": ('{"a":"\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}),
    "a right-to-left override": ('{"a":"\u202egpj.exe"}', {"a": "\u202egpj.exe"}),
    "an empty key": ('{"":1}', {"": 1}),
    "keys that differ in their form only": ('{"\u00e9":1,"e\u0301":2}', {"\u00e9": 1, "e\u0301": 2}),
    "as deep as may be": (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    "as large as may be": (sized(MAX_ARGUMENT_BYTES), json.loads(sized(MAX_ARGUMENT_BYTES))),
}


@pytest.mark.parametrize(("text", "value"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_exact_object_is_read_as_it_stands(text: str, value: dict[str, Any]) -> None:
    assert same(parse_arguments(text), value)


def test_the_limit_counts_bytes_and_not_characters() -> None:
    text = '{"a":"' + "\N{GRINNING FACE}" * 10 + '"}'
    assert parse_arguments(text, limit=len(text.encode()))
    with pytest.raises(InvalidArgumentsError, match="larger than the 47 bytes"):
        parse_arguments(text, limit=len(text.encode()) - 1)


def test_seven_is_read_as_three_different_values() -> None:
    read = parse_arguments('{"a":7,"b":7.0,"c":"7"}')
    assert [type(value) for value in read.values()] == [int, float, str]


def test_minus_zero_keeps_its_sign() -> None:
    assert argument_text(parse_arguments('{"a":-0.0}')) == '{"a":-0.0}'


def test_argument_text_keeps_the_order_of_keys() -> None:
    assert argument_text({"b": 1, "a": {"z": 1, "y": 2}}) == '{"b":1,"a":{"z":1,"y":2}}'


def test_argument_text_leaves_every_character_as_it_is() -> None:
    assert argument_text({"a": "\u202ee\u0301\u2028\x7f"}) == '{"a":"\u202ee\u0301\u2028\x7f"}'


class Word(StrEnum):
    """Text of a subclass."""

    YES = "yes"


class Digit(IntEnum):
    """An integer of a subclass."""

    ONE = 1


class Amount(float):
    """A float of a subclass, as numerical libraries have them."""


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: int


def _endless() -> list[object]:
    """Return a list that holds itself."""
    value: list[object] = []
    value.append(value)
    return value


NO_JSON: dict[str, object] = {
    "a decimal": Decimal("1.10"),
    "a time": datetime(2026, 3, 2, tzinfo=UTC),
    "bytes": b"7",
    "a set": {1},
    "a complex number": 1j,
    "an object": object(),
    "a function": len,
    "a tuple": (1, 2),
    "a named tuple": Pair(1, 2),
    "text of a subclass": Word.YES,
    "an integer of a subclass": Digit.ONE,
    "a float of a subclass": Amount(1.5),
    "NaN": float("nan"),
    "an infinity": float("-inf"),
    "an integer of too many digits": 10**MAX_DIGITS,
    "a lone surrogate": "\ud800",
    "an integer as a key": {1: "a"},
    "a bool as a key": {True: "a"},
    "None as a key": {None: "a"},
    "a float as a key": {1.5: "a"},
    "a tuple as a key": {(1, 2): "a"},
    "keys that would become the same text": {"1": "a", 1: "b"},
    "a lone surrogate in a key": {"\udc00": 1},
    "a list that holds itself": _endless(),
}


@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON.keys())
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_value_that_json_has_no_exact_form_for_is_never_turned_into_one(
    value: object, inside: bool
) -> None:
    with pytest.raises(InvalidArgumentsError):
        argument_text({"a": [{"b": value}]} if inside else {"a": value})


@pytest.mark.parametrize("value", [None, [], "{}", 7, [("a", 1)]], ids=repr)
def test_only_an_object_stands_for_arguments(value: object) -> None:
    with pytest.raises(InvalidArgumentsError):
        argument_text(value)


def test_arguments_given_as_values_have_the_same_limits_as_text() -> None:
    with pytest.raises(InvalidArgumentsError, match="larger"):
        argument_text({"a": "x" * MAX_ARGUMENT_BYTES})
    with pytest.raises(InvalidArgumentsError, match="nested deeper"):
        argument_text(json.loads(nested(MAX_DEPTH + 1)))


@given(json_objects)
def test_every_value_taken_in_is_read_back_with_type_and_precision(value: dict[str, Any]) -> None:
    assert same(parse_arguments(argument_text(value)), value)


@given(json_objects)
def test_text_that_was_taken_in_stays_the_same_text(value: dict[str, Any]) -> None:
    text = argument_text(value)
    assert argument_text(parse_arguments(text)) == text
