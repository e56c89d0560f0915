"""Rows of people, and the mode that says who may decide their own requests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from clearance.errors import NotFoundError
from clearance.people import Kind, Mode, Person, Role, Sight, has_role, seen_by_groups
from clearance.store import facts as remembered
from clearance.store.runs import insert_ignoring
from clearance.store.tables import facts, people

MODE = "people.mode"
"""The fact by which a workspace is `separate` whoever is in it."""

SIGHT = "people.see"
"""The fact that says whose requests a person sees."""

# Made once: see `store.runs`.
_BY_ID = select(people).where(people.c.id.in_(bindparam("ids", expanding=True)))
_PERSONS = select(func.count(), select(facts.c.value).where(facts.c.name == MODE).scalar_subquery()).where(
    people.c.kind == Kind.PERSON.value
)


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
        raise NotFoundError(f"Nobody here is called {person_id}. See who is: clearance people list")
    return found


def by_id(tx: Connection, ids: list[str]) -> dict[str, Person]:
    """Return those of the people who are known."""
    return {row["id"]: _person(row) for row in tx.execute(_BY_ID, {"ids": ids}).mappings()}


def listed(
    tx: Connection,
    *,
    kind: Kind | None = None,
    role: Role | None = None,
    group: str | None = None,
    disabled: bool | None = None,
) -> list[Person]:
    """Return everybody here by their ids, or those of one kind, role or group; with or without access."""
    query = select(people).order_by(people.c.id)
    if kind is not None:
        query = query.where(people.c.kind == kind.value)
    if role is not None:
        query = query.where(people.c.role == role.value)
    if disabled is not None:
        query = query.where(people.c.disabled == disabled)
    found = [_person(row) for row in tx.execute(query).mappings()]
    return [each for each in found if group is None or group in each.groups]


def persons(tx: Connection) -> list[Person]:
    """Return everybody here but agents, by their ids."""
    return listed(tx, kind=Kind.PERSON)


def signing_in_as(tx: Connection, name: str) -> Person | None:
    """Return the person whom this id, or else this name, means; None where it is nobody's or of several."""
    query = select(people).where(
        people.c.kind == Kind.PERSON.value, (people.c.id == name) | (people.c.name == name)
    )
    found = [_person(row) for row in tx.execute(query).mappings()]
    exact = [each for each in found if each.id == name] or found
    return exact[0] if len(exact) == 1 else None


def party(tx: Connection, requester: str, *, known: Mapping[str, Person] | None = None) -> str:
    """Return who stands behind a requester in the end: itself, or whom it acts for, also by way of others.

    `known` are people whom this transaction has read before.
    """
    for each in acting(tx, requester, known=known):
        requester = each.behind or each.id
    return requester


def acting(tx: Connection, requester: str, *, known: Mapping[str, Person] | None = None) -> Iterator[Person]:
    """Give a requester, whom it acts for, whom that one acts for, and so on. `known`: see `party`."""
    passed: set[str | None] = {None}
    following: str | None = requester
    while following not in passed:
        passed.add(following)
        found = (known or {}).get(str(following)) or by_id(tx, [str(following)]).get(str(following))
        if found is None:
            return
        yield found
        following = found.behind


def barred(tx: Connection, requester: str) -> str | None:
    """Return who is disabled of a requester and those whom it acts for; then nothing starts. None: nobody."""
    return next((each.id for each in acting(tx, requester) if each.disabled), None)


def change(tx: Connection, after: Person) -> None:
    """Keep what became of a person: their name, role and groups, and whether they are disabled.

    Whoever is disabled decides nothing from now on, and nothing starts for them; what they decided stops
    counting before execution.
    """
    values = {
        "name": after.name,
        "role": after.role.value,
        "groups": list(after.groups),
        "disabled": after.disabled,
    }
    tx.execute(update(people).where(people.c.id == after.id).values(values))


def admins(tx: Connection) -> list[str]:
    """Return the ids of the admins who are not disabled, whose rows this transaction then holds.

    So two changes that would each leave the other's admin come one after the other.
    """
    query = select(people.c.id).where(
        people.c.kind == Kind.PERSON.value,
        people.c.role == Role.ADMIN.value,
        people.c.disabled.is_(False),
    )
    return list(tx.execute(query.order_by(people.c.id).with_for_update()).scalars())


def disable(tx: Connection, person_id: str) -> None:
    """Let a person decide nothing from now on; what they decided stops counting before execution."""
    tx.execute(update(people).where(people.c.id == person_id).values(disabled=True))


def mode(tx: Connection) -> Mode:
    """Return `single-user` while at most one person is known and nothing else is set, else `separate`."""
    count, forced = tx.execute(_PERSONS).one()
    return Mode.SINGLE_USER if count <= 1 and forced != Mode.SEPARATE.value else Mode.SEPARATE


def set_mode(tx: Connection, wanted: Mode) -> bool:
    """Have the workspace be `separate` whoever is in it, or by the number of its people; False: it was so."""
    if (remembered.get(tx, MODE) or Mode.SINGLE_USER.value) == wanted.value:
        return False
    remembered.put(tx, MODE, wanted.value)
    return True


def set_sight(tx: Connection, wanted: Sight) -> bool:
    """Say whose requests a person sees here; False: it was so."""
    if (remembered.get(tx, SIGHT) or Sight.ALL.value) == wanted.value:
        return False
    remembered.put(tx, SIGHT, wanted.value)
    return True


def with_sight(tx: Connection, person: Person) -> Person:
    """Return the person with whose requests they see now. Operators and admins see everybody's."""
    if person.kind is Kind.AGENT or has_role(person, Role.OPERATOR):
        return person
    if remembered.get(tx, SIGHT) != Sight.OWN_GROUPS.value:
        return person
    return replace(person, sees=seen_by_groups(person, {each.id: each for each in listed(tx)}))


def nobody(tx: Connection) -> bool:
    """Whether no person is known yet: the workspace is new."""
    return tx.execute(select(people.c.id).where(people.c.kind == Kind.PERSON.value).limit(1)).first() is None


def _person(row: RowMapping) -> Person:
    return Person(
        id=row["id"],
        name=row["name"],
        role=Role(row["role"]),
        groups=tuple(row["groups"]),
        kind=Kind(row["kind"]),
        behind=row["behind"],
        disabled=row["disabled"],
    )
