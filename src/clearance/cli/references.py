"""Short names: the review and the call that somebody means by a part of an id.

A short name is looked for among all reviews, those decided on too: one that was enough yesterday must not
reach another review today.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from clearance.errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from clearance.review import Review, ReviewedCall

_MOST_NAMED = 10


def find_review(tx: "Connection", name: str) -> "Review":
    """Return the review with this id, or the one whose id alone begins with it, or ends with it.

    Raises `NotFoundError`, or `InvalidInputError` with the candidates.
    """
    from clearance.store import reviews

    given = name.strip().strip("/")
    with suppress(NotFoundError):
        return reviews.review(tx, given)
    found = reviews.ids_like(tx, given, limit=_MOST_NAMED + 1) if given else []
    if not found:
        raise NotFoundError(f"There is no review {name!r}. `clearance inbox` lists those that wait.")
    if len(found) > 1:
        raise InvalidInputError(f"{name!r} could be any of: {_listed(found)}. Write more of the id.")
    return reviews.review(tx, found[0])


def find_call(review: "Review", name: str) -> "ReviewedCall":
    """Return the call at this place of the review, from 1 as `show` numbers them, or with this id.

    The end of an id does, from a slash on, when only one call has it. Raises `InvalidInputError`.
    """
    listed = ", ".join(f"{place}: {call.key}" for place, call in enumerate(review.calls, start=1))
    given = name.strip()
    exact = [call for call in review.calls if call.key == given]
    # A number is always a place: as the end of an id it would be one less, and so another call.
    if not exact and given.isascii() and given.isdigit():
        if not 1 <= int(given) <= len(review.calls):
            raise InvalidInputError(f"Review {review.id} has no call {given}. It has {listed}.")
        return review.calls[int(given) - 1]
    found = exact or [call for call in review.calls if "/" in given and _names(given, call.key)]
    if not found:
        raise InvalidInputError(f"Review {review.id} has no call {name!r}. It has {listed}.")
    if len(found) > 1:
        raise InvalidInputError(f"{name!r} could be any of: {_listed([call.key for call in found])}.")
    return found[0]


def _names(given: str, key: str) -> bool:
    return key.startswith(given) or key.endswith(f"/{given.lstrip('/')}")


def _listed(ids: list[str]) -> str:
    more = ", …" if len(ids) > _MOST_NAMED else ""
    return ", ".join(ids[:_MOST_NAMED]) + more
