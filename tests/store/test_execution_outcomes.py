"""Whatever a tool does, its call has one outcome; one that is unknown is said to be so and asked about."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from clearance.outcome import CallState
from clearance.policy import Policy, Rule, Threshold
from clearance.results import MODEL_LIMIT, Result
from clearance.store import calls
from tests.rules.small_reviews import approve
from tests.store.bench import LONG, MAIL, PAYMENT, Bench, cleared, named, raising


class Odd:
    """A result that cannot be looked at."""

    def __str__(self) -> str:
        raise ValueError("no")


ENDS: dict[str, tuple[Callable[..., object], CallState, str]] = {
    "nothing": (lambda *_: None, CallState.EXECUTED, "done"),
    "an empty text": (lambda *_: "", CallState.EXECUTED, "(empty)"),
    "an object": (lambda *_: {"paid": 2**64 + 1}, CallState.EXECUTED, '{"paid": 18446744073709551617}'),
    "a null character": (lambda *_: "a\0b", CallState.EXECUTED, "a?b"),
    "half of a surrogate pair": (lambda *_: "a\ud800b", CallState.EXECUTED, "a?b"),
    "a right-to-left override": (lambda *_: "a\u202eb", CallState.EXECUTED, "a\u202eb"),
    "what cannot be looked at": (
        lambda *_: Odd(),
        CallState.EXECUTED,
        "(a Odd that cannot be written as text)",
    ),
    "a result that is no success": (lambda *_: Result(ok=False, text="no"), CallState.FAILED, "no"),
    "an error": (raising(ValueError("no such account")), CallState.FAILED, "ValueError: no such account"),
    "an error with a null character": (raising(ValueError("a\0b")), CallState.FAILED, "ValueError: a?b"),
    "an exit": (raising(SystemExit(3)), CallState.FAILED, "SystemExit: 3"),
    "an interrupt": (raising(KeyboardInterrupt()), CallState.FAILED, "KeyboardInterrupt"),
}


@pytest.mark.parametrize(("body", "state", "text"), ENDS.values(), ids=ENDS.keys())
def test_a_tool_that_ends_has_one_outcome(
    bench: Bench, body: Callable[..., object], state: CallState, text: str
) -> None:
    bench.does["pay"] = body
    turn = cleared(bench)
    found = bench.outcome(turn)
    assert (found.state, found.text) == (state, text)
    assert bench.outcome(turn) == found
    assert len(bench.effects) == 1
    assert bench.trail("r1/1/0")[-1] == f"call:{state}"
    assert bench.c.execution.busy() == 0


def test_a_large_result_is_bounded_for_the_model_and_kept_whole(bench: Bench) -> None:
    whole = "head" + "x" * 5_000_000 + "tail"
    bench.does["pay"] = lambda *_: whole
    found = bench.outcome(cleared(bench))
    assert len(found.text.encode()) <= MODEL_LIMIT
    assert (found.text[:4], found.text[-4:], found.artifact) == ("head", "tail", "r1/1/0/1")
    with bench.c.database.read() as tx:
        assert calls.artifact(tx, "r1/1/0/1") == whole.encode()


# --- side by side, and one by one ---


def test_calls_run_side_by_side_where_their_tools_allow_it(bench: Bench) -> None:
    together = threading.Barrier(3, timeout=LONG)
    bench.does["pay"] = lambda *_: together.wait() and "paid"
    turn, review = bench.asked(*[("pay", {**PAYMENT, "amount_cents": n}) for n in (1, 2, 3)])
    bench.decide(review, approve(), approve(), approve())
    assert named(bench.execute(turn)) == ["executed"] * 3


def test_other_calls_run_one_by_one_when_those_have_ended(bench: Bench) -> None:
    running: set[str] = set()
    seen: list[tuple[str, int]] = []

    def body(_: dict[str, Any], key: str) -> None:
        running.add(key)
        seen.append((key, len(running)))
        threading.Event().wait(0.05)
        running.discard(key)

    bench.say("pay", parallel=False)
    bench.register()
    bench.does["pay"] = bench.does["send_email"] = body
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL), ("pay", PAYMENT))
    bench.decide(review, approve(), approve(), approve())
    assert named(bench.execute(turn)) == ["executed"] * 3
    assert seen == [("r1/1/1", 1), ("r1/1/0", 1), ("r1/1/2", 1)]


def test_one_call_that_must_be_asked_about_again_keeps_no_other_from_running(bench: Bench) -> None:
    turn, review = bench.asked(("pay", PAYMENT), ("send_email", MAIL))
    bench.decide(review, approve(), approve())
    bench.register(Policy(rules=(Rule(tool="pay", who=(Threshold(approve=2),)), Rule(tool="send_email"))))
    assert named(bench.execute(turn)) == ["ask again", "executed"]
