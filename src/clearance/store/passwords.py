"""Rows of passwords: a slow hash of each. The hash holds its own salt and cost."""

from datetime import datetime

from sqlalchemy import Connection, select, update

from clearance.store.runs import insert_ignoring
from clearance.store.tables import passwords


def put(tx: Connection, person: str, hash: str, *, now: datetime) -> None:
    """Keep a person's password, in place of the one before."""
    values = {"hash": hash, "changed_at": now}
    tx.execute(insert_ignoring(tx, passwords).values(person=person, **values))
    tx.execute(update(passwords).where(passwords.c.person == person).values(values))


def of(tx: Connection, person: str) -> str | None:
    """Return the hash of a person's password, None when they have none."""
    found: str | None = tx.execute(select(passwords.c.hash).where(passwords.c.person == person)).scalar()
    return found


def those_with(tx: Connection) -> frozenset[str]:
    """Return who has a password."""
    return frozenset(tx.execute(select(passwords.c.person)).scalars())
