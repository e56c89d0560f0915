"""Policies written as files mean what they meant; what cannot stand in a file is written stricter."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.expression import Cel
from clearance.policy import DecisionType, Effect, Escalation, Policy, Risk, Rule, Threshold, predicate
from clearance.policy_file import duration, read_policy
from clearance.policy_writing import time_text, write_policy

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
GROUP = TEXT.filter(lambda text: not text.startswith("group:"))
TIME = st.timedeltas(timedelta(seconds=1), timedelta(days=300)).map(
    lambda t: timedelta(seconds=int(t.total_seconds()))
)
WHO = st.builds(
    Threshold, approve=st.integers(1, 5), reject=st.integers(1, 5), group=st.one_of(st.none(), GROUP)
)
CONDITIONS = st.sampled_from(
    [
        "args.a == 'x'",
        'args.a == "x"',
        "args.a == \"x\" &&\n args.b == 'y'",
        'args.a.matches("\\\\d+")',
        "true",
    ]
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Give a rule that could do what it says."""
    group = draw(GROUP)
    return Rule(
        tool=draw(TEXT),
        effect=draw(st.sampled_from(Effect)),
        when=draw(st.one_of(st.none(), CONDITIONS.map(Cel))),
        risk=draw(st.sampled_from(Risk)),
        who=(Threshold(group=group), *draw(st.lists(WHO, max_size=2))),
        decisions=draw(st.sampled_from([None, (DecisionType.APPROVE, DecisionType.REJECT)])),
        expire=timedelta(days=400),
        reason=draw(st.booleans()),
        flags=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        name=draw(st.one_of(st.just(""), TEXT)),
        self_approval=draw(st.sampled_from([None, True, False])),
        remind=tuple(draw(st.lists(TIME, max_size=2))),
        escalate=draw(st.sampled_from([None, Escalation(timedelta(hours=4), "leads")])),
        secret=tuple(draw(st.lists(st.sampled_from(["pin", "card.number"]), max_size=2, unique=True))),
    )


@given(st.builds(Policy, st.lists(rules(), max_size=3).map(tuple), st.sampled_from(Effect)))
def test_what_was_written_is_read_as_the_same_policy(policy: Policy) -> None:
    assert read_policy(write_policy(policy)).to_json() == policy.to_json()


@given(TIME)
def test_a_time_is_read_as_the_same_time(span: timedelta) -> None:
    assert duration(time_text(span)) == span


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(days=7), "1w"),
        (timedelta(days=8), "8d"),
        (timedelta(days=1, hours=12), "1d12h"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(milliseconds=1), "1s"),
        (timedelta(0), "0s"),
    ],
)
def test_a_time_is_written_for_people(span: timedelta, text: str) -> None:
    assert time_text(span) == text


@predicate(version="1")
def large(arguments: dict[str, object]) -> bool:
    """Never asked here."""
    return bool(arguments)


@pytest.mark.parametrize(
    ("effect", "written"),
    [(Effect.ALLOW, Effect.HOLD), (Effect.HOLD, Effect.HOLD), (Effect.DENY, Effect.DENY)],
)
def test_a_rule_with_a_condition_in_python_is_written_stricter_and_says_so(
    effect: Effect, written: Effect
) -> None:
    text = write_policy(Policy((Rule("pay", effect=effect, when=large),)))
    [rule] = read_policy(text).rules
    assert (rule.effect, rule.when) == (written, None)
    assert "# The code's condition large (version 1) cannot stand in a file" in text
