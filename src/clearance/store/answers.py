"""Rows of what was answered to requests that carried a key of their own."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from clearance.store.runs import insert_ignoring
from clearance.store.tables import answers


@dataclass(frozen=True)
class Kept:
    """What was answered, and to what: `body` is a digest of the request."""

    body: str
    answer: str
    at: datetime


def claim(tx: Connection, person: str, route: str, key: str, *, body: str, now: datetime) -> bool:
    """Take a key for this transaction; False when it was taken before.

    Whoever comes at the same time waits here until this transaction has ended.
    """
    values = {
        "person": person,
        "route": route,
        "key": key,
        "body": body,
        "status": 0,
        "answer": "",
        "at": now,
    }
    row = tx.execute(insert_ignoring(tx, answers).values(values).returning(answers.c.key)).first()
    return row is not None


def keep(tx: Connection, person: str, route: str, key: str, *, answer: str) -> None:
    """Keep what is answered under a key that this transaction has taken."""
    tx.execute(
        update(answers)
        .where(answers.c.person == person, answers.c.route == route, answers.c.key == key)
        .values(status=200, answer=answer)
    )


def kept(tx: Connection, person: str, route: str, key: str) -> Kept | None:
    """Return what was answered under a key."""
    query = select(answers.c.body, answers.c.answer, answers.c.at).where(
        answers.c.person == person, answers.c.route == route, answers.c.key == key
    )
    row = tx.execute(query).first()
    return None if row is None else Kept(*row)


def forget(tx: Connection, person: str, route: str, key: str, *, before: datetime) -> None:
    """Delete one answer that is older than `before`."""
    tx.execute(
        delete(answers).where(
            answers.c.person == person, answers.c.route == route, answers.c.key == key, answers.c.at <= before
        )
    )


def any_before(tx: Connection, before: datetime) -> bool:
    """Whether an answer is older than that."""
    return tx.execute(select(answers.c.key).where(answers.c.at <= before).limit(1)).first() is not None


def purge(tx: Connection, before: datetime) -> None:
    """Delete every answer that is older than that."""
    tx.execute(delete(answers).where(answers.c.at <= before))
