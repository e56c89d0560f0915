"""Rows of failed sign-ins: how often somebody showed something wrong lately, so that guessing is slow.

They are in the database, because several processes answer the same people.
"""

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from clearance.store.runs import insert_ignoring
from clearance.store.tables import failed_sign_ins

FORGOTTEN_AFTER = timedelta(hours=1)
"""After so long without another failure, those before count no more."""


def held(tx: Connection, subject: str, *, now: datetime) -> tuple[int, datetime]:
    """Return how often this failed lately, and when last. Its row is held, so that others wait."""
    tx.execute(insert_ignoring(tx, failed_sign_ins).values(subject=subject, count=0, last_at=now))
    query = select(failed_sign_ins.c.count, failed_sign_ins.c.last_at)
    count, last_at = tx.execute(query.where(failed_sign_ins.c.subject == subject).with_for_update()).one()
    return (count if last_at > now - FORGOTTEN_AFTER else 0), last_at


def note(tx: Connection, subject: str, *, count: int, now: datetime) -> None:
    """Remember how often this has failed by now; it is held."""
    tx.execute(
        update(failed_sign_ins).where(failed_sign_ins.c.subject == subject).values(count=count, last_at=now)
    )


def clear(tx: Connection, subject: str) -> None:
    """Forget all failures: what was shown is right."""
    tx.execute(delete(failed_sign_ins).where(failed_sign_ins.c.subject == subject))


def give_back(tx: Connection, subject: str) -> None:
    """Take one back, which was none."""
    tx.execute(
        update(failed_sign_ins)
        .where(failed_sign_ins.c.subject == subject, failed_sign_ins.c.count > 0)
        .values(count=failed_sign_ins.c.count - 1)
    )


def forget(tx: Connection, *, now: datetime) -> None:
    """Remove what counts no more."""
    tx.execute(delete(failed_sign_ins).where(failed_sign_ins.c.last_at <= now - FORGOTTEN_AFTER))
