"""What one set of decisions makes of a review: all of it or nothing, for whom it may, while it may."""

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import (
    ClearanceError,
    ForbiddenError,
    InvalidReviewDecisionError,
    ReviewConflictError,
)
from clearance.people import Mode
from clearance.policy import DecisionType, Threshold
from clearance.review import Answer, ReviewKind, ReviewStatus
from tests.rules.small_reviews import (
    BOT,
    FILE,
    MAIL,
    MALLORY,
    NOW,
    OMAR,
    PAYMENT,
    RITA,
    TOM,
    Desk,
    approve,
    call,
    edit,
    reject,
    respond,
    review,
)

APPROVED, REJECTED, RESPONDED, WAITING = (
    Answer.APPROVED,
    Answer.REJECTED,
    Answer.RESPONDED,
    Answer.WAITING,
)


def desk(*calls: Any, **other: Any) -> Desk:
    """Return a desk with a review of these calls, a mail by default."""
    return Desk(review(*(calls or (call("c1"),))), **other)


def payment() -> Desk:
    """Return a desk with one payment that waits."""
    return desk(call("c1", tool="pay", arguments=PAYMENT))


def two() -> Desk:
    """Return a desk with a deletion and a mail."""
    return desk(call("c1", tool="delete_file", arguments=FILE), call("c2"))


@pytest.mark.parametrize(
    ("decision", "state"), [(approve(), APPROVED), (reject(), REJECTED), (respond(), RESPONDED)]
)
def test_one_decision_settles_a_review_of_one_call(decision: dict[str, Any], state: Answer) -> None:
    place = desk()
    after = place.decide([decision])
    assert place.states() == [state]
    assert (after.status, after.version, after.ended_at) == (ReviewStatus.SETTLED, 2, place.now)


def test_decisions_in_screen_order_without_names_are_refused_and_those_with_names_are_taken() -> None:
    place = two()
    before = place.review
    with pytest.raises(InvalidReviewDecisionError):
        place.decide([reject(message="no mail"), approve()])
    assert place.review == before
    place.decide([reject("c2", message="no mail"), approve("c1")])
    assert place.states() == [APPROVED, REJECTED]


def test_every_permutation_of_named_decisions_has_the_same_result() -> None:
    payload = [
        approve("c1"),
        reject("c2", message="no"),
        edit("c3", {"account": "A-1", "amount_cents": 900}),
        respond("c4", "paid by hand"),
    ]

    def settled(order: Any) -> Any:
        calls = [call(f"c{place}", tool="pay", arguments=PAYMENT) for place in (1, 2, 3, 4)]
        return desk(*calls).decide(list(order))

    results = [settled(order) for order in itertools.permutations(payload)]
    assert all(result == results[0] for result in results)
    assert [each.state for each in results[0].calls] == [APPROVED, REJECTED, APPROVED, RESPONDED]


def test_one_decision_for_all_needs_no_names() -> None:
    place = two()
    place.decide([reject(), reject()])
    assert place.states() == [REJECTED, REJECTED]


# --- what may be answered ---


@pytest.mark.parametrize(
    "decision", [approve(), reject(), respond(), edit(None, {"path": "/a"}), {"type": "revise"}]
)
def test_an_answer_that_the_rules_do_not_allow_is_refused(decision: dict[str, Any]) -> None:
    others = [kind for kind in DecisionType if kind != decision["type"]]
    place = desk(call("c1", tool="delete_file", arguments=FILE, decisions=others))
    with pytest.raises(InvalidReviewDecisionError, match=f"cannot be answered with {decision['type']}"):
        place.decide([decision])


def test_only_a_plan_is_revised() -> None:
    with pytest.raises(InvalidReviewDecisionError, match="Only a plan"):
        desk().decide([{"type": "revise", "message": "use 1 GPU"}])


@pytest.mark.parametrize("message", ["", " \n\t", None])
def test_a_reason_is_demanded_where_the_rules_say_so(message: str | None) -> None:
    place = desk(call("c1", reason=True))
    with pytest.raises(InvalidReviewDecisionError, match="needs a reason"):
        place.decide([reject(message=message)])
    place.decide([reject(message="too costly")])
    assert place.states() == [REJECTED]


def test_an_approval_needs_no_reason() -> None:
    place = desk(call("c1", reason=True))
    place.decide([approve()])
    assert place.states() == [APPROVED]


def test_one_wrong_decision_refuses_the_whole_set_and_every_fault_is_told() -> None:
    place = desk(
        call("c1", decisions=(DecisionType.REJECT,)),
        call("c2"),
        call("c3", tool="pay", arguments=PAYMENT),
        call("c4", reason=True),
    )
    before = place.review
    with pytest.raises(InvalidReviewDecisionError) as caught:
        place.decide([reject("c4"), edit("c3", {"account": ""}), approve("c2"), approve("c1")])
    assert sorted(fault.pointer for fault in caught.value.faults) == [
        "/0",
        "/1/edited_action/args/account",
        "/1/edited_action/args/amount_cents",
        "/3",
    ]
    assert place.review == before


# --- who, and when ---


def test_nobody_decides_what_they_asked_for_where_people_are_separate() -> None:
    with pytest.raises(ForbiddenError, match="own request"):
        desk().decide([approve()], by=TOM)
    with pytest.raises(ForbiddenError, match="own request"):
        desk().decide([reject()], by=TOM)


