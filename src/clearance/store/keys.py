"""Rows of keys: what callers over HTTP show to be known. Only a digest of each is kept."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, bindparam, or_, select, update

from clearance.credential import Scope
from clearance.errors import ConflictError, NotFoundError
from clearance.people import Person
from clearance.store import people
from clearance.store.runs import insert_ignoring
from clearance.store.tables import keys

SEEN_EVERY = timedelta(minutes=1)
"""How exact `used_at` is: a write for every request would cost more than it tells."""


@dataclass(frozen=True)
class Key:
    """One key, without what it opens with. `id` is the part of it that may be shown."""

    id: str
    name: str
    person: str
    created_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None
    scopes: frozenset[Scope]


# Made once: every request needs it.
_OPENED = select(keys).where(
    keys.c.id == bindparam("key"), keys.c.digest == bindparam("shown"), keys.c.revoked_at.is_(None)
)


def add(tx: Connection, key: Key, *, digest: str) -> None:
    """Keep a new key; `ConflictError` when its name is taken."""
    values = {
        "id": key.id,
        "name": key.name,
        "person": key.person,
        "digest": digest,
        "created_at": key.created_at,
        "scopes": sorted(key.scopes),
    }
    if tx.execute(insert_ignoring(tx, keys).values(values).returning(keys.c.id)).first() is None:
        raise ConflictError(f"There is a key {key.name} already. Choose another name, or revoke it first.")


def opened_by(tx: Connection, key_id: str, *, digest: str) -> tuple[Key, Person] | None:
    """Return the key with this digest and whose it is; None when it is unknown, revoked or another one."""
    row = tx.execute(_OPENED, {"key": key_id, "shown": digest}).mappings().first()
    return None if row is None else (_key(row), people.person(tx, row["person"]))


def seen(tx: Connection, key_id: str, *, now: datetime) -> None:
    """Note that a key was used, unless that was noted so lately that it need not be."""
    late = or_(keys.c.used_at.is_(None), keys.c.used_at < now - SEEN_EVERY)
    tx.execute(update(keys).where(keys.c.id == key_id, late).values(used_at=now))


def named(tx: Connection, name: str) -> Key:
    """Return the key of that name or id that is not revoked; `NotFoundError` when there is none."""
    query = select(keys).where((keys.c.name == name) | (keys.c.id == name), keys.c.revoked_at.is_(None))
    # By its id first: else a key that is called as another one's id would be taken for it.
    row = tx.execute(query.order_by((keys.c.id == name).desc())).mappings().first()
    if row is None:
        raise NotFoundError(f"There is no key {name} that could be used. See: clearance keys list")
    return _key(row)


def revoke(tx: Connection, key: Key, *, now: datetime) -> None:
    """Let a key open nothing from now on; its name can be used again."""
    values = {"revoked_at": now, "name": f"{key.name} ({key.id}, revoked)"}
    tx.execute(update(keys).where(keys.c.id == key.id).values(values))


def listed(tx: Connection) -> list[Key]:
    """Return every key, revoked ones too, the oldest first."""
    return [_key(row) for row in tx.execute(select(keys).order_by(keys.c.created_at, keys.c.id)).mappings()]


def _key(row: RowMapping) -> Key:
    known = {name: value for name, value in row.items() if name != "digest"}
    return Key(**{**known, "scopes": frozenset(map(Scope, row["scopes"]))})
