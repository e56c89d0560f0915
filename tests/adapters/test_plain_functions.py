"""A cleared function: its call asks, is decided, runs once, and gives the same ever after."""

import math
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import clearance
from clearance import DecisionType, Effect, Policy, Risk, Rule, cleared, turns
from clearance.assembly import Clearance
from clearance.errors import (
    CallBlockedError,
    CallFailedError,
    CallRejectedError,
    CallUncertainError,
    ConflictError,
    InvalidInputError,
    InvalidReviewDecisionError,
    KeyReusedError,
    PolicyError,
    ReviewPendingError,
)
from clearance.results import KEPT_LIMIT
from clearance.run import RunState
from clearance.store import reviews, runs
from tests.journeys.processes import PATIENCE, until

APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "too much"}


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """A workspace without a worker, on each kind of database."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def paid() -> list[Any]:
    """What the function of a test really did."""
    return []


Refund = Callable[..., dict[str, Any]]


@pytest.fixture
def refund(paid: list[Any]) -> Refund:
    """A cleared function, whose key is the order."""

    @cleared(key=lambda order, **_: f"refund-{order}", risk="high")
    def refund(order: int, lines: list[str], cents: int = 100) -> dict[str, Any]:
        """Pay an order back."""
        paid.append((order, lines, cents))
        return {"order": order, "payment": len(paid)}

    return refund


def _decide(workspace: Clearance, review_id: str, *decisions: dict[str, Any]) -> None:
    with workspace.database.read() as tx:
        version = reviews.review(tx, review_id).version
    workspace.gate.decide(review_id, decisions or [APPROVE], by="ann", version=version)


def _pending(call: Callable[[], object]) -> str:
    """Return the review that a call waits for."""
    with pytest.raises(ReviewPendingError) as waits:
        call()
    return waits.value.review_id


def _state(workspace: Clearance, run_id: str) -> RunState:
    with workspace.database.read() as tx:
        return runs.run(tx, run_id).state


def test_a_first_call_asks_about_exactly_its_arguments_and_runs_nothing(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    with pytest.raises(ReviewPendingError, match="clearance show refund-7/1/1") as waits:
        refund(7, lines=["a"])
    assert (waits.value.review_id, waits.value.address) == ("refund-7/1/1", "clearance show refund-7/1/1")
    with workspace.database.read() as tx:
        [call] = reviews.review(tx, "refund-7/1/1").calls
    assert (call.tool, call.arguments) == ("refund", '{"order":7,"lines":["a"],"cents":100}')
    assert call.verdict.risk is Risk.HIGH
    assert paid == []
    assert _state(workspace, "refund-7") is RunState.WAITING


def test_a_cleared_call_runs_once_and_gives_the_same_ever_after(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    _decide(workspace, _pending(lambda: refund(7, ["a"])))
    results = [refund(7, ["a"]), refund(order=7, lines=["a"], cents=100), refund(7, ["a"])]
    assert results == [{"order": 7, "payment": 1}] * 3
    assert paid == [(7, ["a"], 100)]
    assert _state(workspace, "refund-7") is RunState.DONE


def test_asking_again_while_it_waits_is_the_same_question(workspace: Clearance, refund: Refund) -> None:
    assert {_pending(lambda: refund(7, [])) for _ in range(3)} == {"refund-7/1/1"}
    with workspace.database.read() as tx:
        assert len(reviews.of_thread(tx, "refund-7")) == 1


def test_a_rejection_is_raised_with_its_reason_every_time(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    _decide(workspace, _pending(lambda: refund(7, [])), REJECT)
    for _ in range(2):
        with pytest.raises(CallRejectedError, match="refund did not run. Reason: too much"):
            refund(7, [])
    assert paid == []
    assert _state(workspace, "refund-7") is RunState.DONE


def test_the_function_gets_what_a_reviewer_made_of_it_and_its_caller_keeps_the_key(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    edited = {"name": "refund", "args": {"order": 8, "lines": ["b"]}}
    _decide(workspace, _pending(lambda: refund(7, ["a"], cents=2)), {"type": "edit", "edited_action": edited})
    assert refund(7, ["a"], cents=2) == refund(7, ["a"], cents=2) == {"order": 8, "payment": 1}
    assert paid == [(8, ["b"], 100)]


def test_another_process_that_lacks_the_function_checks_an_edit(
    workspace: Clearance, refund: Refund, migrated_database_url: str, tmp_path: Path
) -> None:
    review_id = _pending(lambda: refund(7, []))
    edited = {"name": "refund", "args": {"order": "8", "lines": []}}
    with clearance.open(migrated_database_url, home=tmp_path, worker=False) as other:
        with pytest.raises(InvalidReviewDecisionError, match="/0/edited_action/args/order: must be integer"):
            _decide(other, review_id, {"type": "edit", "edited_action": edited})
        _decide(other, review_id)
    assert refund(7, [])["order"] == 7


def test_a_callers_objects_are_neither_what_runs_nor_touched_by_it(
    workspace: Clearance, paid: list[Any]
) -> None:
    lines = ["a"]

    @cleared(key="once")
    def ship(lines: list[str]) -> list[str]:
        lines.append("more")
        paid.append(lines)
        lines_now.append("changed while it runs")
        return lines

    lines_now = lines
    _decide(workspace, _pending(lambda: ship(lines)))
    assert ship(lines) == ["a", "more"]
    assert lines == ["a", "changed while it runs"]


def test_a_key_stands_for_one_call(workspace: Clearance, refund: Refund, paid: list[Any]) -> None:
    @cleared(key=lambda order: f"refund-{order}")
    def other(order: int) -> None:
        paid.append("other")

    review_id = _pending(lambda: refund(7, []))
    for call in (lambda: refund(7, ["b"]), lambda: refund(7, [], cents=101), lambda: other(7)):
        with pytest.raises(KeyReusedError, match="refund-7"):
            call()
    _decide(workspace, review_id)
    assert refund(7, [])["payment"] == 1
    with pytest.raises(KeyReusedError):
        refund(7, ["b"])
    assert paid == [(7, [], 100)]


def test_a_policy_denies_or_lets_calls_run_without_a_question(workspace: Clearance, paid: list[Any]) -> None:
    allow = Policy(rules=(Rule(tool="note", effect=Effect.ALLOW),))

    @cleared(key=lambda text: f"note-{text}", policy=allow)
    def note(text: str) -> str:
        paid.append(text)
        return text

    @cleared(key="deny", policy=Policy(default=Effect.DENY))
    def wipe() -> None:
        paid.append("wiped")

    assert note("a") == note("a") == "a"
    for _ in range(2):
        with pytest.raises(CallBlockedError, match="The policy denies this call; wipe did not run"):
            wipe()
    assert paid == ["a"]
    with workspace.database.read() as tx:
        assert reviews.inbox(tx) == []


def test_a_persons_own_result_is_given_as_its_text(workspace: Clearance, paid: list[Any]) -> None:
    answerable = Policy(rules=(Rule(tool="look_up", decisions=(DecisionType.RESPOND, DecisionType.REJECT)),))

    @cleared(key="once", policy=answerable)
    def look_up() -> str:
        paid.append("looked")
        return "found"

    _decide(workspace, _pending(look_up), {"type": "respond", "message": '"call Ana"'})
    assert look_up() == look_up() == '"call Ana"'
    assert paid == []


def test_a_function_that_raises_has_failed_and_no_loop_runs_it_again(
    workspace: Clearance, paid: list[Any]
) -> None:
    @cleared(key="once")
    def fail() -> None:
        paid.append("tried")
        raise LookupError("no order 7.")

    def insistent() -> list[str]:
        said = []
        for _ in range(4):
            try:
                fail()
            except Exception as error:  # noqa: BLE001 - as careless callers do
                said.append(f"{type(error).__name__}: {error}")
        return said

    assert len(set(insistent())) == 1
    assert paid == []
    _decide(workspace, "once/1/1")
    with pytest.raises(CallFailedError) as failed:
        fail()
    assert isinstance(failed.value.__cause__, LookupError)
    said = "fail ran and raised LookupError: no order 7. It is not run again under this key."
    assert set(insistent()) == {f"CallFailedError: {said}"}
    assert paid == ["tried"]
    assert _state(workspace, "once") is RunState.FAILED


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

    _decide(workspace, _pending(give))
    for _ in range(2):
        found = give()
        assert (found, type(found)) == (kept, type(kept))


def test_a_result_that_is_too_large_to_be_kept_is_no_failure(workspace: Clearance) -> None:
    @cleared(key="once")
    def give() -> str:
        return "x" * (KEPT_LIMIT + 1)

    _decide(workspace, _pending(give))
    assert (
        give() == give() == f"(a result of {KEPT_LIMIT + 3} bytes, more than the {KEPT_LIMIT} that are kept)"
    )


@pytest.mark.parametrize("value", [2**70, -(2**64), 2**53 + 1, 7, 7.0, "7", {"b": [None, "\u202e"], "a": {}}])
def test_arguments_arrive_as_they_were_sent(workspace: Clearance, paid: list[Any], value: object) -> None:
    @cleared(key="once")
    def take(value: Any) -> None:
        paid.append(value)

    _decide(workspace, _pending(lambda: take(value)))
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


def test_a_key_that_is_a_conversations_id_is_refused(workspace: Clearance, refund: Refund) -> None:
    turns.start(workspace.ledger, "refund-7", "Hello", run_id="r", program="chat", by="ann")
    with pytest.raises(ConflictError, match="refund-7"):
        refund(7, [])


def test_what_cannot_be_gated_is_refused_when_it_is_decorated() -> None:
    def ask() -> None: ...

    with pytest.raises(PolicyError, match="names no known tool"):
        cleared(policy=Policy(rules=(Rule(tool="other"),)))(ask)
    with pytest.raises(ValueError, match="either policy= or risk="):
        cleared(policy=Policy(), risk=Risk.LOW)(ask)
    with pytest.raises(TypeError, match="Only functions are gated"):
        cleared()(print)


def test_the_function_itself_is_not_offered_beside_its_gate(refund: Refund) -> None:
    assert not hasattr(refund, "__wrapped__")
    assert (refund.__name__, refund.__doc__) == ("refund", "Pay an order back.")


def test_a_call_that_waits_for_people_goes_on_once_they_have_decided(workspace: Clearance) -> None:
    @cleared(key="once", wait=PATIENCE)
    def give() -> str:
        return "given"

    given: list[str] = []
    caller = threading.Thread(target=lambda: given.append(give()))
    caller.start()
    until(lambda: _inbox(workspace), what="the question")
    _decide(workspace, "once/1/1")
    caller.join()
    assert given == ["given"]


def _inbox(workspace: Clearance) -> list[str]:
    with workspace.database.read() as tx:
        return [review.id for review in reviews.inbox(tx)]


def test_a_call_that_waited_in_vain_raises(workspace: Clearance) -> None:
    @cleared(key="once", wait=0.1)
    def give() -> None: ...

    assert _pending(give) == "once/1/1"


def test_a_question_whose_time_is_over_is_a_rejection_without_any_worker(workspace: Clearance) -> None:
    short = Policy(rules=(Rule(tool="give", expire=timedelta(microseconds=1)),))

    @cleared(key="once", policy=short)
    def give() -> None: ...

    with pytest.raises(CallRejectedError, match="Nobody cleared this call in time"):
        give()


def test_a_call_past_its_time_is_uncertain_until_its_late_result_or_a_person_says(
    workspace: Clearance, paid: list[Any]
) -> None:
    ends = threading.Event()

    @cleared(key=lambda which: which, timeout=0.1)
    def give(which: str) -> str:
        paid.append(which)
        ends.wait(PATIENCE)
        return "late"

    asked = {}
    for which in ("late", "answered", "dropped"):
        _decide(workspace, _pending(lambda which=which: give(which)))  # type: ignore[misc]
        with pytest.raises(CallUncertainError, match="may or may not have happened") as unknown:
            give(which)
        asked[which] = unknown.value.review_id or ""
    _decide(workspace, asked["answered"], {"type": "respond", "message": "it did"})
    _decide(workspace, asked["dropped"], REJECT)
    ends.set()
    until(lambda: not workspace.execution.busy(), what="the late results")
    assert give("late") == "late"
    assert give("answered") == "it did"
    with pytest.raises(CallRejectedError, match="whether it happened stays unknown"):
        give("dropped")
    assert paid == ["late", "answered", "dropped"]
