"""Several reviews of one kind at once: each is still a decision of its own, and tells how it went."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError

from clearance.errors import ClearanceError, InvalidInputError
from clearance.gate import Gate
from clearance.people import Person, may_see
from clearance.policy import DecisionType, Risk
from clearance.review import Review, ReviewStatus
from clearance.store import reviews
from clearance.web.pages.waiting import one_by_one

MOST = 50
"""Reviews that are decided at once, at most: those of one page."""
MOST_RISK = Risk.MEDIUM
"""The highest risk that is decided so: more needs a fresh sign-in for itself."""
_Id = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
_ITEMS: TypeAdapter[list[tuple[_Id, int]]] = TypeAdapter(list[tuple[_Id, int]])


@dataclass(frozen=True)
class Seen:
    """A review as somebody saw it: its id and the version."""

    review_id: str
    version: int


@dataclass(frozen=True)
class Went:
    """How it went with one review, in words; `done` when it was decided so."""

    review: Review
    done: bool
    words: str


def seen_items(texts: Sequence[str]) -> list[Seen]:
    """Return what a form names, each once. Raises `InvalidInputError` for none, too many, or other text."""
    try:
        found = dict.fromkeys(Seen(*item) for text in texts for item in _ITEMS.validate_json(text))
    except ValidationError:
        raise InvalidInputError("The form names no reviews of this inbox. Load the page again.") from None
    if not found:
        raise InvalidInputError("No review is selected. Select at least one, then decide.")
    if len(found) > MOST:
        raise InvalidInputError(f"At most {MOST} reviews are decided at once.")
    return list(found)


def together(found: Sequence[Review]) -> str | None:
    """Return why these reviews are not decided together, or None when they may be."""
    reasons = [reason for review in found if (reason := one_by_one(review))]
    if reasons:
        return reasons[0]
    if len({(review.program, review.calls[0].tool) for review in found}) > 1:
        return "One kind at a time: these reviews are about different tools."
    return None


def decide_all(
    gate: Gate, items: Sequence[Seen], wanted: DecisionType, *, by: Person, comment: str
) -> list[Went]:
    """Give the same answer to each of the reviews, and return how each went.

    Raises `InvalidInputError`, and decides nothing, when they are not to be decided together.
    """
    known = _known(gate, items, by=by)
    waiting = [review for review in known.values() if review.status is ReviewStatus.PENDING]
    reason = together(waiting)
    if reason is not None:
        raise InvalidInputError(f"Nothing was decided. {reason}")
    return [
        _decide(gate, known[item.review_id], item.version, wanted, by=by, comment=comment) for item in items
    ]


def claim_all(gate: Gate, items: Sequence[Seen], *, by: Person, release: bool = False) -> list[Went]:
    """Claim each of the reviews, or give it back, and return how each went."""
    known = _known(gate, items, by=by)
    return [_claim(gate, known[item.review_id], by=by, release=release) for item in items]


def _claim(gate: Gate, review: Review, *, by: Person, release: bool) -> Went:
    try:
        if release:
            gate.release(review.id, by=by.id)
        else:
            gate.claim(review.id, by=by.id)
    except ClearanceError as error:
        return Went(review, False, str(error))
    return Went(review, True, "Given back." if release else "Claimed: others see that you are on it.")


def _known(gate: Gate, items: Sequence[Seen], *, by: Person) -> dict[str, Review]:
    with gate.database.read() as tx:
        found = reviews.by_id(tx, [item.review_id for item in items])
    known = {review.id: review for review in found if may_see(by, requester=review.requester)}
    if len(known) < len({item.review_id for item in items}):
        raise InvalidInputError("A review of these is not known here. Load the inbox again.")
    return known


def _decide(
    gate: Gate, review: Review, version: int, wanted: DecisionType, *, by: Person, comment: str
) -> Went:
    # Each call by its name: what is decided is what was seen, whatever came in between.
    payload = [
        {"type": wanted.value, "call": call.key, **({"message": comment} if comment else {})}
        for call in review.waiting
    ]
    try:
        after = gate.decide(review.id, payload, by=by.id, version=version, fresh_for=MOST_RISK)
    except ClearanceError as error:
        return Went(review, False, str(error))
    if after.status is ReviewStatus.PENDING:
        return Went(after, True, "Your answer counts; it waits for others too.")
    return Went(after, True, _AFTER[wanted])


_AFTER = {
    DecisionType.APPROVE: "Approved: it runs once, as it was shown.",
    DecisionType.REJECT: "Rejected: it does not run, and the agent is told so.",
}
