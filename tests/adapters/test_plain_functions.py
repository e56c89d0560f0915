"""A cleared function: its call asks, is decided, runs once, and gives the same ever after."""

import functools
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import clearance
from clearance import DecisionType, Effect, Policy, Risk, Rule, cleared
from clearance.errors import (
    CallBlockedError,
    CallFailedError,
    CallRejectedError,
    CallUncertainError,
    InvalidReviewDecisionError,
    KeyReusedError,
    PolicyError,
    ReviewPendingError,
)
from clearance.membership import disable, enable
from clearance.people import Person, Role
from clearance.run import RunState
from clearance.store import listing, people, reviews
from clearance.workspace import Clearance
from tests.adapters.decided import APPROVE, REJECT, decide, inbox, pending, state_of
from tests.journeys.processes import PATIENCE, until

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
    assert state_of(workspace, "refund-7") is RunState.WAITING


def test_a_cleared_call_runs_once_and_gives_the_same_ever_after(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    decide(workspace, pending(lambda: refund(7, ["a"])))
    results = [refund(7, ["a"]), refund(order=7, lines=["a"], cents=100), refund(7, ["a"])]
    assert results == [{"order": 7, "payment": 1}] * 3
    assert paid == [(7, ["a"], 100)]
    assert state_of(workspace, "refund-7") is RunState.DONE


def test_asking_again_while_it_waits_is_the_same_question(workspace: Clearance, refund: Refund) -> None:
    assert {pending(lambda: refund(7, [])) for _ in range(3)} == {"refund-7/1/1"}
    with workspace.database.read() as tx:
        assert len(reviews.of_thread(tx, "refund-7")) == 1


def test_a_rejection_is_raised_with_its_reason_every_time(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    decide(workspace, pending(lambda: refund(7, [])), REJECT)
    for _ in range(2):
        with pytest.raises(CallRejectedError, match=r"refund did not run\. .*Reason: too much"):
            refund(7, [])
    assert paid == []
    assert state_of(workspace, "refund-7") is RunState.DONE


def test_the_function_gets_what_a_reviewer_made_of_it_and_its_caller_keeps_the_key(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    edited = {"name": "refund", "args": {"order": 8, "lines": ["b"]}}
    decide(workspace, pending(lambda: refund(7, ["a"], cents=2)), {"type": "edit", "edited_action": edited})
    assert refund(7, ["a"], cents=2) == refund(7, ["a"], cents=2) == {"order": 8, "payment": 1}
    assert paid == [(8, ["b"], 100)]


@pytest.mark.usefixtures("workspace")
def test_another_process_that_lacks_the_function_checks_an_edit(
    refund: Refund, migrated_database_url: str, tmp_path: Path
) -> None:
    review_id = pending(lambda: refund(7, []))
    edited = {"name": "refund", "args": {"order": "8", "lines": []}}
    with clearance.open(migrated_database_url, home=tmp_path, worker=False) as other:
        with pytest.raises(InvalidReviewDecisionError, match="/0/edited_action/args/order: must be integer"):
            decide(other, review_id, {"type": "edit", "edited_action": edited})
        decide(other, review_id)
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
    decide(workspace, pending(lambda: ship(lines)))
    assert ship(lines) == ["a", "more"]
    assert lines == ["a", "changed while it runs"]


def test_a_key_stands_for_one_call(workspace: Clearance, refund: Refund, paid: list[Any]) -> None:
    @cleared(key=lambda order: f"refund-{order}")
    def other(order: int) -> None:
        paid.append(("other", order))

    review_id = pending(lambda: refund(7, []))
    for call in (lambda: refund(7, ["b"]), lambda: refund(7, [], cents=101), lambda: other(7)):
        with pytest.raises(KeyReusedError, match="refund-7"):
            call()
    decide(workspace, review_id)
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
        assert listing.inbox(tx) == []


def test_a_persons_own_result_is_given_as_its_text(workspace: Clearance, paid: list[Any]) -> None:
    answerable = Policy(rules=(Rule(tool="look_up", decisions=(DecisionType.RESPOND, DecisionType.REJECT)),))

    @cleared(key="once", policy=answerable)
    def look_up() -> str:
        paid.append("looked")
        return "found"

    decide(workspace, pending(look_up), {"type": "respond", "message": '"call Ana"'})
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
    decide(workspace, "once/1/1")
    with pytest.raises(CallFailedError) as failed:
        fail()
    assert isinstance(failed.value.__cause__, LookupError)
    said = "fail ran and raised LookupError: no order 7. It is not run again under this key."
    assert set(insistent()) == {f"CallFailedError: {said}"}
    assert paid == ["tried"]
    assert state_of(workspace, "once") is RunState.FAILED


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
    until(lambda: inbox(workspace), what="the question")
    decide(workspace, "once/1/1")
    caller.join()
    assert given == ["given"]


def test_nothing_runs_for_somebody_who_is_disabled_until_they_are_enabled(
    workspace: Clearance, refund: Refund, paid: list[Any]
) -> None:
    database = workspace.database
    with database.write() as tx:
        people.add(tx, Person("eva", "Eva", role=Role.ADMIN), now=database.now(tx))

    def approve(review_id: str) -> None:
        workspace.gate.decide(review_id, [APPROVE], by="eva", version=1)

    give = functools.partial(refund, 7, lines=["a"])
    approve(pending(give))
    disable(database, "ann", by="eva")
    again = pending(give)
    assert again == "refund-7/1/2"
    assert pending(give) == again
    with pytest.raises(InvalidReviewDecisionError, match="ann is disabled here"):
        approve(again)
    assert paid == []
    enable(database, "ann", by="eva")
    approve(again)
    assert give() == {"order": 7, "payment": 1}


@pytest.mark.usefixtures("workspace")
def test_a_call_that_waited_in_vain_raises() -> None:
    @cleared(key="once", wait=0.1)
    def give() -> None: ...

    assert pending(give) == "once/1/1"


@pytest.mark.usefixtures("workspace")
def test_a_question_whose_time_is_over_is_a_rejection_without_any_worker() -> None:
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
        decide(workspace, pending(functools.partial(give, which)))
        with pytest.raises(CallUncertainError, match="may or may not have happened") as unknown:
            give(which)
        asked[which] = unknown.value.review_id or ""
    decide(workspace, asked["answered"], {"type": "respond", "message": "it did"})
    decide(workspace, asked["dropped"], REJECT)
    ends.set()
    until(lambda: not workspace.execution.busy(), what="the late results")
    assert give("late") == "late"
    assert give("answered") == "it did"
    with pytest.raises(CallRejectedError, match="whether it happened stays unknown"):
        give("dropped")
    assert paid == ["late", "answered", "dropped"]
