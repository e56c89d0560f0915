"""Single sign-on: whoever an identity provider vouches for is somebody here, with the role their groups give.

They are known by the provider and its subject. Role and groups are renewed each time they come.
"""

import shlex
from dataclasses import replace
from datetime import datetime
from itertools import count

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import ConflictError, ForbiddenError
from clearance.identity import IdentityProvider, Told
from clearance.people import SYSTEM, Kind, Person, Role, SessionLimits
from clearance.signing_in import Client, SignedIn, end_sessions, start_session
from clearance.store import audit, identities, people
from clearance.store.database import Database

_NO_ROLE = "Your groups there give you no role here. Ask an admin which of them should."
_BOTH_AT_ONCE = "You were signing in twice at once. Sign in again."


def admit(
    database: Database,
    provider: IdentityProvider,
    told: Told,
    *,
    client: Client,
    limits: SessionLimits,
    fresh: bool,
    instead_of: str | None = None,
) -> SignedIn:
    """Sign in whom the provider vouches for; the first time they are made a person of this workspace.

    `fresh` says that they showed there who they are just now, and for this. Raises `ForbiddenError` for
    who is disabled here, or has no role; the latter lose what they had by groups, and their sessions.
    """
    with database.write() as tx:
        now = database.now(tx)
        known = identities.known_as(tx, issuer=provider.issuer, subject=told.subject)
        refusal = _refusal(tx, provider, known, told)
        if refusal is None:
            person = (
                _made(tx, provider, told, now) if known is None else _renewed(tx, provider, known, told, now)
            )
            how = "provider"
            return start_session(
                database,
                tx,
                person,
                client=client,
                limits=limits,
                how=how,
                fresh=fresh,
                instead_of=instead_of,
            )
        if known is not None and not known.disabled:
            _renewed(tx, provider, known, told, now)
            end_sessions(database, tx, known.id, by=SYSTEM, reason="the provider gives no role any more")
        refused(tx, known, why=refusal[0], now=now)
    raise ForbiddenError(refusal[1])


def refused(tx: Connection, person: Person | None, *, why: str, now: datetime) -> None:
    """Say in the trail that a sign-in through the provider was not let in; `why` is a word, never a value."""
    who = SYSTEM if person is None else person.id
    facts = {"at": "provider", "why": why}
    audit.write(tx, AuditKind.PERSON_SIGN_IN_FAILED, who, actor=SYSTEM, now=now, facts=facts)


def _refusal(
    tx: Connection, provider: IdentityProvider, known: Person | None, told: Told
) -> tuple[str, str] | None:
    """Return why somebody does not come in, as a word and as a sentence; None where they do."""
    if known is not None and known.disabled:
        return "disabled", f"{known.name} is disabled here. Ask an admin."
    if told.role is None and (known is None or provider.claim):
        return "role", _NO_ROLE
    same = people.by_id(tx, [told.id]).get(told.id) if known is None else None
    if same is not None and same.kind is Kind.PERSON and same.id not in identities.those_with(tx):
        # A second account would let one human decide what they asked for, and be two of a quorum.
        return "name", (
            f"Somebody here is called {told.id} and has not come this way. If that is you, ask an admin for: "
            f"clearance people join {shlex.quote(told.id)} --subject {shlex.quote(told.subject)}. "
            "If not, the admin adds another person for you, and joins that one."
        )
    return None


def _made(tx: Connection, provider: IdentityProvider, told: Told, now: datetime) -> Person:
    """Make somebody a person of this workspace. Nobody who is known before becomes theirs by a name."""
    role = told.role or Role.VIEWER
    for number in count(2 if told.id.casefold() == SYSTEM else 1):
        id = told.id if number == 1 else f"{told.id}-{number}"
        person = Person(id, told.name, role=role, groups=told.groups)
        if people.add(tx, person, now=now):
            break
    if not identities.add(tx, person.id, issuer=provider.issuer, subject=told.subject, now=now):
        raise ConflictError(_BOTH_AT_ONCE)
    facts = {"role": role, "groups": list(told.groups), "issuer": provider.issuer}
    audit.write(tx, AuditKind.PERSON_ADDED, person.id, actor=SYSTEM, now=now, facts=facts)
    return person


def _renewed(tx: Connection, provider: IdentityProvider, before: Person, told: Told, now: datetime) -> Person:
    """Give a person the role and groups that the provider tells now. The last admin stays one."""
    if not provider.claim:
        return before
    role = told.role or Role.VIEWER
    if people.admins(tx) == [before.id]:
        role = Role.ADMIN
    after = replace(before, role=role, groups=told.groups)
    if after == before:
        return before
    people.change(tx, after)
    if after.role is not before.role:
        facts: dict[str, object] = {"role": after.role, "before": before.role, "how": "provider"}
        audit.write(tx, AuditKind.PERSON_ROLE_CHANGED, before.id, actor=SYSTEM, now=now, facts=facts)
    if after.groups != before.groups:
        facts = {"groups": list(after.groups), "before": list(before.groups), "how": "provider"}
        audit.write(tx, AuditKind.PERSON_GROUPS_CHANGED, before.id, actor=SYSTEM, now=now, facts=facts)
    return after