def test_the_one_person_of_a_workspace_decides_what_they_asked_for() -> None:
    place = desk(mode=Mode.SINGLE_USER)
    place.decide([approve()], by=TOM)
    assert place.states() == [APPROVED]


@pytest.mark.parametrize("mode", list(Mode))
def test_an_agent_decides_nothing(mode: Mode) -> None:
    with pytest.raises(ForbiddenError, match="only people decide"):
        desk(mode=mode).decide([approve()], by=BOT)


def test_a_viewer_decides_nothing() -> None:
    with pytest.raises(ForbiddenError, match="reviewer"):
        desk().decide([approve()], by=MALLORY)


def test_a_disabled_person_decides_nothing() -> None:
    place = desk()
    place.people = {**place.people, RITA.id: replace(RITA, disabled=True)}
    with pytest.raises(ForbiddenError, match="disabled"):
        place.decide([approve()])


def test_who_is_in_none_of_the_groups_decides_nothing() -> None:
    place = desk(call("c1", who=[Threshold(group="finance"), Threshold(group="lead")]))
    for decision in (approve(), reject(), respond(), edit(None, {"to": "a", "subject": "s", "body": "b"})):
        with pytest.raises(ForbiddenError, match="none of the groups that decide this: finance, lead"):
            place.decide([decision])


@pytest.mark.parametrize("kind", [ReviewKind.OUTCOME])
@pytest.mark.parametrize(("rules", "allowed"), [((), False), (("rule",), True)])
def test_what_became_of_a_call_without_rules_is_told_by_operators(
    kind: ReviewKind, rules: tuple[str, ...], allowed: bool
) -> None:
    place = Desk(review(call("c1", rules=rules), kind=kind))
    if allowed:
        place.decide([respond()])
        assert place.states() == [RESPONDED]
    else:
        with pytest.raises(ForbiddenError, match="operator"):
            place.decide([respond()])


def test_a_decision_counts_only_strictly_before_the_deadline() -> None:
    for offset, in_time in ((timedelta(microseconds=1), True), (timedelta(0), False)):
        place = desk()
        place.review = replace(place.review, deadline=NOW + timedelta(seconds=1) + offset)
        if in_time:
            place.decide([approve()])
            assert place.states() == [APPROVED]
        else:
            with pytest.raises(ReviewConflictError, match="expired at 2026-03-02 09:00:01 UTC"):
                place.decide([approve()])


def test_a_decision_on_another_version_is_refused_and_tells_what_happened() -> None:
    place = desk(call("c1", who=[Threshold(approve=2)]))
    place.decide([approve()], by=OMAR)
    with pytest.raises(
        ReviewConflictError, match=r"version 2, you saw 1.*u-1002: approve send_email"
    ) as caught:
        place.decide([approve()], version=1)
    assert caught.value.review == place.review


def test_a_decision_on_a_settled_review_is_refused_and_tells_the_winner() -> None:
    place = desk()
    place.decide([reject(message="no")], by=OMAR)
    with pytest.raises(ReviewConflictError, match=r"settled already.*u-1002: reject send_email") as caught:
        place.decide([approve()], version=1)
    assert caught.value.review.calls[0].decisions[0].by == OMAR.id


@pytest.mark.parametrize("status", [status for status in ReviewStatus if status is not ReviewStatus.PENDING])
def test_a_review_that_is_over_takes_no_decision(status: ReviewStatus) -> None:
    place = desk()
    place.review = replace(place.review, status=status, reason="It is over.")
    with pytest.raises(ReviewConflictError, match=f"is {status} already. It is over."):
        place.decide([approve()])


# --- a refused decision leaves no trace ---

BAD: list[Any] = [
    None,
    [],
    "x",
    {"decisions": []},
    [{"call": "c1"}],
    [{"call": "c1", "type": "yes"}],
    [{"call": "c1", "type": None}],
    [{"call": "c1", "type": "edit"}],
    [{"call": "c1", "type": "edit", "args": {"path": 1}}],
    [edit("c1", {"account": 1})],
    [edit("c1", {"account": "A-1", "amount_cents": "5"})],
    [edit("c1", {}, name="wipe")],
    [respond("c1", "")],
    [approve("c9")],
    [approve("c1"), approve("c1")],
    [[approve("c1")]],
    [reject("c1", message=7)],
]
GOOD: list[Any] = [
    [approve("c1")],
    [reject("c1", message="no")],
    [respond("c1", "paid by hand")],
    [edit("c1", {"account": "A-1", "amount_cents": 900})],
]


@given(st.lists(st.sampled_from(BAD), max_size=4), st.sampled_from(GOOD))
def test_wrong_decisions_before_a_right_one_change_nothing(bad: list[Any], good: Any) -> None:
    alone, after = payment(), payment()
    for payload in bad:
        with pytest.raises(ClearanceError):
            after.decide(payload)
    after.now = alone.now
    assert after.decide(good) == alone.decide(good)


def test_a_set_of_decisions_is_used_once() -> None:
    place = desk()
    place.decide([approve()])
    with pytest.raises(ReviewConflictError):
        place.decide([approve()])


def test_an_answer_of_the_mail_case_keeps_the_other_call_as_it_was() -> None:
    place = two()
    place.decide([approve("c2"), reject("c1", message="not now")])
    assert [each.arguments for each in place.review.calls] == [FILE, MAIL]
    assert place.states() == [REJECTED, APPROVED]
