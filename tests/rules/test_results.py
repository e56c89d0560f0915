"""Whatever a tool gives back or raises becomes one bounded text, and nothing of it is lost without a word."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.outcome import (
    FINAL,
    SUCCESS,
    CallState,
    Outcome,
    blocked,
    dropped,
    expired,
    rejected,
    repeated,
    timed_out,
    uncertain,
    withdrawn,
)
from clearance.results import KEPT_LIMIT, MODEL_LIMIT, Result, bound, read_error, read_result
from tests.rules.small_reviews import Desk, call, reject, review


class Hostile:
    """A value that raises whatever one does with it."""

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised

    def __str__(self) -> str:
        raise self.raised


class SilentError(Exception):
    """An error whose message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


VALUES: dict[str, tuple[Any, str]] = {
    "text": ("18 C", "18 C"),
    "nothing": (None, "done"),
    "an empty text": ("", "(empty)"),
    "empty bytes": (b"", "(empty)"),
    "bytes": (b"\xff\x00a", "\ufffd\x00a"),
    "a number": (7, "7"),
    "a bool": (False, "false"),
    "an object": ({"b": 1, "a": [None]}, '{"b": 1, "a": [null]}'),
    "letters": ({"a": "\u00e9"}, '{"a": "\u00e9"}'),
    "an integer beyond 2^64": ([2**64 + 1], "[18446744073709551617]"),
    "a decimal": ({"sum": Decimal("1.10")}, '{"sum": "1.10"}'),
    "a time": ([datetime(2026, 3, 2, tzinfo=UTC)], '["2026-03-02 00:00:00+00:00"]'),
    "keys that are no text": ({(1, 2): 3}, "{(1, 2): 3}"),
    "NaN": (float("nan"), "NaN"),
    "a result": (Result(ok=False, text="no"), "no"),
}


@pytest.mark.parametrize(("value", "text"), VALUES.values(), ids=VALUES.keys())
def test_any_value_becomes_text(value: Any, text: str) -> None:
    assert read_result(value).text == text


def test_a_value_that_holds_itself_becomes_text() -> None:
    value: list[object] = []
    value.append(value)
    assert read_result(value) == Result(ok=True, text="[[...]]")


@pytest.mark.parametrize("raised", [ValueError("x"), RuntimeError("x"), SystemExit(1), RecursionError()])
@pytest.mark.parametrize("inside", [False, True])
def test_a_value_that_cannot_be_written_is_still_the_result_of_a_tool_that_ended(
    raised: BaseException, inside: bool
) -> None:
    value = Hostile(raised)
    found = read_result({"a": value} if inside else value)
    assert found.ok
    assert "cannot be written as text" in found.text or "Hostile" in found.text


def test_an_integer_that_python_does_not_write_is_still_a_result() -> None:
    assert read_result(10**5000) == Result(ok=True, text="(a int that cannot be written as text)")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (KeyError("a"), "KeyError: 'a'"),
        (TimeoutError(), "TimeoutError"),
        (SystemExit(3), "SystemExit: 3"),
        (SilentError(), "SilentError: (a SilentError that cannot be written as text)"),
    ],
)
def test_an_error_is_a_result_that_is_no_success(error: BaseException, text: str) -> None:
    assert read_error(error) == Result(ok=False, text=text)


def test_what_fits_reaches_the_model_whole() -> None:
    text = "x" * MODEL_LIMIT
    assert (bound(text, artifact="k/1").text, bound(text, artifact="k/1").whole) == (text, None)


def test_a_larger_result_is_cut_in_the_middle_and_kept_whole() -> None:
    text = "head" + "x" * 5_000_000 + "tail"
    found = bound(text, artifact="r/1/0/1")
    assert found.text.startswith("head")
    assert found.text.endswith("tail")
    assert len(found.text.encode()) <= MODEL_LIMIT
    assert "5000008 in all, kept as artifact r/1/0/1" in found.text
    assert found.whole == text.encode()


def test_the_note_tells_exactly_how_many_bytes_are_missing() -> None:
    text = "\u00e9" * MODEL_LIMIT
    shown = bound(text, artifact="k/1").text
    before, _, rest = shown.partition("\n[… ")
    note, _, after = rest.partition(" …]\n")
    missing = int(note.split()[0])
    assert abs(len(before.encode()) + len(after.encode()) + missing - len(text.encode())) <= 2


def test_what_is_kept_is_bounded_too() -> None:
    found = bound("x" * (KEPT_LIMIT + 1), artifact="k/1")
    assert found.whole is not None
    assert len(found.whole) == KEPT_LIMIT


@given(st.text(st.characters() | st.sampled_from("\0\ud800\udfff"), max_size=20), st.integers(1, 20_000))
def test_what_reaches_the_model_is_bounded_text_that_every_store_takes(part: str, times: int) -> None:
    found = bound(part * times, artifact="k/1").text
    assert len(found.encode()) <= MODEL_LIMIT
    assert "\0" not in found


SENTENCES = [
    blocked("pay"),
    dropped("pay"),
    expired("pay"),
    repeated("pay"),
    timed_out("pay", seconds=60.0),
    uncertain("pay"),
    withdrawn("pay", reason="no longer needed"),
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_call_that_has_no_result_says_so_and_names_its_tool(sentence: str) -> None:
    assert "pay" in sentence
    assert sentence.endswith((".", "needed"))


def test_a_rejection_says_so_with_its_reason() -> None:
    place = Desk(review(call("c1")))
    place.decide([reject(message="not now")])
    said = rejected(place.review.calls[0])
    not_again = "Do not try it again unless you are asked to."
    assert said == f"A reviewer rejected this call; send_email did not run. {not_again} Reason: not now"


@pytest.mark.parametrize("state", list(CallState))
def test_only_what_happened_or_was_answered_is_a_success(state: CallState) -> None:
    outcome = Outcome(key="k", state=state, tool="pay", arguments="{}", text="")
    assert outcome.is_error == (state not in (CallState.EXECUTED, CallState.RESPONDED))
    assert SUCCESS < FINAL


def test_results_of_tools_are_json_where_they_can_be() -> None:
    value = {"a": [1, 2.5, None, {"b": "\u202e"}]}
    assert json.loads(read_result(value).text) == value
