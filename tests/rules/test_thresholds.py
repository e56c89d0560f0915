"""How many people must say the same: distinct people, of the right groups, on the present revision."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearance.errors import ForbiddenError, InvalidReviewDecisionError
from clearance.people import Mode, Person, Role
from clearance.policy import DecisionType, Policy, Rule, Threshold
from clearance.review import (
    Answer,
    Decision,
    ReviewedCall,
    ReviewStatus,
    closed,
    refusal_reasons,
    response,
    standing,
    tally,
)
from tests.rules.small_reviews import (
    EVERYBODY,
    FAYE,
    FRED,
    LENA,
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

TWO = Threshold(approve=2)
FINANCE = Threshold(group="finance")
EDITED = {"to": "ann@corp.example", "subject": "s2", "body": "b"}


def desk(*who: Threshold, **other: Any) -> Desk:
    """Return a desk with one mail that waits for these thresholds."""
    return Desk(review(call("c1", who=who)), **other)


def state(*said: tuple[Person, dict[str, Any]], who: Sequence[Threshold] = (TWO,)) -> Answer:
    """Return what these decisions add up to, given one after the other."""
    place = desk(*who, policy=Policy(rules=(Rule(tool="*", who=tuple(who)),)))
    for person, decision in said:
        place.decide([decision], by=person)
    return place.states()[0]


DRAMAS: dict[str, tuple[tuple[Threshold, ...], list[tuple[Person, dict[str, Any]]], Answer]] = {
    "one of two": ((TWO,), [(RITA, approve())], Answer.WAITING),
    "two of two": ((TWO,), [(RITA, approve()), (OMAR, approve())], Answer.APPROVED),
    "one person twice": ((TWO,), [(RITA, approve()), (RITA, approve())], Answer.WAITING),
    "one person, twice with other words": (
        (TWO,),
        [(RITA, approve()), (RITA, approve(message="really"))],
        Answer.WAITING,
    ),
    "one rejection ends it": ((TWO,), [(RITA, approve()), (OMAR, reject())], Answer.REJECTED),
    "two must reject": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (OMAR, approve())],
        Answer.WAITING,
    ),
    "two reject": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (LENA, approve()), (OMAR, reject())],
        Answer.REJECTED,
    ),
    "who changes their mind counts once": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (RITA, approve()), (OMAR, reject())],
        Answer.WAITING,
    ),
    "who changes their mind back": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (RITA, approve()), (RITA, reject()), (OMAR, reject())],
        Answer.REJECTED,
    ),
    "a result needs what a rejection needs": (
        (Threshold(approve=1, reject=2),),
        [(RITA, respond()), (OMAR, respond())],
        Answer.RESPONDED,
    ),
    "one result of two": ((Threshold(approve=2, reject=2),), [(RITA, respond())], Answer.WAITING),
    "a rejection and a result are not two": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (OMAR, respond())],
        Answer.WAITING,
    ),
    "one of the group": ((FINANCE,), [(FAYE, approve())], Answer.APPROVED),
    "two thresholds, both are needed": (
        (TWO, FINANCE),
        [(RITA, approve()), (OMAR, approve())],
        Answer.WAITING,
    ),
    "one person may count for both": (
        (TWO, FINANCE),
        [(RITA, approve()), (FAYE, approve())],
        Answer.APPROVED,
    ),
    "two groups, one person of each": (
        (FINANCE, Threshold(group="lead")),
        [(FAYE, approve()), (LENA, approve())],
        Answer.APPROVED,
    ),
    "two groups, one person of both": (
        (FINANCE, Threshold(group="lead")),
        [(FRED, approve())],
        Answer.APPROVED,
    ),
    "a rejection counts for its group only": (
        (FINANCE, Threshold(approve=2, reject=2)),
        [(RITA, reject())],
        Answer.WAITING,
    ),
    "the group's rejection ends it": (
        (FINANCE, Threshold(approve=2, reject=2)),
        [(FAYE, reject())],
        Answer.REJECTED,
    ),
    "an edit counts for its editor": (
        (TWO,),
        [(RITA, edit(None, EDITED)), (OMAR, approve())],
        Answer.APPROVED,
    ),
    "an edit takes the approvals before it": (
        (TWO,),
        [(RITA, approve()), (OMAR, edit(None, EDITED))],
        Answer.WAITING,
    ),
    "who approved before an edit may approve it": (
        (TWO,),
        [(RITA, approve()), (OMAR, edit(None, EDITED)), (RITA, approve())],
        Answer.APPROVED,
    ),
    "an edit takes the rejections before it": (
        (Threshold(approve=2, reject=2),),
        [(RITA, reject()), (OMAR, edit(None, EDITED)), (LENA, reject())],
        Answer.WAITING,
    ),
    "an editor who then rejects": (
        (TWO,),
        [(RITA, edit(None, EDITED)), (RITA, reject())],
        Answer.REJECTED,
    ),
}


@pytest.mark.parametrize(("who", "said", "expected"), DRAMAS.values(), ids=DRAMAS.keys())
def test_decisions_add_up(
    who: tuple[Threshold, ...], said: list[tuple[Person, dict[str, Any]]], expected: Answer
) -> None:
    assert state(*said, who=who) is expected


def test_a_repeated_decision_changes_nothing() -> None:
    place = desk(TWO)
    once = place.decide([approve()])
    assert place.decide([approve()]) == once
    assert place.decide([approve(message="sure")]) != once


def test_a_repeated_edit_is_a_new_revision() -> None:
    place = desk(TWO, policy=Policy(rules=(Rule(tool="*", who=(TWO,)),)))
    for revision in (2, 3):
        place.decide([edit(None, EDITED)])
        assert place.review.calls[0].revision == revision


def test_calls_of_one_review_are_decided_each_by_its_own_threshold() -> None:
    place = Desk(review(call("c1"), call("c2", who=[TWO])))
    place.decide([approve("c1"), approve("c2")])
    assert place.states() == [Answer.APPROVED, Answer.WAITING]
    assert place.review.ended_at is None
    assert place.decide([approve("c2")], by=OMAR).status is ReviewStatus.SETTLED
    assert place.states() == [Answer.APPROVED, Answer.APPROVED]


def test_a_rejected_call_takes_no_further_decisions() -> None:
    place = Desk(review(call("c1"), call("c2", who=[TWO])))
    place.decide([reject("c1"), approve("c2")])
    with pytest.raises(InvalidReviewDecisionError):
        place.decide([approve("c1"), approve("c2")], by=OMAR)
    place.decide([approve("c2")], by=OMAR)
    assert place.states() == [Answer.REJECTED, Answer.APPROVED]


def test_who_counts_for_one_call_may_not_edit_another() -> None:
    place = Desk(review(call("c1", who=[FINANCE]), call("c2")))
    with pytest.raises(InvalidReviewDecisionError, match="in no group that decides"):
        place.decide([edit("c1", EDITED), approve("c2")])
    place.decide([approve("c1"), approve("c2")])
    assert place.states() == [Answer.WAITING, Answer.APPROVED]


LOST = {
    "disabled": {"disabled": True},
    "no reviewer any more": {"role": Role.VIEWER},
    "out of the group": {"groups": ()},
}


@pytest.mark.parametrize("change", LOST.values(), ids=LOST.keys())
def test_what_was_said_by_who_may_not_decide_any_more_does_not_count(change: dict[str, Any]) -> None:
    two_of_finance = Threshold(approve=2, group="finance")
    place = desk(two_of_finance)
    place.decide([approve()], by=FAYE)
    place.people = {**place.people, FAYE.id: replace(FAYE, **change)}
    place.decide([approve()], by=FRED)
    assert place.states() == [Answer.WAITING]
    place.people = dict(EVERYBODY)
    place.decide([approve(message="again")], by=FRED)
    assert place.states() == [Answer.APPROVED]


def test_an_own_approval_from_single_user_days_does_not_count_once_people_are_separate() -> None:
    place = desk(TWO, mode=Mode.SINGLE_USER)
    place.decide([approve()], by=TOM)
    place.mode = Mode.SEPARATE
    place.decide([approve()], by=RITA)
    assert place.states() == [Answer.WAITING]
    place.decide([approve()], by=OMAR)
    assert place.states() == [Answer.APPROVED]


def test_who_has_joined_a_group_counts_when_they_say_it_again() -> None:
    place = desk(TWO, FINANCE)
    for person in (RITA, OMAR):
        place.decide([approve()], by=person)
    assert place.states() == [Answer.WAITING]
    place.people = {**place.people, RITA.id: replace(RITA, groups=("finance",))}
    place.decide([approve()], by=RITA)
    assert place.states() == [Answer.APPROVED]


def test_what_a_person_said_last_counts_even_when_the_clock_was_set_back() -> None:
    place = desk(TWO)
    place.decide([approve()], by=RITA)
    place.now -= timedelta(hours=1)
    place.decide([reject()], by=RITA)
    assert place.states() == [Answer.REJECTED]


def test_decisions_of_the_same_instant_stand_in_the_order_in_which_they_were_taken() -> None:
    place = desk(Threshold(approve=2, reject=2))
    for decision in (reject(), approve()):
        place.now -= timedelta(seconds=1)
        place.decide([decision], by=RITA)
    place.decide([approve()], by=OMAR)
    assert place.states() == [Answer.APPROVED]


def test_standing_tells_for_each_threshold_how_many_have_approved() -> None:
    place = desk(TWO, Threshold(approve=2, group="finance"))
    place.decide([approve()], by=FAYE)
    place.decide([approve()], by=RITA)
    assert standing(place.review.calls[0], place.people) == (
        (TWO, 2),
        (Threshold(approve=2, group="finance"), 1),
    )


def test_the_result_in_the_tool_s_place_is_the_one_that_settled_the_call() -> None:
    place = desk(Threshold(approve=2, reject=2))
    place.decide([respond(message="first")], by=RITA)
    place.decide([respond(message="second")], by=OMAR)
    assert response(place.review.calls[0]) == "second"


def test_a_result_that_was_taken_back_is_not_the_result() -> None:
    place = desk(Threshold(approve=2, reject=2))
    place.decide([respond(message="wrong")], by=LENA)
    place.decide([approve()], by=LENA)
    place.decide([respond(message="right")], by=RITA)
    assert response(place.review.calls[0]) == "right"


def test_reasons_are_told_in_order_and_without_those_that_no_longer_stand() -> None:
    place = desk(
        Threshold(approve=3, reject=3), policy=Policy(rules=(Rule(tool="*", who=(Threshold(3, 3),)),))
    )
    place.decide([reject(message="before the edit")], by=LENA)
    place.decide([edit(None, EDITED)], by=FRED)
    place.decide([reject(message="too long")], by=RITA)
    place.decide([reject()], by=FAYE)
    place.decide([reject(message="wrong address")], by=OMAR)
    assert place.states() == [Answer.REJECTED]
    assert refusal_reasons(place.review.calls[0]) == "too long / wrong address"


def test_a_group_that_nobody_is_in_clears_nothing() -> None:
    place = desk(Threshold(group="nobody"))
    for person in (RITA, FAYE, FRED):
        with pytest.raises(ForbiddenError):
            place.decide([approve()], by=person)


def test_closing_a_review_leaves_what_was_decided() -> None:
    place = Desk(review(call("c1"), call("c2", who=[TWO])))
    place.decide([reject("c1", message="no"), approve("c2")])
    after = closed(place.review, ReviewStatus.EXPIRED, now=NOW, reason="Nobody decided in time.")
    assert [each.state for each in after.calls] == [Answer.REJECTED, Answer.EXPIRED]
    assert (after.version, after.status, after.ended_at) == (3, ReviewStatus.EXPIRED, NOW)


# --- a tally is a function of the set of decisions ---

thresholds = st.lists(
    st.builds(
        Threshold,
        approve=st.integers(1, 3),
        reject=st.integers(1, 3),
        group=st.none() | st.sampled_from(["finance", "lead"]),
    ),
    min_size=1,
    max_size=3,
)
PEOPLE = (RITA, OMAR, LENA, FAYE, FRED)
decisions = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(list(DecisionType)), st.integers(1, 2)),
    max_size=7,
)


def decided(who: Sequence[Threshold], said: Sequence[tuple[Person, DecisionType, int]]) -> ReviewedCall:
    """Return a call at its second revision, with these decisions on it, a second apart."""
    made = [
        Decision("c1", kind, person.id, NOW + timedelta(seconds=place), revision, id=f"{place:02}")
        for place, (person, kind, revision) in enumerate(said)
    ]
    plain = call("c1", tool="pay", arguments=PAYMENT, who=who)
    return replace(plain, revision=2, decisions=tuple(made))


@given(thresholds, decisions, st.data())
def test_the_order_in_which_decisions_are_read_never_matters(
    who: list[Threshold], said: list[tuple[Person, DecisionType, int]], data: st.DataObject
) -> None:
    one = decided(who, said)
    other = replace(one, decisions=tuple(data.draw(st.permutations(one.decisions))))
    assert tally(one, EVERYBODY) is tally(other, EVERYBODY)
    assert standing(one, EVERYBODY) == standing(other, EVERYBODY)
    assert (response(one), refusal_reasons(one)) == (response(other), refusal_reasons(other))


@given(thresholds, decisions)
@example([Threshold()], [(RITA, DecisionType.REVISE, 2)])
@example(
    [Threshold(), Threshold(reject=2, group="lead")],
    [(OMAR, DecisionType.APPROVE, 2), (LENA, DecisionType.REVISE, 2)],
)
def test_an_approval_has_enough_different_people_for_every_threshold_and_too_few_against(
    who: list[Threshold], said: list[tuple[Person, DecisionType, int]]
) -> None:
    last = {person.id: kind for person, kind, revision in said if revision == 2}

    def count(threshold: Threshold, *kinds: DecisionType) -> int:
        members = [p for p in PEOPLE if threshold.group is None or threshold.group in p.groups]
        return sum(last.get(person.id) in kinds for person in members)

    def refused(kind: DecisionType) -> bool:
        return any(count(each, kind) >= each.reject for each in who)

    enough = all(count(each, DecisionType.APPROVE, DecisionType.EDIT) >= each.approve for each in who)
    refusals = (DecisionType.REJECT, DecisionType.RESPOND, DecisionType.REVISE)
    found = tally(decided(who, said), EVERYBODY)
    assert (found is Answer.APPROVED) == (enough and not any(map(refused, refusals)))
    assert (found is Answer.REJECTED) == refused(DecisionType.REJECT)


@given(thresholds, decisions)
def test_a_disabled_person_counts_as_if_they_had_said_nothing(
    who: list[Threshold], said: list[tuple[Person, DecisionType, int]]
) -> None:
    without = [each for each in said if each[0] is not FRED]
    people = {**EVERYBODY, FRED.id: replace(FRED, disabled=True)}
    assert tally(decided(who, said), people) is tally(decided(who, without), EVERYBODY)
    absent = {name: person for name, person in EVERYBODY.items() if person is not FRED}
    assert tally(decided(who, said), absent) is tally(decided(who, without), EVERYBODY)
