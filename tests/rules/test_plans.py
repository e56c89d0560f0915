"""Plans are decided whole: approved, rejected, or sent back with what to do otherwise."""

from typing import Any

import pytest

from clearance.errors import InvalidReviewDecisionError
from clearance.policy import DecisionType, Threshold
from clearance.review import Answer, ReviewKind, ReviewStatus
from tests.rules.small_reviews import OMAR, RITA, Desk, call, review

STEPS = ("r/1/0", "r/1/1", "r/1/2")


def plan(*who: Threshold) -> Desk:
    """Return a plan of three steps that waits."""
    calls = [call(key, who=who or (Threshold(),)) for key in STEPS]
    return Desk(review(*calls, kind=ReviewKind.PLAN))


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        ({"type": "approve"}, Answer.APPROVED),
        ({"type": "reject", "message": "too costly"}, Answer.REJECTED),
        ({"type": "revise", "message": "without the alignment"}, Answer.REVISED),
        ({"type": "revise", "message": "cheaper", "changes": {"max_cost": "1.00"}}, Answer.REVISED),
    ],
)
def test_one_decision_stands_for_all_of_a_plan(decision: dict[str, Any], answer: Answer) -> None:
    decided = plan().decide([decision])
    assert [each.state for each in decided.calls] == [answer] * 3
    assert decided.status is ReviewStatus.SETTLED


def test_what_to_do_otherwise_is_kept_as_it_was_said() -> None:
    decided = plan().decide([{"type": "revise", "message": "m", "changes": {"exclude": ["s2"], "x": 1.0}}])
    assert [each.decisions[0].arguments for each in decided.calls] == ['{"exclude":["s2"],"x":1.0}'] * 3


def test_a_plan_is_not_decided_in_parts() -> None:
    mixed = [{"type": "approve", "call": key} for key in STEPS[:2]] + [{"type": "reject", "call": STEPS[2]}]
    with pytest.raises(InvalidReviewDecisionError, match="whole"):
        plan().decide(mixed)


def test_a_plan_that_needs_two_people_waits_for_the_second() -> None:
    desk = plan(Threshold(approve=2))
    assert desk.decide([{"type": "approve"}], by=RITA).status is ReviewStatus.PENDING
    assert desk.decide([{"type": "approve"}], by=OMAR).status is ReviewStatus.SETTLED


def test_sending_a_plan_back_needs_what_a_rejection_needs() -> None:
    desk = plan(Threshold(approve=1, reject=2))
    assert desk.decide([{"type": "revise", "message": "a"}], by=RITA).status is ReviewStatus.PENDING
    assert desk.decide([{"type": "revise", "message": "b"}], by=OMAR).status is ReviewStatus.SETTLED


@pytest.mark.parametrize(
    ("decision", "pointer"),
    [
        ({"type": "approve", "changes": {"exclude": ["s2"]}}, "/0/changes"),
        ({"type": "revise", "changes": ["s2"]}, "/0/changes"),
        ({"type": "revise", "changes": {"x": float("nan")}}, "/0/changes"),
    ],
)
def test_changes_belong_to_a_revision_and_are_an_object(decision: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidReviewDecisionError) as refused:
        plan().decide([decision])
    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_a_call_of_another_kind_of_review_is_not_named_by_silence() -> None:
    desk = Desk(review(*(call(key) for key in STEPS)))
    with pytest.raises(InvalidReviewDecisionError, match="3 calls wait"):
        desk.decide([{"type": "reject", "message": "no"}])


def test_a_plan_may_be_answered_in_these_ways_only_where_its_rules_say_so() -> None:
    step = call("r/1/0", decisions=(DecisionType.APPROVE, DecisionType.REJECT))
    desk = Desk(review(step, kind=ReviewKind.PLAN))
    with pytest.raises(InvalidReviewDecisionError, match="allowed: approve, reject"):
        desk.decide([{"type": "revise"}])


@pytest.mark.parametrize(
    ("decision", "answer"),
    [
        ({"type": "reject", "message": "no"}, Answer.REJECTED),
        ({"type": "revise", "message": "less"}, Answer.REVISED),
    ],
)
def test_a_no_to_the_steps_that_still_wait_is_one_to_those_that_were_approved_already(
    decision: dict[str, Any], answer: Answer
) -> None:
    steps = [call("r/1/0"), call("r/1/1", who=(Threshold(approve=2),))]
    desk = Desk(review(*steps, kind=ReviewKind.PLAN))
    assert desk.decide([{"type": "approve"}], by=RITA).status is ReviewStatus.PENDING
    decided = desk.decide([decision], by=OMAR)
    assert [each.state for each in decided.calls] == [answer] * 2
    assert decided.status is ReviewStatus.SETTLED
