"""The keyring: making and revoking the keys by which callers over HTTP are known."""

import secrets
from collections.abc import Collection

from clearance.audit import AuditKind
from clearance.credential import EVERY_SCOPE, Credential, Scope
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError
from clearance.people import SYSTEM, Kind, Person, Role, has_role
from clearance.store import audit, keys, people
from clearance.store.database import Database
from clearance.store.keys import Key

MAX_NAME = 100


def new_credential() -> Credential:
    """Return a fresh key."""
    return Credential(secrets.token_hex(6), secrets.token_urlsafe(32))


def add_key(
    database: Database,
    name: str,
    *,
    person: str,
    by: str,
    made: Credential,
    scopes: Collection[Scope] = EVERY_SCOPE,
) -> Key:
    """Keep a key of a person or agent that is known here. `made` is shown once, by who called this.

    With no `scopes` it only reads.

    Raises `ForbiddenError` unless `by` is an admin, or makes a key of their own; `NotFoundError`,
    `ConflictError` for a name that is taken.
    """
    check_name(name)
    with database.write() as tx:
        now = database.now(tx)
        owner = people.person(tx, person)
        maker = people.person(tx, by)
        if not has_role(maker, Role.ADMIN) and maker.id not in (owner.id, owner.behind):
            raise ForbiddenError(f"Only an admin makes keys for others; {maker.name} is a {maker.role}.")
        if owner.disabled:
            raise ConflictError(f"{owner.name} is disabled and gets no key.")
        key = Key(
            made.id,
            name,
            owner.id,
            created_at=now,
            used_at=None,
            revoked_at=None,
            scopes=frozenset(scopes),
        )
        keys.add(tx, key, digest=made.digest)
        facts = {"key": key.id, "name": name, "person": owner.id, "scopes": sorted(key.scopes)}
        audit.write(tx, AuditKind.KEY_ADDED, key.id, actor=by, now=now, facts=facts)
        return key


def add_agent(database: Database, name: str, *, behind: str, by: str) -> Person:
    """Make an agent known here, which proposes for the person `behind` it; the same agent again is the same.

    Raises `ForbiddenError` unless `by` is an admin, or the person behind it; `ConflictError` when somebody
    else has that name.
    """
    check_id(name)
    with database.write() as tx:
        now = database.now(tx)
        maker = people.person(tx, by)
        agent = Person(name, name, role=Role.VIEWER, kind=Kind.AGENT, behind=people.person(tx, behind).id)
        if not has_role(maker, Role.ADMIN) and maker.id != agent.behind:
            raise ForbiddenError(f"Only an admin makes agents for others; {maker.name} is a {maker.role}.")
        if people.add(tx, agent, now=now):
            facts = {"role": agent.role, "kind": agent.kind, "behind": agent.behind}
            audit.write(tx, AuditKind.PERSON_ADDED, name, actor=by, now=now, facts=facts)
            return agent
        known = people.person(tx, name)
        if known.kind is not Kind.AGENT or known.behind != agent.behind:
            raise ConflictError(f"{name} is known here already, and is not this agent. Choose another name.")
        return known


def revoke_key(database: Database, name: str, *, by: str) -> Key:
    """Let a key open nothing from now on. Raises `NotFoundError`, and `ForbiddenError` as `add_key` does."""
    with database.write() as tx:
        now = database.now(tx)
        key = keys.named(tx, name)
        maker, owner = people.person(tx, by), people.person(tx, key.person)
        if not has_role(maker, Role.ADMIN) and maker.id not in (owner.id, owner.behind):
            raise ForbiddenError(f"Only an admin revokes the keys of others; {maker.name} is a {maker.role}.")
        keys.revoke(tx, key, now=now)
        facts = {"key": key.id, "name": key.name, "person": key.person}
        audit.write(tx, AuditKind.KEY_REVOKED, key.id, actor=by, now=now, facts=facts)
        return key


def check_name(name: str) -> None:
    """Raise `InvalidInputError` for what cannot be the name of a key, a person or an agent."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name.strip() != name or "/" in name:
        raise InvalidInputError(
            f"A name has 1 to {MAX_NAME} printable characters, no '/', and no space at its ends."
        )


def check_id(id: str) -> None:
    """Raise `InvalidInputError` for what cannot be the id of a person or an agent."""
    check_name(id)
    if id.casefold() == SYSTEM:
        raise InvalidInputError(f"In the trail {id} is the product itself. Choose another id.")
