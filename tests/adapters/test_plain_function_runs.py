"""Runs of cleared functions, and the workspace in which a function asks."""

import functools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import clearance
from clearance import Effect, Policy, cleared, turns
from clearance.errors import (
    CallFailedError,
    CallRejectedError,
    ConflictError,
    InvalidInputError,
    KeyReusedError,
    ReviewPendingError,
)
from clearance.run import RunState
from clearance.workspace import Clearance
from tests.adapters.decided import REJECT, decide, inbox, pending, state_of

ALLOW = Policy(default=Effect.ALLOW)
Pay = Callable[[int], str]


@pytest.fixture
def pay(paid: list[Any]) -> Pay:
    """A cleared function, whose key outside of runs is the order."""

    @cleared(key=lambda order: f"pay-{order}", name="shop.pay")
    def pay(order: int) -> str:
        paid.append(order)
        return f"paid {order}"

    return pay


def test_the_key_in_a_run_is_the_function_and_the_number_of_the_call(
    workspace: Clearance, pay: Pay, paid: list[Any]
) -> None:
    def attempt() -> list[str]:
        given = []
        with workspace.run("nightly"):
            for order in (7, 8, 7):
                try:
                    given.append(pay(order))
                except (ReviewPendingError, CallRejectedError) as error:
                    given.append(type(error).__name__)
        return given

    assert attempt() == ["ReviewPendingError"] * 3
    assert inbox(workspace) == ["nightly/shop.pay/1/1", "nightly/shop.pay/2/1"]
    decide(workspace, "nightly/shop.pay/1/1")
    decide(workspace, "nightly/shop.pay/2/1", REJECT)
    assert attempt() == ["paid 7", "CallRejectedError", "ReviewPendingError"]
    assert state_of(workspace, "nightly/shop.pay") is RunState.WAITING
    decide(workspace, "nightly/shop.pay/3/1")
    assert attempt() == attempt() == ["paid 7", "CallRejectedError", "paid 7"]
    assert paid == [7, 7]
    assert state_of(workspace, "nightly/shop.pay") is RunState.DONE


def test_a_call_with_other_arguments_than_the_run_had_there_is_refused(
    workspace: Clearance, pay: Pay, paid: list[Any]
) -> None:
    with workspace.run("nightly"):
        decide(workspace, pending(lambda: pay(7)))
    with workspace.run("nightly"), pytest.raises(KeyReusedError, match=r"nightly/shop\.pay/1"):
        pay(8)
    with workspace.run("nightly"):
        assert pay(7) == "paid 7"
    with workspace.run("nightly"), pytest.raises(KeyReusedError):
        pay(8)
    assert paid == [7]


def test_a_loop_that_tries_again_in_a_run_asks_one_question_and_runs_once(
    workspace: Clearance, pay: Pay, paid: list[Any]
) -> None:
    with workspace.run("nightly"):
        assert {pending(lambda: pay(7)) for _ in range(3)} == {"nightly/shop.pay/1/1"}
        decide(workspace, "nightly/shop.pay/1/1")
        assert pay(7) == "paid 7"
        assert pending(lambda: pay(7)) == "nightly/shop.pay/2/1"
    assert paid == [7]


def test_a_call_that_raised_in_a_run_is_not_run_again_by_a_loop(
    workspace: Clearance, paid: list[Any]
) -> None:
    @cleared(policy=ALLOW)
    def fail() -> None:
        paid.append("tried")
        raise LookupError("no order")

    with workspace.run("nightly"):
        for _ in range(3):
            with pytest.raises(CallFailedError, match="no order"):
                fail()
    assert paid == ["tried"]


def test_a_program_is_asked_about_each_of_its_calls_however_many_were_rejected(
    workspace: Clearance, pay: Pay
) -> None:
    with workspace.run("nightly"):
        for number in range(1, 6):
            assert pending(functools.partial(pay, number)) == f"nightly/shop.pay/{number}/1"
            decide(workspace, f"nightly/shop.pay/{number}/1", REJECT)


def test_an_exception_leaves_the_run_open(workspace: Clearance) -> None:
    @cleared(policy=ALLOW, name="shop.note")
    def note() -> str:
        return "noted"

    with pytest.raises(LookupError), workspace.run("nightly"):  # noqa: PT012 - the run is what is left
        note()
        raise LookupError
    assert state_of(workspace, "nightly/shop.note") is RunState.RUNNING
    with workspace.run("nightly"):
        note()
    assert state_of(workspace, "nightly/shop.note") is RunState.DONE
    with workspace.run("nightly"), pytest.raises(ConflictError, match="has ended without this call"):  # noqa: PT012
        note()
        note()


def test_nothing_runs_in_a_cancelled_run(workspace: Clearance, pay: Pay, paid: list[Any]) -> None:
    decide(workspace, pending(lambda: pay(7)))
    turns.cancel(workspace.ledger, "pay-7", by="ann", reason="not needed")
    with pytest.raises(CallRejectedError, match="not needed"):
        pay(7)
    with workspace.run("nightly"):
        pending(lambda: pay(7))
    turns.cancel(workspace.ledger, "nightly/shop.pay", by="ann", reason="not needed")
    with workspace.run("nightly"):
        for order in (7, 8):
            with pytest.raises(CallRejectedError, match="not needed"):
                pay(order)
    assert paid == []


@pytest.mark.parametrize("run_id", ["", "a/b", "a b", "\n"])
def test_an_id_that_cannot_name_a_run_is_refused(workspace: Clearance, run_id: str) -> None:
    with pytest.raises(InvalidInputError, match="The id of a run"), workspace.run(run_id):
        pass


def test_a_call_inside_a_cleared_function_is_none_of_the_runs_but_sees_its_callers_context(
    workspace: Clearance, pay: Pay, paid: list[Any]
) -> None:
    asking = ContextVar("asking", default="nobody")

    @cleared(policy=ALLOW)
    def outer() -> str:
        paid.append((asking.get(), threading.current_thread() is threading.main_thread()))
        return pending(lambda: pay(7))

    asking.set("ann")
    with workspace.run("nightly"):
        assert outer() == "pay-7/1/1"
    assert paid == [("ann", False)]


def test_a_function_asks_in_its_own_workspace_else_the_runs_else_the_one_opened_last(tmp_path: Path) -> None:
    first, second = (
        clearance.open(home=tmp_path / name, person="ann", worker=False) for name in ("first", "second")
    )

    @cleared(key="own", using=first)
    def own() -> None: ...

    @cleared(key="some")
    def some() -> None: ...

    with first, second:
        pending(some)
        assert (inbox(first), inbox(second)) == ([], ["some/1/1"])
        with second.run("night"):
            pending(own)
        assert inbox(first) == ["own/1/1"]
        with first.run("day"):
            assert pending(some).startswith("day/")
        second.close()
        pending(some)
        assert "some/1/1" in inbox(first)


def test_without_an_open_workspace_a_function_asks_in_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARANCE_HOME", str(tmp_path))
    monkeypatch.setenv("CLEARANCE_PERSON", "ann")

    @cleared(key="some")
    def some() -> None: ...

    assert [pending(some), pending(some)] == ["some/1/1"] * 2
    with clearance.open(worker=False) as opened:
        assert inbox(opened) == ["some/1/1"]
