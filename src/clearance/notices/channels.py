"""The verbs on channels: adding, testing, enabling, disabling and removing them. Operators may."""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.channel import DEFAULT_EVENTS, Channel, ChannelKind, Event, Serves
from clearance.errors import ForbiddenError, InvalidInputError
from clearance.notices.sending import Outgoing, check_address, send_all
from clearance.notices.targets import Allowed, check_url
from clearance.notices.webhook import new_secret, send
from clearance.notices.wording import Message, trial
from clearance.people import Person, Role, has_role
from clearance.policy import Risk
from clearance.store import audit, channels, people
from clearance.store.database import Database

MAX_NAME = 100


def add_channel(
    database: Database,
    name: str,
    *,
    kind: ChannelKind,
    address: str,
    serves: Serves,
    whom: str,
    by: str,
    id: str,
    allowed: Allowed,
    events: Sequence[Event] = DEFAULT_EVENTS,
    min_risk: Risk = Risk.LOW,
) -> Channel:
    """Keep a new channel. A webhook's `secret` is in what is returned, to be shown once.

    Raises `ForbiddenError` unless `by` is an operator, and for messages by which another person decides, an
    admin; `InvalidInputError` for an address or a name that cannot be used, `NotFoundError` for a person who
    is not known, `ConflictError` for a name that is taken.
    """
    check_name(name)
    check_events(events)
    address = address.strip()
    check_target(address, kind=kind, allowed=allowed)
    secret = new_secret() if kind is ChannelKind.WEBHOOK else None
    with database.write() as tx:
        now = database.now(tx)
        adder = operator(tx, by)
        check_whom(tx, serves, whom)
        personal = serves is Serves.PERSON and kind is ChannelKind.APPRISE
        if personal and whom != adder.id and not has_role(adder, Role.ADMIN):
            raise ForbiddenError(
                f"Messages to one person have links that decide in their name: {whom} adds this channel, or "
                "an admin does."
            )
        made = Channel(
            id, name, kind, serves, whom, now, address, secret, tuple(dict.fromkeys(events)), min_risk
        )
        channels.add(tx, made)
        facts = {"name": name, "kind": kind, "serves": serves, "whom": whom, "events": list(made.events)}
        audit.write(tx, AuditKind.CHANNEL_ADDED, id, actor=by, now=now, facts=facts)
    return made


def set_enabled(database: Database, name: str, *, enabled: bool, by: str) -> Channel:
    """Have a channel used, or not; what waits for it is sent once it is used again.

    Raises `ForbiddenError`, `NotFoundError`.
    """
    kind = AuditKind.CHANNEL_ENABLED if enabled else AuditKind.CHANNEL_DISABLED
    with database.write() as tx:
        operator(tx, by)
        found = channels.named(tx, name)
        if found.enabled is not enabled:
            channels.set_enabled(tx, found.id, enabled=enabled)
            audit.write(tx, kind, found.id, actor=by, now=database.now(tx), facts={"name": found.name})
        return channels.named(tx, name)


def remove_channel(database: Database, name: str, *, by: str) -> Channel:
    """Delete a channel with what it had still to send. Raises `ForbiddenError`, `NotFoundError`."""
    with database.write() as tx:
        operator(tx, by)
        found = channels.named(tx, name)
        channels.remove(tx, found.id)
        facts = {"name": found.name}
        audit.write(tx, AuditKind.CHANNEL_REMOVED, found.id, actor=by, now=database.now(tx), facts=facts)
        return found


def try_channel(database: Database, name: str, *, by: str, id: str, allowed: Allowed) -> str | None:
    """Send a message by a channel now; return why it did not arrive. Raises as the other verbs do."""
    with database.read() as tx:
        operator(tx, by)
        found, now = channels.named(tx, name), database.now(tx)
    message = trial(found.name)
    if found.kind is ChannelKind.WEBHOOK:
        return post(found, message, message_id=f"test/{id}", now=now, allowed=allowed)
    return send_all([Outgoing(id, found.address, message)], allowed=allowed)[id]


def post(
    channel: Channel, message: Message, *, message_id: str, now: datetime, allowed: Allowed
) -> str | None:
    """Send a message to a webhook, signed; return why it did not arrive."""
    event = str(message.facts["event"])
    body = {"type": f"notice.{event}", "timestamp": now.isoformat(), "data": message.facts}
    return send(
        channel.address,
        json.dumps(body),
        secret=channel.secret or "",
        message_id=message_id,
        now=now,
        allowed=allowed,
    )


def operator(tx: Connection, person_id: str) -> Person:
    """Return a person who may see to channels; `ForbiddenError` for another."""
    person = people.person(tx, person_id)
    if person.disabled or not has_role(person, Role.OPERATOR):
        raise ForbiddenError(f"Channels are for operators; {person.name} is a {person.role}.")
    return person


def check_name(name: str) -> None:
    """Raise `InvalidInputError` for what cannot be a channel's name."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name.strip() != name or "/" in name:
        raise InvalidInputError(
            f"A channel's name has 1 to {MAX_NAME} printable characters, no '/', and no space at its ends."
        )


def check_events(events: Sequence[Event]) -> None:
    """Raise `InvalidInputError` where there are none."""
    if not events:
        raise InvalidInputError("A channel tells of at least one event.")


def check_target(address: str, *, kind: ChannelKind, allowed: Allowed) -> None:
    """Raise `InvalidInputError` for an address to which nothing can be sent."""
    if kind is ChannelKind.WEBHOOK:
        check_url(address, allowed=allowed)
    else:
        check_address(address)


def check_whom(tx: Connection, serves: Serves, whom: str) -> None:
    """Raise `NotFoundError` or `InvalidInputError` where a channel would be for nobody."""
    match serves:
        case Serves.PERSON:
            people.person(tx, whom)
        case Serves.GROUP:
            if not whom.strip():
                raise InvalidInputError("Name the group that the channel is for.")
        case Serves.ROLE:
            if whom not in tuple(Role):
                raise InvalidInputError(f"There is no role {whom}; there are {', '.join(Role)}.")
