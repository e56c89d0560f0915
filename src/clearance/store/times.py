"""Rows of what is due while a review waits: reminders and escalations, each done once."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from clearance.deadline import Time, TimeKind, times
from clearance.review import Review
from clearance.store.runs import insert_ignoring
from clearance.store.tables import review_times

_DUE = (
    select(review_times)
    .where(review_times.c.done_at.is_(None), review_times.c.at <= bindparam("now"))
    .order_by(review_times.c.at, review_times.c.review_id, review_times.c.kind, review_times.c.to)
    .limit(bindparam("most"))
)


def keep(tx: Connection, review: Review) -> None:
    """Keep what is due for a review that waits; what is kept already stays as it is."""
    found = [
        {"review_id": review.id, "kind": each.kind.value, "at": each.at, "to": each.to}
        for each in times(review)
    ]
    if found:
        tx.execute(insert_ignoring(tx, review_times), found)


def due(tx: Connection, *, now: datetime, limit: int) -> list[tuple[str, Time]]:
    """Return (review, time) of what is due by now and not done, in order."""
    return [
        (row.review_id, Time(row.at, TimeKind(row.kind), row.to))
        for row in tx.execute(_DUE, {"now": now, "most": limit})
    ]


def done(tx: Connection, review_id: str, time: Time, *, now: datetime) -> bool:
    """Mark something as done; False when it was done before."""
    mark = (
        update(review_times)
        .where(
            review_times.c.review_id == review_id,
            review_times.c.kind == time.kind.value,
            review_times.c.at == time.at,
            review_times.c.to == time.to,
            review_times.c.done_at.is_(None),
        )
        .values(done_at=now)
        .returning(review_times.c.review_id)
    )
    return tx.execute(mark).first() is not None
