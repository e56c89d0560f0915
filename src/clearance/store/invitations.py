"""Rows of invitations: links that let a person in, once. Only a digest of each is kept."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from clearance.people import Person
from clearance.store import people
from clearance.store.tables import invitations


class Purpose(StrEnum):
    """`admin`: the first to sign in to a new workspace; `password`: who was added, or lost theirs.

    Both set a password. `sign-in` sets none: it signs in whoever has a workspace to themselves.
    """

    ADMIN = "admin"
    PASSWORD = "password"
    SIGN_IN = "sign-in"


@dataclass(frozen=True)
class Invitation:
    """One link, without what opens it."""

    person: str
    purpose: Purpose
    created_at: datetime
    expires_at: datetime


def add(tx: Connection, invitation: Invitation, *, digest: str) -> None:
    """Keep a new invitation; one of the same person that was not used opens nothing any more."""
    tx.execute(
        delete(invitations).where(invitations.c.person == invitation.person, invitations.c.used_at.is_(None))
    )
    tx.execute(
        insert(invitations).values(
            digest=digest,
            person=invitation.person,
            purpose=invitation.purpose.value,
            created_at=invitation.created_at,
            expires_at=invitation.expires_at,
        )
    )


def opened_by(tx: Connection, digest: str, *, now: datetime) -> tuple[Invitation, Person] | None:
    """Return the invitation with this digest and whose it is; nothing is used up.

    None when it is unknown, used, over, or its person is disabled.
    """
    query = select(invitations).where(
        invitations.c.digest == digest, invitations.c.used_at.is_(None), invitations.c.expires_at > now
    )
    row = tx.execute(query).mappings().first()
    if row is None:
        return None
    person = people.person(tx, row["person"])
    found = Invitation(person.id, Purpose(row["purpose"]), row["created_at"], row["expires_at"])
    return None if person.disabled else (found, person)


def use(tx: Connection, digest: str, *, now: datetime) -> bool:
    """Use an invitation up; False when another was faster."""
    done = tx.execute(
        update(invitations)
        .where(invitations.c.digest == digest, invitations.c.used_at.is_(None))
        .values(used_at=now)
        .returning(invitations.c.digest)
    )
    return done.first() is not None


def withdraw(tx: Connection, person: str) -> None:
    """Let no link of a person open anything any more."""
    tx.execute(delete(invitations).where(invitations.c.person == person, invitations.c.used_at.is_(None)))
