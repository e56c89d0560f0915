"""Channels: where people are told that something waits for them, and which events are worth a message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from clearance.audit import AuditKind
from clearance.people import Person, Role, has_role
from clearance.policy import Risk
from clearance.review import ReviewKind


class ChannelKind(StrEnum):
    """`apprise`: mail, Slack and what else that library knows; `webhook`: a signed message to a server."""

    APPRISE = "apprise"
    WEBHOOK = "webhook"


class Serves(StrEnum):
    """Whom a channel is for: one person, the members of a group, or everybody of a role."""

    PERSON = "person"
    GROUP = "group"
    ROLE = "role"


class Event(StrEnum):
    """What a message tells of."""

    ASKED = "asked"
    REMINDED = "reminded"
    ESCALATED = "escalated"
    UNCERTAIN = "uncertain"
    EXPIRED = "expired"
    SETTLED = "settled"
    FAILED = "failed"
    PARKED = "parked"


WAITING = frozenset({Event.ASKED, Event.REMINDED, Event.ESCALATED, Event.UNCERTAIN})
"""Events that ask for a decision: once that was made, there is nothing to tell."""
DEFAULT_EVENTS = (
    Event.ASKED,
    Event.REMINDED,
    Event.ESCALATED,
    Event.UNCERTAIN,
    Event.EXPIRED,
    Event.FAILED,
    Event.PARKED,
)
KINDS: Mapping[str, Event] = {
    AuditKind.REVIEW_ASKED: Event.ASKED,
    AuditKind.REVIEW_REMINDED: Event.REMINDED,
    AuditKind.REVIEW_ESCALATED: Event.ESCALATED,
    AuditKind.REVIEW_EXPIRED: Event.EXPIRED,
    AuditKind.REVIEW_SETTLED: Event.SETTLED,
    AuditKind.RUN_FAILED: Event.FAILED,
    AuditKind.AGENT_PARKED: Event.PARKED,
}
"""The kinds of the trail's entries that messages tell of."""


@dataclass(frozen=True)
class Channel:
    """One way to tell people. `address` and `secret` are secrets: `shown_address` is what may be shown.

    `whom` is the person, the group or the role that it `serves`.
    """

    id: str
    name: str
    kind: ChannelKind
    serves: Serves
    whom: str
    created_at: datetime
    address: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    events: tuple[Event, ...] = DEFAULT_EVENTS
    min_risk: Risk = Risk.LOW
    enabled: bool = True

    @property
    def shown_address(self) -> str:
        """How the address may be shown: its scheme alone, for everything behind it may be a secret."""
        return f"{self.address.partition('://')[0].lower()}://***"

    def is_for(self, person: Person) -> bool:
        """Whether the channel serves this person."""
        match self.serves:
            case Serves.PERSON:
                return person.id == self.whom
            case Serves.GROUP:
                return self.whom in person.groups
            case Serves.ROLE:
                return has_role(person, Role(self.whom))

    def wants(self, event: Event, risk: Risk | None) -> bool:
        """Whether the channel takes an event; one that is about no review has no risk."""
        order = tuple(Risk)
        return event in self.events and (risk is None or order.index(risk) >= order.index(self.min_risk))


def event_of(kind: str, facts: Mapping[str, Any]) -> Event | None:
    """Return what an entry of the trail is worth telling as; None: nothing."""
    if kind == AuditKind.REVIEW_ASKED and facts.get("kind") == ReviewKind.OUTCOME:
        return Event.UNCERTAIN
    return KINDS.get(kind)
