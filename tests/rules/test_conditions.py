"""A condition that takes too long counts as one that raised: the call is held, and nobody waits for it."""

import contextvars
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from clearance.conditions import in_time
from clearance.policy import Effect, Policy, Predicate, Rule, judge
from clearance.policy_checks import check_policy

LONG = 60.0


def policy(function: Any, *, times: int = 1) -> Policy:
    """Return a policy that denies what a condition says, and lets the rest run at once."""
    when = Predicate("slow", "1", function)
    return Policy(rules=(Rule(tool="*", effect=Effect.DENY, when=when),) * times, default=Effect.ALLOW)


@pytest.mark.parametrize(("answer", "effect"), [(True, Effect.DENY), (False, Effect.ALLOW)])
def test_a_condition_in_time_answers_as_before(answer: bool, effect: Effect) -> None:
    plain = policy(lambda _: answer)
    bounded = in_time(plain)
    assert judge(bounded, "pay", arguments={}) == judge(plain, "pay", arguments={})
    assert judge(bounded, "pay", arguments={}).effect is effect
    assert (bounded, bounded.version) == (plain, plain.version)


def test_a_condition_that_takes_too_long_holds_the_call_and_says_so() -> None:
    go_on = threading.Event()
    bounded = in_time(policy(lambda _: go_on.wait(LONG)), limit=0.05)
    found = judge(bounded, "pay", arguments={})
    assert (found.effect, found.faults) == (Effect.HOLD, ("condition slow (version 1) raised TimeoutError",))
    go_on.set()


def test_a_condition_that_hangs_is_started_once_and_later_calls_do_not_wait_for_it() -> None:
    go_on, started = threading.Event(), []

    def hang(arguments: dict[str, Any]) -> bool:
        started.append(arguments)
        return go_on.wait(LONG)

    limit, later = 0.5, 20
    bounded = in_time(policy(hang), limit=limit)
    judge(bounded, "pay", arguments={"n": 1})
    began = time.monotonic()
    for _ in range(later):
        assert judge(bounded, "pay", arguments={"n": 2}).effect is Effect.HOLD
    assert time.monotonic() - began < later * limit
    assert started == [{"n": 1}]
    go_on.set()


def test_a_condition_that_hung_once_is_asked_again_when_it_has_ended() -> None:
    go_on = threading.Event()
    bounded = in_time(policy(lambda _: go_on.wait(LONG)), limit=0.2)
    assert judge(bounded, "pay", arguments={}).effect is Effect.HOLD
    go_on.set()
    until = time.monotonic() + LONG
    while judge(bounded, "pay", arguments={}).effect is Effect.HOLD and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert judge(bounded, "pay", arguments={}).effect is Effect.DENY


@pytest.mark.parametrize("error", [KeyError("a"), SystemExit(1)])
def test_what_a_condition_raises_is_told_as_before(error: BaseException) -> None:
    def fail(_: dict[str, Any]) -> bool:
        raise error

    found = judge(in_time(policy(fail)), "pay", arguments={})
    assert found.faults == (f"condition slow (version 1) raised {type(error).__name__}",)


def test_a_condition_sees_the_context_of_who_asks() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert judge(in_time(policy(lambda _: variable.get() == 7)), "pay", arguments={}).effect is Effect.DENY


def test_one_condition_in_two_rules_stays_one() -> None:
    check_policy(in_time(policy(lambda _: True, times=2)), ["pay"])


def test_a_condition_is_bounded_once() -> None:
    once = in_time(policy(lambda _: True), limit=7)
    (again,) = in_time(once).rules
    assert again.when is once.rules[0].when


def test_rules_without_a_condition_and_conditions_that_are_not_known_stay_as_they_are() -> None:
    lacking = replace(policy(lambda _: True).rules[0], when=Predicate("slow", "1"))
    given = Policy(rules=(Rule(tool="pay"), lacking))
    bounded = in_time(given)
    assert bounded == given
    assert judge(bounded, "pay", arguments={}).faults == judge(given, "pay", arguments={}).faults
