"""Rows of sessions: who is signed in, by a cookie. Only a digest of it is kept."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from clearance.people import Person
from clearance.store import people
from clearance.store.tables import sessions

SEEN_EVERY = timedelta(minutes=1)
"""How exact `used_at` is: a write for every request would cost more than it tells."""


@dataclass(frozen=True)
class Session:
    """One sign-in of one browser, without the cookie that shows it. `id` may be shown.

    `fresh_at` is when its person last showed all that they sign in with; `spent_at` when that was last used
    up by a critical decision. It ends at `expires_at`, or when it is revoked.
    """

    id: str
    person: str
    browser: str
    created_at: datetime
    fresh_at: datetime
    spent_at: datetime | None
    used_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


_COLUMNS = [sessions.c[name] for name in Session.__dataclass_fields__]
_UNSPENT = sessions.c.spent_at.is_(None) | (sessions.c.spent_at < sessions.c.fresh_at)
# Made once: every request of a page needs it.
_OPENED = select(*_COLUMNS).where(sessions.c.digest == bindparam("shown"), sessions.c.revoked_at.is_(None))


def add(tx: Connection, session: Session, *, digest: str) -> None:
    """Keep a new session."""
    values = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    tx.execute(insert(sessions), {**values, "digest": digest})


def opened_by(
    tx: Connection, digest: str, *, now: datetime, idle: timedelta
) -> tuple[Session, Person] | None:
    """Return the session with this digest and whose it is.

    None when it is unknown, revoked, over, was not used for `idle`, or its person is disabled.
    """
    row = tx.execute(_OPENED, {"shown": digest}).first()
    if row is None:
        return None
    session = Session(*row)
    if now >= session.expires_at or now >= session.used_at + idle:
        return None
    person = people.person(tx, session.person)
    return None if person.disabled else (session, people.with_sight(tx, person))


def seen(tx: Connection, session_id: str, *, now: datetime) -> None:
    """Note that a session was used."""
    tx.execute(update(sessions).where(sessions.c.id == session_id).values(used_at=now))


def freshen(tx: Connection, session_id: str, *, now: datetime) -> None:
    """Note that its person has just shown once more all that they sign in with."""
    tx.execute(update(sessions).where(sessions.c.id == session_id).values(fresh_at=now, used_at=now))


def is_unspent(tx: Connection, session_id: str) -> bool:
    """Whether the last full sign-in of a session was not used up yet."""
    return tx.execute(select(sessions.c.id).where(sessions.c.id == session_id, _UNSPENT)).first() is not None


def spend(tx: Connection, session_id: str, *, now: datetime) -> bool:
    """Use up the last full sign-in; False when it was used up before, so that one counts for one decision."""
    done = tx.execute(
        update(sessions)
        .where(sessions.c.id == session_id, _UNSPENT)
        .values(spent_at=now)
        .returning(sessions.c.id)
    )
    return done.first() is not None


def open_of(tx: Connection, person: str, *, now: datetime, idle: timedelta) -> list[Session]:
    """Return the sessions of a person that open something, the one used last first."""
    query = select(*_COLUMNS).where(
        sessions.c.person == person,
        sessions.c.revoked_at.is_(None),
        sessions.c.expires_at > now,
        sessions.c.used_at > now - idle,
    )
    found = [Session(*row) for row in tx.execute(query)]
    return sorted(found, key=lambda each: (each.used_at, each.created_at, each.id), reverse=True)


def last_used(tx: Connection) -> dict[str, datetime]:
    """Return when each person last used a session, of those that are still known."""
    query = select(sessions.c.person, func.max(sessions.c.used_at).label("at")).group_by(sessions.c.person)
    return {row.person: row.at for row in tx.execute(query)}


def revoke(
    tx: Connection, person: str, *, now: datetime, only: str | None = None, but: str | None = None
) -> list[str]:
    """End the sessions of a person: all, `only` one, or all `but` one. Return which ones it ended."""
    ended = update(sessions).where(sessions.c.person == person, sessions.c.revoked_at.is_(None))
    if only is not None:
        ended = ended.where(sessions.c.id == only)
    if but is not None:
        ended = ended.where(sessions.c.id != but)
    done = tx.execute(ended.values(revoked_at=now).returning(sessions.c.id))
    return sorted(done.scalars())


def forget(tx: Connection, *, before: datetime) -> None:
    """Remove sessions that were over before this instant."""
    tx.execute(delete(sessions).where((sessions.c.expires_at < before) | (sessions.c.revoked_at < before)))
