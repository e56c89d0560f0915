"""All rules that match add up, in any order; a condition that fails, in any way, means: ask a person."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.policy import (
    DecisionType,
    Effect,
    Escalation,
    Policy,
    Predicate,
    Risk,
    Rule,
    Threshold,
    Verdict,
    judge,
    predicate,
    requiring_approval,
)
from clearance.policy_json import policy_from_json
from clearance.toolcall import canonical

APPROVE, EDIT, REJECT, RESPOND = (
    DecisionType.APPROVE,
    DecisionType.EDIT,
    DecisionType.REJECT,
    DecisionType.RESPOND,
)


def verdict(*rules: Rule, tool: str = "pay", default: Effect = Effect.HOLD, **arguments: Any) -> Verdict:
    """Return what these rules say about a call."""
    return judge(Policy(rules=rules, default=default), tool, arguments=arguments)


def rule(effect: Effect = Effect.HOLD, **more: Any) -> Rule:
    """Return a rule on every tool."""
    return Rule(tool="*", effect=effect, **more)


def test_a_call_that_no_rule_matches_gets_the_default() -> None:
    assert verdict(tool="pay").effect is Effect.HOLD
    assert verdict(Rule(tool="send_email", effect=Effect.DENY), tool="pay").effect is Effect.HOLD
    assert verdict(default=Effect.ALLOW).effect is Effect.ALLOW
    assert verdict(default=Effect.DENY).effect is Effect.DENY


def test_a_rule_that_matches_replaces_the_default() -> None:
    assert verdict(rule(Effect.ALLOW), default=Effect.DENY).effect is Effect.ALLOW
    assert verdict(rule(Effect.HOLD), default=Effect.ALLOW).effect is Effect.HOLD


@pytest.mark.parametrize(
    ("effects", "strongest"),
    [("ah", "hold"), ("ha", "hold"), ("ad", "deny"), ("hd", "deny"), ("dha", "deny"), ("aa", "allow")],
)
def test_the_strongest_effect_holds(effects: str, strongest: str) -> None:
    names = {"a": Effect.ALLOW, "h": Effect.HOLD, "d": Effect.DENY}
    assert verdict(*(rule(names[letter]) for letter in effects)).effect == strongest


def test_the_highest_risk_and_the_earliest_deadline_hold() -> None:
    found = verdict(
        rule(risk=Risk.LOW, expire=timedelta(hours=3)),
        rule(risk=Risk.CRITICAL),
        rule(risk=Risk.HIGH, expire=timedelta(hours=1)),
    )
    assert (found.risk, found.expire) == (Risk.CRITICAL, timedelta(hours=1))


def test_without_a_rule_the_risk_is_medium_and_there_is_no_deadline() -> None:
    assert (verdict().risk, verdict().expire) == (Risk.MEDIUM, None)


def test_a_rule_of_low_risk_may_say_so() -> None:
    assert verdict(rule(risk=Risk.LOW)).risk is Risk.LOW


def test_only_decisions_that_every_rule_allows_are_allowed() -> None:
    found = verdict(rule(decisions=(RESPOND, REJECT, APPROVE)), rule(), rule(decisions=(REJECT, RESPOND)))
    assert found.decisions == (REJECT, RESPOND)


def test_by_default_people_may_approve_edit_and_reject() -> None:
    assert verdict().decisions == (APPROVE, EDIT, REJECT)


def test_where_rules_leave_no_decision_in_common_a_person_can_still_say_no() -> None:
    assert verdict(rule(decisions=(APPROVE,)), rule(decisions=(EDIT,))).decisions == (REJECT,)


def test_every_threshold_of_every_rule_must_be_met() -> None:
    two, finance = Threshold(approve=2), Threshold(group="finance")
    assert set(verdict(rule(who=(two,)), rule(who=(finance, two))).who) == {two, finance}


def test_without_a_threshold_one_person_decides() -> None:
    assert verdict(rule()).who == (Threshold(),)


def test_a_reason_is_required_as_soon_as_one_rule_says_so() -> None:
    assert verdict(rule(reason=True), rule()).reason
    assert not verdict(rule()).reason


def test_flags_are_united_with_every_reason_once() -> None:
    found = verdict(
        rule(flags={"account": "new", "amount": "large"}),
        rule(flags={"account": "abroad"}),
        rule(flags={"account": "new"}),
    )
    assert found.flags == {"account": "abroad; new", "amount": "large"}


def test_the_verdict_names_its_rules_and_the_policy_version() -> None:
    policy = Policy(rules=(rule(name="b"), Rule(tool="pay"), Rule(tool="send_email", name="c")))
    found = judge(policy, "pay", arguments={})
    assert found.rules == ("b", "pay")
    assert found.policy == policy.version


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("pay", "pay", True),
        ("pay", "Pay", False),
        ("pay", "pay ", False),
        ("pay", "repay", False),
        ("pay*", "pay_out", True),
        ("*", "anything", True),
        ("test/*", "live/wipe", False),
        ("test/*", "test/wipe", True),
        ("wipe", "test/wipe", False),
        ("p?y", "pay", True),
    ],
)
def test_a_rule_matches_a_name_or_a_glob_exactly(pattern: str, tool: str, matches: bool) -> None:
    found = verdict(Rule(tool=pattern, effect=Effect.DENY), tool=tool, default=Effect.ALLOW)
    assert (found.effect is Effect.DENY) == matches


def test_tools_requiring_approval_are_held_and_the_others_run() -> None:
    policy = requiring_approval(["send_email", "delete_file", "send_email"])
    assert judge(policy, "send_email", arguments={}).effect is Effect.HOLD
    assert judge(policy, "delete_file", arguments={}).effect is Effect.HOLD
    assert judge(policy, "read_weather", arguments={}).effect is Effect.ALLOW
    assert len(policy.rules) == 2


# --- conditions ---


@predicate(version="1")
def large(arguments: dict[str, Any]) -> bool:
    """Hold when the amount is large."""
    return bool(arguments["amount_cents"] > 1000)


def test_a_condition_decides_whether_its_rule_matches() -> None:
    denied = rule(Effect.DENY, when=large)
    assert verdict(denied, default=Effect.ALLOW, amount_cents=1001).effect is Effect.DENY
    assert verdict(denied, default=Effect.ALLOW, amount_cents=1000).effect is Effect.ALLOW
    assert verdict(denied, default=Effect.ALLOW, amount_cents=1000).faults == ()


async def _later(arguments: dict[str, Any]) -> bool:
    await asyncio.sleep(0)
    return bool(arguments)


def _leave(arguments: dict[str, Any]) -> bool:
    raise SystemExit(len(arguments))


def _takes_nothing() -> bool:
    return True


def _run_away(arguments: dict[str, Any]) -> bool:
    return _run_away(arguments)


class Odd:
    """An answer that cannot even be asked whether it is true."""

    close = 7

    def __bool__(self) -> bool:
        raise ValueError("neither")


FAULTY: dict[str, Callable[[dict[str, Any]], Any]] = {
    "None": lambda _: None,
    "the text false": lambda _: "false",
    "0": lambda _: 0,
    "1": lambda _: 1,
    "an empty list": lambda _: [],
    "NotImplemented": lambda _: NotImplemented,
    "a coroutine that is not awaited": _later,
    "a generator": lambda _: iter(()),
    "an odd object": lambda _: Odd(),
    "KeyError": lambda arguments: arguments["missing"] > 1,
    "TypeError": lambda arguments: arguments["account"] > 1,
    "an endless recursion": _run_away,
    "an exit": _leave,
    "a wrong signature": _takes_nothing,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("function", FAULTY.values(), ids=FAULTY.keys())
@pytest.mark.parametrize("effect", list(Effect))
def test_a_condition_that_fails_or_gives_no_bool_holds_the_call_and_says_so(
    function: Callable[[dict[str, Any]], Any], effect: Effect
) -> None:
    faulty = Predicate("faulty", "1", function)
    found = verdict(rule(effect, when=faulty, name="the rule"), default=Effect.ALLOW, account="A-1")
    assert found.effect is Effect.HOLD
    assert found.rules == ("the rule",)
    assert len(found.faults) == 1
    assert found.faults[0].startswith("condition faulty (version 1) ")
    assert "A-1" not in found.faults[0]


def test_a_rule_whose_condition_fails_still_demands_everything_it_says() -> None:
    strict = rule(
        Effect.ALLOW,
        when=Predicate("faulty", "1", FAULTY["None"]),
        risk=Risk.CRITICAL,
        who=(Threshold(approve=2),),
        decisions=(REJECT,),
        expire=timedelta(hours=1),
        reason=True,
        flags={"account": "new"},
    )
    found = verdict(strict, account="A-1")
    certain = verdict(replace(strict, when=None, effect=Effect.HOLD, name=strict.label), account="A-1")
    assert replace(found, policy="", faults=()) == replace(certain, policy="")


def test_a_failing_condition_never_weakens_another_rule() -> None:
    faulty = rule(Effect.ALLOW, when=Predicate("faulty", "1", lambda _: 1 / 0 > 0))
    assert verdict(faulty, rule(Effect.DENY)).effect is Effect.DENY


def test_a_condition_cannot_change_the_arguments() -> None:
    def meddle(arguments: dict[str, Any]) -> bool:
        arguments["account"] = "B-666"
        arguments["lines"].append("more")
        arguments["nested"]["x"] = 2
        return False

    arguments = {"account": "A-1", "lines": ["one"], "nested": {"x": 1}}
    seen: list[dict[str, Any]] = []

    def look(arguments: dict[str, Any]) -> bool:
        seen.append(arguments)
        return False

    rules = (rule(when=Predicate("meddle", "1", meddle)), rule(when=Predicate("look", "1", look)))
    judge(Policy(rules=rules), "pay", arguments=arguments)
    assert arguments == {"account": "A-1", "lines": ["one"], "nested": {"x": 1}}
    assert seen == [arguments]


def test_a_condition_that_this_process_lacks_holds_the_call() -> None:
    read = policy_from_json(Policy(rules=(rule(Effect.ALLOW, when=large),)).to_json())
    found = judge(read, "pay", arguments={"amount_cents": 1})
    assert found.effect is Effect.HOLD
    assert found.faults == ("condition large (version 1) is not known to this process",)


def test_a_condition_of_another_version_is_another_condition() -> None:
    written = Policy(rules=(rule(Effect.DENY, when=large),), default=Effect.ALLOW).to_json()
    newer = Predicate("large", "2", lambda _: False)
    assert judge(policy_from_json(written, predicates=[newer]), "pay", arguments={}).effect is Effect.HOLD
    known = policy_from_json(written, predicates=[newer, large])
    assert judge(known, "pay", arguments={"amount_cents": 1}).effect is Effect.ALLOW


# --- the order of rules, and policies as JSON ---

thresholds = st.builds(
    Threshold,
    approve=st.integers(1, 3),
    reject=st.integers(1, 3),
    group=st.none() | st.sampled_from(["finance", "ops"]),
)
conditions = st.sampled_from([None, large, FAULTY["None"], FAULTY["KeyError"]])


after = st.timedeltas(timedelta(microseconds=1), timedelta(days=3))


@st.composite
def any_rules(draw: st.DrawFn) -> Rule:
    """A rule of any content."""
    condition = draw(conditions)
    if condition is not None and not isinstance(condition, Predicate):
        condition = Predicate(f"faulty{draw(st.integers(0, 1))}", "1", condition)
    return Rule(
        tool=draw(st.sampled_from(["pay", "*", "p*", "send_email"])),
        effect=draw(st.sampled_from(Effect)),
        when=condition,
        risk=draw(st.sampled_from(Risk)),
        who=tuple(draw(st.lists(thresholds, max_size=2))),
        decisions=draw(
            st.none() | st.lists(st.sampled_from(DecisionType), min_size=1, max_size=4).map(tuple)
        ),
        expire=draw(st.none() | st.timedeltas(timedelta(microseconds=1), timedelta(days=3653))),
        reason=draw(st.booleans()),
        flags=draw(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["new", "large", "x; y"]))),
        name=draw(st.sampled_from(["", "one", "two"])),
        remind=tuple(draw(st.lists(after, max_size=2))),
        escalate=draw(st.none() | st.builds(Escalation, after, st.sampled_from(["lead", "board"]))),
    )


@given(st.lists(any_rules(), max_size=6), st.data(), st.integers(0, 2000))
def test_the_order_of_the_rules_never_matters(rules: list[Rule], data: st.DataObject, amount: int) -> None:
    other = data.draw(st.permutations(rules))
    arguments = {"amount_cents": amount}
    one = judge(Policy(rules=tuple(rules)), "pay", arguments=arguments)
    two = judge(Policy(rules=tuple(other)), "pay", arguments=arguments)
    assert replace(one, policy="") == replace(two, policy="")


@given(st.lists(any_rules(), max_size=5), any_rules())
def test_one_rule_more_never_lowers_what_is_needed(rules: list[Rule], more: Rule) -> None:
    arguments = {"amount_cents": 2000}
    matching = [each for each in rules if each.tool != "send_email"]
    less = judge(Policy(rules=(rule(Effect.ALLOW, risk=Risk.LOW), *rules)), "pay", arguments=arguments)
    both = judge(Policy(rules=(rule(Effect.ALLOW, risk=Risk.LOW), *rules, more)), "pay", arguments=arguments)
    assert tuple(Effect).index(both.effect) >= tuple(Effect).index(less.effect)
    assert tuple(Risk).index(both.risk) >= tuple(Risk).index(less.risk)
    assert both.reason >= less.reason
    assert both.expire is None or less.expire is None or both.expire <= less.expire
    if any(each.who for each in matching):
        assert set(less.who) <= set(both.who)
    if any(each.decisions is not None and each.when is None for each in matching):
        assert set(both.decisions) <= {*less.decisions, REJECT}


@given(st.lists(any_rules(), max_size=5).map(tuple), st.sampled_from(Effect))
def test_a_policy_survives_json(rules: tuple[Rule, ...], default: Effect) -> None:
    policy = Policy(rules=rules, default=default)
    written = json.loads(canonical(policy.to_json()))
    read = policy_from_json(written)
    assert read == policy
    assert read.version == policy.version


def test_a_policy_read_with_its_conditions_judges_the_same() -> None:
    policy = Policy(rules=(rule(Effect.DENY, when=large),), default=Effect.ALLOW)
    read = policy_from_json(json.loads(json.dumps(policy.to_json())), predicates=[large])
    for amount in (1, 1001):
        arguments = {"amount_cents": amount}
        assert judge(read, "pay", arguments=arguments) == judge(policy, "pay", arguments=arguments)


CHANGES: dict[str, dict[str, Any]] = {
    "tool": {"tool": "p*"},
    "effect": {"effect": Effect.DENY},
    "condition": {"when": large},
    "version of the condition": {"when": Predicate("large", "2", large.function)},
    "risk": {"risk": Risk.HIGH},
    "threshold": {"who": (Threshold(approve=2),)},
    "rejections": {"who": (Threshold(reject=2),)},
    "group": {"who": (Threshold(group="finance"),)},
    "decisions": {"decisions": (APPROVE, REJECT)},
    "decisions written out": {"decisions": (APPROVE, EDIT, REJECT)},
    "deadline": {"expire": timedelta(seconds=60)},
    "deadline by a microsecond": {"expire": timedelta(seconds=60, microseconds=1)},
    "reason": {"reason": True},
    "flag": {"flags": {"account": "new"}},
    "name": {"name": "n"},
    "reminder": {"remind": (timedelta(seconds=60),)},
    "reminders": {"remind": (timedelta(seconds=60), timedelta(seconds=61))},
    "escalation": {"escalate": Escalation(timedelta(seconds=60), "ops")},
    "whom it escalates to": {"escalate": Escalation(timedelta(seconds=60), "finance")},
}


def test_every_change_of_meaning_gives_another_version() -> None:
    plain = Rule(tool="pay")
    policies = [Policy(), Policy(default=Effect.DENY), Policy(rules=(plain,)), Policy(rules=(plain, plain))]
    policies += [Policy(rules=(replace(plain, **change),)) for change in CHANGES.values()]
    versions = [policy.version for policy in policies]
    assert len(set(versions)) == len(versions)
    assert all(len(version) == 16 for version in versions)
    assert [policy.version for policy in policies] == versions
