"""An edit is a new proposal: its arguments fit, its own rules hold, and what was proposed stays on record."""

from dataclasses import replace
from datetime import timedelta

import pytest

from clearance.errors import InvalidReviewDecisionError
from clearance.policy import DecisionType, Effect, Policy, Predicate, Rule, Threshold
from clearance.review import Answer
from tests.rules.small_reviews import OMAR, PAYMENT, Desk, approve, call, edit, review

APPROVED, WAITING = Answer.APPROVED, Answer.WAITING


def payment() -> Desk:
    """Return a desk with one payment that waits."""
    return Desk(review(call("c1", tool="pay", arguments=PAYMENT)))


def mail(policy: Policy | None = None) -> Desk:
    """Return a desk with one mail that waits."""
    return Desk(review(call("c1")), policy=policy or Policy())


WRONG_EDITS: dict[str, tuple[object, str]] = {
    "a text for a number": ({"account": "A-1", "amount_cents": "1000"}, "/amount_cents"),
    "an exponent in a text": ({"account": "A-1", "amount_cents": "1e3"}, "/amount_cents"),
    "a number with a fraction": ({"account": "A-1", "amount_cents": 10.0}, "/amount_cents"),
    "a bool": ({"account": "A-1", "amount_cents": True}, "/amount_cents"),
    "below the minimum": ({"account": "A-1", "amount_cents": 0}, "/amount_cents"),
    "a misspelt field": ({"account": "A-1", "amout_cents": 900}, "/amout_cents"),
    "a field too many": ({"account": "A-1", "amount_cents": 900, "amout": 1}, "/amout"),
    "a field too few": ({"account": "A-1"}, "/amount_cents"),
    "null for absent": ({"account": "A-1", "amount_cents": 900, "currency": None}, "/currency"),
    "text of an object that does not fit": ('{"account":"A-1"}', "/amount_cents"),
    "a list": ([], ""),
    "null": (None, ""),
}


@pytest.mark.parametrize(("args", "field"), WRONG_EDITS.values(), ids=WRONG_EDITS.keys())
def test_an_edit_that_breaks_the_schema_is_refused_at_its_field_and_changes_nothing(
    args: object, field: str
) -> None:
    place = payment()
    before = place.review
    with pytest.raises(InvalidReviewDecisionError) as caught:
        place.decide([edit("c1", args)])
    assert f"/0/edited_action/args{field}" in [fault.pointer for fault in caught.value.faults]
    assert place.review == before
    place.decide([edit("c1", {"account": "A-1", "amount_cents": 900, "memo": None})])
    assert place.states() == [APPROVED]


def test_what_was_proposed_edited_and_approved_are_kept_apart() -> None:
    place = payment()
    place.decide([edit("c1", {"account": "A-1", "amount_cents": 900, "memo": None}, message="less")])
    (after,) = place.review.calls
    assert (after.proposed_tool, after.proposed) == ("pay", PAYMENT)
    assert (after.tool, after.arguments) == ("pay", '{"account":"A-1","amount_cents":900,"memo":null}')
    assert (after.revision, after.edited) == (2, True)
    (decision,) = after.decisions
    assert (decision.type, decision.revision, decision.arguments) == (DecisionType.EDIT, 2, after.arguments)
    assert decision.message == "less"


def test_the_pointer_of_a_wrong_edit_counts_the_decisions_as_they_were_sent() -> None:
    place = Desk(review(*(call(f"c{place}", tool="pay", arguments=PAYMENT) for place in (1, 2, 3))))
    payload = [approve("c3"), edit("c1", {"account": "A-1", "amount_cents": 0}), approve("c2")]
    with pytest.raises(InvalidReviewDecisionError) as caught:
        place.decide(payload)
    assert [fault.pointer for fault in caught.value.faults] == ["/1/edited_action/args/amount_cents"]


def test_an_edit_may_not_turn_a_call_into_one_that_it_could_not_clear() -> None:
    place = mail(Policy(rules=(Rule(tool="delete_file", decisions=(DecisionType.REJECT,)),)))
    with pytest.raises(InvalidReviewDecisionError, match="do not let an edit clear it"):
        place.decide([edit("c1", {"path": "/etc/passwd"}, name="delete_file")])
    place.decide([edit("c1", {"to": "ann@corp.example", "subject": "s2", "body": "b"})])
    assert place.states() == [APPROVED]


def test_an_edit_into_what_the_policy_denies_is_refused() -> None:
    denied = Policy(rules=(Rule(tool="delete_file", effect=Effect.DENY),))
    with pytest.raises(InvalidReviewDecisionError, match="denies delete_file"):
        mail(denied).decide([edit("c1", {"path": "/"}, name="delete_file")])


def test_an_edit_of_arguments_is_judged_by_the_rule_they_then_fall_under() -> None:
    large = Predicate("large", "1", lambda arguments: bool(arguments["amount_cents"] > 5000))
    place = payment()
    place.policy = Policy(rules=(Rule(tool="pay", when=large, who=(Threshold(approve=2),)), Rule(tool="pay")))
    place.decide([edit("c1", {"account": "A-1", "amount_cents": 5001})])
    assert place.states() == [WAITING]
    place.decide([approve()], by=OMAR)
    assert place.states() == [APPROVED]


@pytest.mark.parametrize(("before", "expected"), [(None, 60), (7200, 60), (30, 30)])
def test_an_edit_may_bring_a_deadline_nearer_and_never_moves_it_away(
    before: int | None, expected: int
) -> None:
    place = payment()
    decided = place.now + timedelta(seconds=1)
    if before is not None:
        place.review = replace(place.review, deadline=decided + timedelta(seconds=before))
    strict = Rule(tool="pay", expire=timedelta(seconds=60), who=(Threshold(approve=2),))
    place.policy = Policy(rules=(strict,))
    after = place.decide([edit("c1", {"account": "A-1", "amount_cents": 5})])
    assert after.deadline == decided + timedelta(seconds=expected)


def test_an_edit_into_what_runs_at_once_is_cleared_by_its_editor() -> None:
    place = mail(Policy(default=Effect.ALLOW))
    place.decide([edit("c1", {"city": "Oslo"}, name="read_weather")])
    assert place.states() == [APPROVED]


def test_an_edit_of_an_unknown_tool_is_refused() -> None:
    with pytest.raises(InvalidReviewDecisionError, match="There is no tool wipe"):
        mail().decide([edit("c1", {}, name="wipe")])
