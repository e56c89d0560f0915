"""Claiming a review: saying that one is looking at it. Others see it; who decides is not touched by it."""

from datetime import datetime, timedelta

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.decision import check_waiting, why_not
from clearance.errors import ForbiddenError, ReviewClaimedError
from clearance.people import Person
from clearance.review import Review
from clearance.store import audit, claims, people
from clearance.store.claims import Claim

LASTS = timedelta(minutes=30)
"""How long a claim holds, unless it is renewed by claiming again."""


def claim(tx: Connection, review: Review, *, by: Person, now: datetime, take_over: bool) -> Claim:
    """Note that a person is looking at a review, in the transaction that holds its thread.

    Raises `ReviewConflictError` when it waits no more, `ForbiddenError` for who may not decide it, and
    `ReviewClaimedError` while somebody else holds it, unless it is to be taken over.
    """
    check_waiting(review, now=now)
    party = people.party(tx, review.requester, known={by.id: by})
    reason = why_not(review, by, mode=people.mode(tx), party=party, now=now)
    if reason is not None:
        raise ForbiddenError(reason)
    held = claims.of(tx, [review.id], now=now).get(review.id)
    other = held if held is not None and held.person != by.id else None
    if other is not None and not take_over:
        raise ReviewClaimedError(review.id, person=other.person, until=other.until)
    made = Claim(by.id, now + LASTS)
    claims.keep(tx, review.id, made)
    facts = {"until": made.until.isoformat(), **({} if other is None else {"from": other.person})}
    audit.write(tx, AuditKind.REVIEW_CLAIMED, review.id, actor=by.id, now=now, facts=facts)
    return made


def release(tx: Connection, review: Review, *, by: Person, now: datetime) -> bool:
    """End a person's own claim; False when they have none. Raises `ReviewClaimedError` for another's."""
    held = claims.of(tx, [review.id], now=now).get(review.id)
    if held is not None and held.person != by.id:
        raise ReviewClaimedError(review.id, person=held.person, until=held.until)
    if not claims.end(tx, review.id, person=by.id) or held is None:
        return False
    audit.write(tx, AuditKind.REVIEW_RELEASED, review.id, actor=by.id, now=now)
    return True
