"""Canonical JSON is what `docs/canonical-json.md` says, checked by its vectors and by a second encoder."""

import hashlib
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import InvalidArgumentsError
from clearance.fingerprint import fingerprint
from clearance.toolcall import ToolCall, canonical, parse_arguments
from tests.house.sources import ROOT
from tests.rules.json_values import floats, json_objects, json_values, same
from tests.rules.second_encoder import encode

VECTORS = json.loads((ROOT / "docs" / "canonical-json-vectors.json").read_text(encoding="ascii"))


def named(kind: str) -> Any:
    """Return a list of vectors as parameters."""
    return [pytest.param(vector, id=vector["name"]) for vector in VECTORS[kind]]


@pytest.mark.parametrize("vector", named("canonical"))
def test_a_vector_has_its_canonical_form_and_hash(vector: dict[str, str]) -> None:
    text = canonical(parse_arguments(vector["text"]))
    assert text == vector["canonical"]
    assert hashlib.sha256(text.encode()).hexdigest() == vector["sha256"]


@pytest.mark.parametrize("vector", named("refused"))
def test_a_vector_that_is_no_value_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_arguments(vector["text"])


@pytest.mark.parametrize("vector", named("fingerprints"))
def test_a_vector_has_its_fingerprint(vector: dict[str, str]) -> None:
    call = ToolCall(key=vector["call"], tool=vector["tool"], arguments=vector["arguments"])
    schema = json.loads(vector["schema"])
    found = fingerprint(call, run=vector["run"], schema=schema, salt=vector["salt"])
    assert found == vector["fingerprint"]
    assert found == hashlib.sha256(vector["hashed"].encode()).hexdigest()


@given(json_values)
def test_a_second_encoder_writes_the_same(value: Any) -> None:
    assert canonical(value) == encode(value)


@given(floats)
def test_floats_have_the_fewest_digits_and_the_right_exponent(value: float) -> None:
    assert canonical(value) == encode(value)


@given(st.integers(-1074, 1023))
def test_powers_of_two_whose_neighbours_are_not_equally_near_are_written_right(power: int) -> None:
    assert canonical(2.0**power) == encode(2.0**power)


@given(json_objects)
def test_canonical_text_is_read_back_as_the_same_value_and_written_as_the_same_text(
    value: dict[str, Any],
) -> None:
    text = canonical(value)
    read = parse_arguments(text)
    assert same(read, value)
    assert canonical(read) == text


@given(json_values, json_values)
def test_two_values_have_the_same_text_exactly_when_they_are_the_same(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)


def shuffled(value: Any, *, by: random.Random) -> Any:
    """Return the value with the keys of every object in another order."""
    if isinstance(value, list):
        return [shuffled(item, by=by) for item in value]
    if not isinstance(value, dict):
        return value
    names = list(value)
    by.shuffle(names)
    return {name: shuffled(value[name], by=by) for name in names}


@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference_at_any_level(value: Any, by: random.Random) -> None:
    assert canonical(shuffled(value, by=by)) == canonical(value)


@given(json_values)
def test_canonical_text_is_json_without_white_space_in_one_line(value: Any) -> None:
    text = canonical(value)
    assert same(json.loads(text), value)
    assert not set(text.replace(" ", "")) & {"\n", "\r", "\t"}


def test_a_tuple_is_an_array() -> None:
    assert canonical({"a": (1, (2,))}) == '{"a":[1,[2]]}'


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1: 2}, {None: 1}, {"1": 1, 1: 2}, b"", {1}, "\ud800", {"\udfff": 1}],
    ids=ascii,
)
def test_what_json_cannot_carry_exactly_has_no_canonical_form(value: object) -> None:
    with pytest.raises(InvalidArgumentsError):
        canonical(value)
    with pytest.raises(InvalidArgumentsError):
        canonical([{"a": value}])


def test_an_integer_of_more_digits_than_may_be_has_no_canonical_form() -> None:
    assert len(canonical(10**4300 - 1)) == 4300
    with pytest.raises(InvalidArgumentsError, match="4300 digits"):
        canonical(-(10**4300))
