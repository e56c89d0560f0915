"""Escalation: from a time on, members of another group decide in place of those whom a rule names."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.deadline import Time, TimeKind, times
from clearance.errors import ForbiddenError
from clearance.people import Person
from clearance.policy import DecisionType, Escalation, Policy, Rule, Threshold, judge
from clearance.review import Answer, Counted, Decision, ReviewedCall, tally
from tests.rules.small_reviews import (
    EVERYBODY,
    FAYE,
    FRED,
    LENA,
    NOW,
    OMAR,
    PAYMENT,
    RITA,
    Desk,
    approve,
    call,
    edit,
    reject,
    review,
)

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
TO_LEADS = Escalation(HOUR, "lead")
FINANCE = Threshold(group="finance")
EDITED = {"to": "ann@corp.example", "subject": "s2", "body": "b"}


def desk(*rules: Rule, asked: datetime, policy: Policy | None = None) -> Desk:
    """Return a desk with one mail that these rules hold since then. Its clock goes on from `NOW`."""
    verdict = judge(Policy(rules=rules), "send_email", arguments={})
    held = replace(call("c1"), verdict=verdict, since=asked)
    return Desk(review(held, asked_at=asked), policy=policy or Policy(rules=rules))


def escalating(**more: Any) -> Rule:
    """Return a rule that finance decides, and after an hour the leads too."""
    return Rule(tool="*", **{"who": (FINANCE,), "escalate": TO_LEADS, **more})


# The desk takes its first decision a second after NOW.
EXACTLY = NOW + SECOND - HOUR


def test_members_of_the_other_group_decide_from_the_instant_on_and_not_before() -> None:
    early = desk(escalating(), asked=EXACTLY + timedelta(microseconds=1))
    with pytest.raises(ForbiddenError, match="in none of the groups that decide this: finance"):
        early.decide([approve()], by=LENA)
    late = desk(escalating(), asked=EXACTLY)
    late.decide([approve()], by=LENA)
    assert late.states() == [Answer.APPROVED]


def test_who_decided_before_still_does_and_others_still_do_not() -> None:
    place = desk(escalating(), asked=NOW - 2 * HOUR)
    with pytest.raises(ForbiddenError):
        place.decide([approve()], by=RITA)
    place.decide([approve()], by=FAYE)
    assert place.states() == [Answer.APPROVED]


def test_the_other_group_s_rejection_counts_too() -> None:
    place = desk(escalating(), asked=NOW - 2 * HOUR)
    place.decide([reject()], by=LENA)
    assert place.states() == [Answer.REJECTED]


def test_people_of_both_groups_make_up_one_quorum_together() -> None:
    place = desk(escalating(who=(Threshold(approve=2, group="finance"),)), asked=NOW - 2 * HOUR)
    place.decide([approve()], by=LENA)
    assert place.states() == [Answer.WAITING]
    place.decide([approve()], by=FAYE)
    assert place.states() == [Answer.APPROVED]


def test_a_member_of_both_groups_counts_once() -> None:
    place = desk(escalating(who=(Threshold(approve=2, group="finance"),)), asked=NOW - 2 * HOUR)
    place.decide([approve()], by=FRED)
    assert place.states() == [Answer.WAITING]


def test_a_rule_that_does_not_escalate_still_needs_its_own_people() -> None:
    place = desk(escalating(), Rule(tool="send_email", who=(FINANCE,)), asked=NOW - 2 * HOUR)
    place.decide([approve()], by=LENA)
    assert place.states() == [Answer.WAITING]
    place.decide([approve()], by=FAYE)
    assert place.states() == [Answer.APPROVED]


def test_escalations_of_two_rules_each_stand_for_their_own() -> None:
    board = Rule(tool="send_email", who=(FINANCE,), escalate=Escalation(HOUR, "board"))
    place = desk(escalating(), board, asked=NOW - 2 * HOUR)
    place.decide([approve()], by=LENA)
    assert place.states() == [Answer.WAITING]


def test_an_approval_from_before_the_escalation_counts_when_it_is_said_again() -> None:
    place = desk(escalating(), Rule(tool="send_email", who=(Threshold(2),)), asked=NOW - HOUR + 10 * SECOND)
    place.decide([approve()], by=LENA)
    assert place.review.calls[0].decisions[0].counted == (Counted(None, 2),)
    place.now = NOW + HOUR
    place.decide([approve()], by=OMAR)
    assert place.states() == [Answer.WAITING]
    place.decide([approve()], by=LENA)
    assert place.states() == [Answer.APPROVED]


def test_time_alone_changes_nothing() -> None:
    place = desk(escalating(), Rule(tool="send_email", who=(Threshold(2),)), asked=NOW - HOUR + 10 * SECOND)
    place.decide([approve()], by=LENA)
    place.decide([approve()], by=OMAR)
    place.now = NOW + 5 * HOUR
    assert tally(place.review.calls[0], EVERYBODY) is Answer.WAITING


def test_an_edit_that_brings_other_demands_lets_their_own_people_begin_anew() -> None:
    stricter = Policy(rules=(escalating(), Rule(tool="*", who=(Threshold(group="legal"),))))
    place = desk(escalating(), asked=NOW - 2 * HOUR, policy=stricter)
    place.decide([edit(None, EDITED)], by=LENA)
    found = place.review.calls[0]
    assert (found.since, found.state) == (NOW + SECOND, Answer.WAITING)
    assert found.decisions[-1].counted == ()


def test_an_edit_under_the_same_demands_leaves_the_clock_as_it_is() -> None:
    place = desk(escalating(), asked=NOW - 2 * HOUR)
    place.decide([edit(None, EDITED)], by=LENA)
    assert place.states() == [Answer.APPROVED]


def test_a_call_of_which_it_is_not_known_since_when_it_waits_is_never_escalated() -> None:
    place = desk(escalating(), asked=NOW - 2 * HOUR)
    place.review = replace(place.review, calls=(replace(place.review.calls[0], since=None),))
    with pytest.raises(ForbiddenError):
        place.decide([approve()], by=LENA)


def test_each_decision_says_which_thresholds_it_counted_for_and_through_whom() -> None:
    place = desk(
        escalating(who=(Threshold(approve=2, reject=3, group="finance"),)),
        Rule(tool="*", who=(Threshold(approve=4, reject=5),)),
        asked=NOW - 2 * HOUR,
    )
    for person, decision in ((LENA, approve()), (FRED, reject()), (RITA, approve())):
        place.decide([decision], by=person)
    assert [item.counted for item in place.review.calls[0].decisions] == [
        (Counted(None, 4), Counted("finance", 2, "lead")),
        (Counted(None, 5), Counted("finance", 3)),
        (Counted(None, 4),),
    ]


def test_what_a_rule_does_not_say_leaves_the_version_of_older_policies_as_it_was() -> None:
    policy = Policy(rules=(Rule(tool="pay", expire=timedelta(hours=1), who=(Threshold(group="ops"),)),))
    assert policy.version == "d9ab915f46529aa5"


# --- the times of a review ---


def test_reminders_are_united_and_every_escalation_applies_in_elapsed_time() -> None:
    rules = (
        escalating(remind=(HOUR / 2, HOUR)),
        Rule(tool="*", remind=(HOUR / 2, 3 * HOUR), escalate=Escalation(HOUR, "board"), expire=4 * HOUR),
        Rule(tool="*", escalate=Escalation(2 * HOUR, "lead"), expire=5 * HOUR),
    )
    asked = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    found = desk(*rules, asked=asked).review
    assert times(found) == (
        Time(asked + HOUR / 2, TimeKind.REMIND),
        Time(asked + HOUR, TimeKind.ESCALATE, "board"),
        Time(asked + HOUR, TimeKind.ESCALATE, "lead"),
        Time(asked + HOUR, TimeKind.REMIND),
        Time(asked + 2 * HOUR, TimeKind.ESCALATE, "lead"),
        Time(asked + 3 * HOUR, TimeKind.REMIND),
    )


@pytest.mark.parametrize(
    "asked",
    [datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)],
    ids=["clocks go forward", "clocks go back"],
)
def test_clocks_that_are_changed_in_between_change_no_time(asked: datetime) -> None:
    berlin = asked.astimezone(ZoneInfo("Europe/Berlin"))
    two = desk(escalating(escalate=Escalation(2 * HOUR, "lead")), asked=asked).review
    (due,) = times(two)
    assert due.at - asked == 2 * HOUR
    assert due.at.astimezone(berlin.tzinfo).hour - berlin.hour in (1, 3)


def test_a_review_that_waits_no_more_has_no_times() -> None:
    place = desk(escalating(remind=(HOUR,)), asked=NOW)
    place.decide([approve()], by=FAYE)
    assert times(place.review) == ()


# --- what decisions add up to is a function of their set ---

escalations = st.none() | st.builds(
    Escalation, st.sampled_from([HOUR, 2 * HOUR]), st.sampled_from(["lead", "board"])
)
rules = st.lists(
    st.builds(
        Rule,
        tool=st.just("*"),
        who=st.lists(
            st.builds(
                Threshold,
                approve=st.integers(1, 2),
                reject=st.integers(1, 2),
                group=st.none() | st.sampled_from(["finance", "lead"]),
            ),
            max_size=2,
        ).map(tuple),
        escalate=escalations,
    ),
    min_size=1,
    max_size=3,
)
said = st.lists(
    st.tuples(
        st.sampled_from((RITA, OMAR, LENA, FAYE, FRED)),
        st.sampled_from([DecisionType.APPROVE, DecisionType.REJECT]),
        st.integers(0, 12),
    ),
    max_size=6,
    unique_by=lambda each: each[2],
)


def decided(
    rules: Sequence[Rule], said: Sequence[tuple[Person, DecisionType, int]], *, asked: datetime = NOW
) -> ReviewedCall:
    """Return a call with these decisions, each so many quarters of an hour after it was asked."""
    made = tuple(
        Decision("c1", kind, person.id, NOW + place * HOUR / 4, id=f"{place:02}")
        for person, kind, place in said
    )
    judged = judge(Policy(rules=tuple(rules)), "pay", arguments={})
    plain = call("c1", tool="pay", arguments=PAYMENT)
    return replace(plain, verdict=judged, since=asked, decisions=made)


@given(rules, said, st.data())
def test_neither_the_order_of_decisions_nor_that_of_rules_matters(
    rules: list[Rule], said: list[tuple[Person, DecisionType, int]], data: st.DataObject
) -> None:
    other = decided(data.draw(st.permutations(rules)), data.draw(st.permutations(said)))
    assert tally(decided(rules, said), EVERYBODY) is tally(other, EVERYBODY)


@given(rules, said)
def test_escalation_never_takes_a_voice_away_and_before_its_instant_gives_none(
    rules: list[Rule], said: list[tuple[Person, DecisionType, int]]
) -> None:
    plain = [replace(rule, escalate=None) for rule in rules]
    without = tally(decided(plain, said), EVERYBODY)
    # Asked so late that every decision comes before any escalation: as if there were none.
    assert tally(decided(rules, said, asked=NOW + 3 * HOUR), EVERYBODY) is without
    approvals = [each for each in said if each[1] is DecisionType.APPROVE]
    if tally(decided(plain, approvals), EVERYBODY) is Answer.APPROVED:
        assert tally(decided(rules, approvals), EVERYBODY) is Answer.APPROVED
