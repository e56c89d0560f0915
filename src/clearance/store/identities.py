"""Rows of identities: who somebody is for an identity provider."""

from datetime import datetime

from sqlalchemy import Connection, select

from clearance.people import Person
from clearance.store import people
from clearance.store.runs import insert_ignoring
from clearance.store.tables import identities


def add(tx: Connection, person: str, *, issuer: str, subject: str, now: datetime) -> bool:
    """Keep who a person is for an issuer; False when that subject of it is known already."""
    values = {"issuer": issuer, "subject": subject, "person": person, "created_at": now}
    done = tx.execute(insert_ignoring(tx, identities).values(values).returning(identities.c.person))
    return done.first() is not None


def known_as(tx: Connection, *, issuer: str, subject: str) -> Person | None:
    """Return whom an issuer means by a subject, None where that is nobody here."""
    query = select(identities.c.person).where(identities.c.issuer == issuer, identities.c.subject == subject)
    found: str | None = tx.execute(query).scalar()
    return None if found is None else people.person(tx, found)


def those_with(tx: Connection) -> frozenset[str]:
    """Return who can sign in through an identity provider."""
    return frozenset(tx.execute(select(identities.c.person)).scalars())
