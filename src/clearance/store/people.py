"""Rows of people, and the mode that says who may decide their own requests."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, update

from clearance.errors import NotFoundError
from clearance.people import Kind, Mode, Person, Role
from clearance.store.runs import insert_ignoring
from clearance.store.tables import people

# Made once: see `store.runs`.
_BY_ID = select(people).where(people.c.id.in_(bindparam("ids", expanding=True)))
_PERSONS = select(func.count()).select_from(people).where(people.c.kind == Kind.PERSON.value)


def add(tx: Connection, person: Person, *, now: datetime) -> bool:
    """Keep a new person; False when the id is known."""
    done = tx.execute(
        insert_ignoring(tx, people)
        .values(
            id=person.id,
            name=person.name,
            kind=person.kind.value,
            role=person.role.value,
            groups=list(person.groups),
            behind=person.behind,
            disabled=person.disabled,
            created_at=now,
        )
        .returning(people.c.id)
    ).first()
    return done is not None


def person(tx: Connection, person_id: str) -> Person:
    """Return a person; `NotFoundError` when nobody has that id."""
    found = by_id(tx, [person_id]).get(person_id)
    if found is None:
        raise NotFoundError(f"Nobody here is called {person_id}.")
    return found


def by_id(tx: Connection, ids: list[str]) -> dict[str, Person]:
    """Return those of the people who are known."""
    return {
        row["id"]: Person(
            id=row["id"],
            name=row["name"],
            role=Role(row["role"]),
            groups=tuple(row["groups"]),
            kind=Kind(row["kind"]),
            behind=row["behind"],
            disabled=row["disabled"],
        )
        for row in tx.execute(_BY_ID, {"ids": ids}).mappings()
    }


def persons(tx: Connection) -> list[Person]:
    """Return everybody here but agents, by their ids."""
    ids = tx.execute(select(people.c.id).where(people.c.kind == Kind.PERSON.value)).scalars().all()
    found = by_id(tx, list(ids))
    return [found[each] for each in sorted(found)]


def party(tx: Connection, requester: str, *, known: Mapping[str, Person] | None = None) -> str:
    """Return who stands behind a requester in the end: itself, or whom it acts for, also by way of others.

    `known` are people whom this transaction has read before.
    """
    passed: set[str] = set()
    while requester not in passed:
        passed.add(requester)
        found = (known or {}).get(requester) or by_id(tx, [requester]).get(requester)
        if found is None or found.behind is None:
            break
        requester = found.behind
    return requester


def disable(tx: Connection, person_id: str) -> None:
    """Let a person decide nothing from now on; what they decided stops counting before execution."""
    tx.execute(update(people).where(people.c.id == person_id).values(disabled=True))


def mode(tx: Connection) -> Mode:
    """Return `single-user` while at most one person is known, else `separate`."""
    count = tx.execute(_PERSONS).scalar_one()
    return Mode.SINGLE_USER if count <= 1 else Mode.SEPARATE


def nobody(tx: Connection) -> bool:
    """Whether no person is known yet: the workspace is new."""
    return tx.execute(select(people.c.id).where(people.c.kind == Kind.PERSON.value).limit(1)).first() is None
