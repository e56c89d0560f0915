"""Rows of claims: who says that they are looking at a review, so that others may leave it to them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from clearance.store.tables import claims

_OF = select(claims).where(
    claims.c.review_id.in_(bindparam("ids", expanding=True)), claims.c.until > bindparam("now")
)
_END = delete(claims).where(claims.c.review_id == bindparam("review"))


@dataclass(frozen=True)
class Claim:
    """That a person is looking at a review, until an instant. It binds nobody."""

    person: str
    until: datetime


def of(tx: Connection, review_ids: Collection[str], *, now: datetime) -> dict[str, Claim]:
    """Return the claims on these reviews that hold at `now`, by the review's id."""
    if not review_ids:
        return {}
    rows = tx.execute(_OF, {"ids": list(review_ids), "now": now}).mappings()
    return {row["review_id"]: Claim(row["person"], row["until"]) for row in rows}


def keep(tx: Connection, review_id: str, claim: Claim) -> None:
    """Put a claim in the place of the one that is there, if one is."""
    end(tx, review_id)
    tx.execute(insert(claims), {"review_id": review_id, "person": claim.person, "until": claim.until})


def end(tx: Connection, review_id: str, *, person: str | None = None) -> bool:
    """Remove the claim on a review, only this person's where one is named; False when there was none."""
    which = _END if person is None else _END.where(claims.c.person == person)
    return tx.execute(which.returning(claims.c.review_id), {"review": review_id}).first() is not None
