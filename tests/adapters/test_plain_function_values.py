"""The values of cleared functions: what arrives, what comes back, and what names a call."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from clearance import cleared, turns
from clearance.errors import ConflictError, InvalidInputError
from clearance.results import KEPT_LIMIT
from clearance.store import runs
from clearance.workspace import Clearance
from tests.adapters.decided import decide, pending

pytestmark = pytest.mark.sqlite_by_day


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("", ""),
        (0, 0),
        (2**70, 2**70),
        (7.0, 7.0),
        ([1, (2, "\u202e")], [1, [2, "\u202e"]]),
        ({"b": 1, "a": {"c": False}}, {"b": 1, "a": {"c": False}}),
        ({1: "x"}, {"1": "x"}),
        (math.inf, math.inf),
        ("null \0 and half a pair \ud800", "null \0 and half a pair ?"),
        ("x" * 200_000, "x" * 200_000),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
        ({("a", 1): 2}, "{('a', 1): 2}"),
        (10**5000, "(int, which cannot be written down)"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_the_first_result_is_the_kept_one(workspace: Clearance, given: object, kept: object) -> None:
    @cleared(key="once")
    def give():  # type: ignore[no-untyped-def]  # what has no annotation may be any value
        return given

    decide(workspace, pending(give))
    for _ in range(2):
        found = give()
        assert (found, type(found)) == (kept, type(kept))


def test_a_result_that_is_too_large_to_be_kept_is_no_failure(workspace: Clearance) -> None:
    @cleared(key="once")
    def give() -> str:
        return "x" * (KEPT_LIMIT + 1)

    decide(workspace, pending(give))
    assert (
        give() == give() == f"(a result of {KEPT_LIMIT + 3} bytes, more than the {KEPT_LIMIT} that are kept)"
    )


@pytest.mark.parametrize("value", [2**70, -(2**64), 2**53 + 1, 7, 7.0, "7", {"b": [None, "\u202e"], "a": {}}])
def test_arguments_arrive_as_they_were_sent(workspace: Clearance, paid: list[Any], value: object) -> None:
    @cleared(key="once")
    def take(value: Any) -> None:
        paid.append(value)

    decide(workspace, pending(lambda: take(value)))
    take(value)
    assert paid == [value]
    assert type(paid[0]) is type(value)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (None, "The key of ask is missing"),
        ("", "must be a text of 1 to 200 printable"),
        ("a/b", "neither '/' nor spaces"),
        ("a b", "neither '/' nor spaces"),
        ("a\n", "printable"),
        ("\u202e", "printable"),
        ("x" * 201, "1 to 200"),
        (lambda **_: 7, "must be a text"),
    ],
)
def test_a_key_that_cannot_name_a_run_is_refused(workspace: Clearance, key: Any, why: str) -> None:
    @cleared(key=key)
    def ask() -> None: ...

    with pytest.raises(InvalidInputError, match=why):
        ask()
    with workspace.database.read() as tx:
        assert runs.list_runs(tx) == []


def test_a_key_that_is_a_conversations_id_is_refused(workspace: Clearance) -> None:
    @cleared(key="talk-7")
    def ask() -> None: ...

    turns.start(workspace.ledger, "talk-7", "Hello", run_id="r", program="chat", by="ann")
    with pytest.raises(ConflictError, match="talk-7"):
        ask()
