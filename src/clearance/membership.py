"""Membership: who belongs to the workspace, with which role and groups, and the links that let them in."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.credential import digest_of
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError, SettingsError
from clearance.keyring import check_id, check_name
from clearance.people import Kind, Mode, Person, Role, Sight, has_role
from clearance.signing_in import end_sessions
from clearance.store import audit, identities, invitations, passwords, people
from clearance.store.database import Database
from clearance.store.invitations import Invitation, Purpose

LINK_LASTS = timedelta(hours=24)
SIGN_IN_LINK_LASTS = timedelta(hours=1)
MOST_OF_A_NAME = 200


@dataclass(frozen=True)
class Link:
    """A link by which somebody gets in, once. `token` is in its address, and nowhere else."""

    token: str
    person: Person
    expires_at: datetime

    def __repr__(self) -> str:
        return f"Link(for {self.person.id!r})"

    @property
    def path(self) -> str:
        """Where it leads, on whatever host the pages are."""
        return f"/welcome/{self.token}"


def add_person(
    database: Database, id: str, *, name: str | None, role: Role, groups: Sequence[str], by: str
) -> tuple[Person, Link]:
    """Let somebody in, and return the link by which they sign in first.

    Raises `ForbiddenError` unless `by` is an admin, `ConflictError` for an id that is taken.
    """
    check_id(id)
    new = Person(id, checked_name(name or id), role=role, groups=checked_groups(groups))
    with database.write() as tx:
        _admin(tx, by)
        now = database.now(tx)
        if not people.add(tx, new, now=now):
            raise ConflictError(f"{id} is known here already. Choose another id.")
        facts = {"role": new.role, "groups": list(new.groups)}
        audit.write(tx, AuditKind.PERSON_ADDED, id, actor=by, now=now, facts=facts)
        return new, _invite(database, tx, new, by=by, purpose=Purpose.PASSWORD)


def invite(database: Database, id: str, *, by: str) -> Link:
    """Make a link by which somebody sets a new password: the way back in when theirs is lost.

    An admin makes them for everybody, anybody for themselves. One that was made before opens nothing more.
    """
    with database.write() as tx:
        person = _member(tx, id)
        if by != id:
            _admin(tx, by)
        if person.disabled:
            raise ConflictError(f"{person.name} is disabled. Enable them first: clearance people enable {id}")
        return _invite(database, tx, person, by=by, purpose=Purpose.PASSWORD)


def can_sign_in(tx: Connection) -> bool:
    """Whether anybody here has something to sign in with."""
    return bool(passwords.those_with(tx) or identities.those_with(tx))


def first_link(database: Database, *, by: str) -> Link | None:
    """Return a link for the admin of a workspace where nobody can sign in yet; None where somebody can."""
    with database.write() as tx:
        if can_sign_in(tx):
            return None
        admins = people.admins(tx)
        if not admins:
            return None
        person = people.person(tx, by if by in admins else admins[0])
        return _invite(database, tx, person, by=by, purpose=Purpose.ADMIN)


def sign_in_link(database: Database, *, by: str) -> Link | None:
    """Return a link that signs in the only person of a workspace, without a password; good for an hour.

    None where there are several, or where a password or a provider is there to sign in with.
    """
    with database.write() as tx:
        if can_sign_in(tx) or people.mode(tx) is not Mode.SINGLE_USER:
            return None
        _admin(tx, by)
        return _invite(database, tx, people.person(tx, by), by=by, purpose=Purpose.SIGN_IN)


def join(database: Database, id: str, *, issuer: str, subject: str, by: str) -> Person:
    """Say that somebody is whom an identity provider means by a subject; they come in by that, too.

    Raises `ForbiddenError` unless `by` is an admin, `ConflictError` where that subject is somebody here.
    """
    if not subject or not subject.isprintable():
        raise InvalidInputError("A subject is the text by which the provider knows them. It is not empty.")
    with database.write() as tx:
        _admin(tx, by)
        person, now = _member(tx, id), database.now(tx)
        if not identities.add(tx, id, issuer=issuer, subject=subject, now=now):
            known = identities.known_as(tx, issuer=issuer, subject=subject)
            raise ConflictError(f"There that is {known.id if known else 'somebody'} here already.")
        audit.write(tx, AuditKind.PERSON_JOINED, id, actor=by, now=now, facts={"issuer": issuer})
        return person


def disable(database: Database, id: str, *, by: str) -> Person:
    """Let somebody do nothing here any more: their sessions end, their keys and links open nothing.

    What they decided stops counting where it was not acted on yet. Nobody disables the last admin.
    """
    with database.write() as tx:
        before = _change(database, tx, id, by=by, kind=AuditKind.PERSON_DISABLED, disabled=True)
        if before.disabled:
            raise ConflictError(f"{before.name} is disabled already.")
        invitations.withdraw(tx, id)
        end_sessions(database, tx, id, by=by, reason="the person was disabled")
        return replace(before, disabled=True)


def enable(database: Database, id: str, *, by: str) -> Person:
    """Let somebody who was disabled in again; they sign in anew."""
    with database.write() as tx:
        before = _change(database, tx, id, by=by, kind=AuditKind.PERSON_ENABLED, disabled=False)
        if not before.disabled:
            raise ConflictError(f"{before.name} is not disabled.")
        return replace(before, disabled=False)


def set_role(database: Database, id: str, role: Role, *, by: str) -> Person:
    """Give somebody another role. Nobody takes that of the last admin."""
    with database.write() as tx:
        before = _member(tx, id)
        facts = {"role": role, "before": before.role}
        _change(database, tx, id, by=by, kind=AuditKind.PERSON_ROLE_CHANGED, facts=facts, role=role)
        return replace(before, role=role)


def set_groups(database: Database, id: str, groups: Sequence[str], *, by: str) -> Person:
    """Put somebody into these groups, and out of all others."""
    wanted = checked_groups(groups)
    with database.write() as tx:
        before = _member(tx, id)
        facts = {"groups": list(wanted), "before": list(before.groups)}
        _change(database, tx, id, by=by, kind=AuditKind.PERSON_GROUPS_CHANGED, facts=facts, groups=wanted)
        return replace(before, groups=wanted)


def set_mode(database: Database, mode: Mode, *, by: str) -> None:
    """Have the workspace be `separate` although one person is in it, or no longer so.

    Raises `SettingsError` for `single-user` where there are several.
    """
    with database.write() as tx:
        count = len(people.persons(tx))
        if mode is Mode.SINGLE_USER and count > 1:
            raise SettingsError(
                f"CLEARANCE_PEOPLE_MODE says single-user, but {count} people are known here, where nobody "
                "decides their own requests. Take the setting away."
            )
        if people.set_mode(tx, mode):
            now, facts = database.now(tx), {"mode": mode}
            audit.write(tx, AuditKind.WORKSPACE_MODE_CHANGED, "people", actor=by, now=now, facts=facts)


def set_sight(database: Database, sight: Sight, *, by: str) -> None:
    """Say whose requests a person sees in this workspace, from now on."""
    with database.write() as tx:
        if people.set_sight(tx, sight):
            now, facts = database.now(tx), {"see": sight}
            audit.write(tx, AuditKind.WORKSPACE_MODE_CHANGED, "people", actor=by, now=now, facts=facts)


def _change(
    database: Database,
    tx: Connection,
    id: str,
    *,
    by: str,
    kind: AuditKind,
    facts: Mapping[str, object] | None = None,
    **values: Any,
) -> Person:
    """Change somebody, say so in the trail, and return who they were. What is so already is no change."""
    admins = people.admins(tx)
    _admin(tx, by)
    before = _member(tx, id)
    after = replace(before, **values)
    if admins == [id] and (after.disabled or after.role is not Role.ADMIN):
        raise ConflictError(f"{before.name} is the only admin here. Make somebody else an admin first.")
    if after != before:
        people.change(tx, after)
        audit.write(tx, kind, id, actor=by, now=database.now(tx), facts=facts)
    return before


def _invite(database: Database, tx: Connection, person: Person, *, by: str, purpose: Purpose) -> Link:
    now = database.now(tx)
    lasts = SIGN_IN_LINK_LASTS if purpose is Purpose.SIGN_IN else LINK_LASTS
    link = Link(secrets.token_urlsafe(32), person, now + lasts)
    invitation = Invitation(person.id, purpose, now, link.expires_at)
    invitations.add(tx, invitation, digest=digest_of(link.token))
    facts = {"purpose": purpose, "expires_at": link.expires_at.isoformat()}
    audit.write(tx, AuditKind.PERSON_INVITED, person.id, actor=by, now=now, facts=facts)
    return link


def _admin(tx: Connection, id: str) -> None:
    maker = people.person(tx, id)
    if maker.kind is not Kind.PERSON or maker.disabled or not has_role(maker, Role.ADMIN):
        raise ForbiddenError(f"Only an admin does this, and {maker.name} is none. Ask one of them.")


def _member(tx: Connection, id: str) -> Person:
    found = people.person(tx, id)
    if found.kind is not Kind.PERSON:
        raise ConflictError(f"{id} is an agent, known by its key: see clearance keys list")
    return found


def checked_name(name: str) -> str:
    """Return a person's name; `InvalidInputError` for what cannot be one."""
    if not 1 <= len(name) <= MOST_OF_A_NAME or not name.isprintable() or name.strip() != name:
        raise InvalidInputError(
            f"A person's name has 1 to {MOST_OF_A_NAME} printable characters, and no space at its ends."
        )
    return name


def checked_groups(groups: Sequence[str]) -> tuple[str, ...]:
    """Return the groups in their order, each once; `InvalidInputError` for a name that cannot be one."""
    for each in groups:
        check_name(each)
    return tuple(sorted(set(groups)))
