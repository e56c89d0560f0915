"""Audience: who is told of an entry of the trail: who may decide, who asked, or who operates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import Entry
from clearance.channel import Channel, Event, Serves, event_of
from clearance.decision import why_not
from clearance.errors import NotFoundError
from clearance.people import Mode, Person, Role, has_role, may_see
from clearance.policy import Risk
from clearance.review import Answer, Review
from clearance.store import people, reviews, runs

Entitled = Callable[[Person], bool]


@dataclass(frozen=True)
class Here:
    """Everybody of the workspace, as of one transaction."""

    persons: Sequence[Person]
    mode: Mode
    now: datetime


def everybody(tx: Connection, *, now: datetime) -> Here:
    """Return who is here."""
    persons = [people.with_sight(tx, each) for each in people.persons(tx) if not each.disabled]
    return Here(persons, people.mode(tx), now)


def told(
    tx: Connection, entry: Entry, channels: Sequence[Channel], *, here: Here
) -> list[tuple[Channel, str]]:
    """Return by which channels an entry is told, and to whom; a channel that several read names nobody."""
    event = event_of(entry.kind, entry.facts)
    if event is None:
        return []
    try:
        risk, entitled = _entitled(tx, entry, event, here=here)
    except NotFoundError:
        return []  # what it was about is no longer kept
    return [
        (channel, channel.whom if channel.serves is Serves.PERSON else "")
        for channel in channels
        if channel.wants(event, risk) and any(channel.is_for(p) and entitled(p) for p in here.persons)
    ]


def may_decide(tx: Connection, review: Review, person: Person, *, here: Here) -> bool:
    """Whether a person may decide a review, or could while it waited."""
    if not may_see(person, requester=review.requester):
        return False
    waiting = replace(review, calls=tuple(replace(call, state=Answer.WAITING) for call in review.calls))
    party = people.party(tx, review.requester)
    return why_not(waiting, person, mode=here.mode, party=party, now=here.now) is None


def _entitled(tx: Connection, entry: Entry, event: Event, *, here: Here) -> tuple[Risk | None, Entitled]:
    """Return the risk of what an entry is about, and the test whether a person is told of it."""
    if event is Event.PARKED:
        return None, _operates
    if event is Event.FAILED:
        asked_by = people.party(tx, runs.run(tx, entry.subject).requester)
        return None, lambda person: _operates(person) or person.id == asked_by
    review = reviews.review(tx, entry.subject)
    asker = people.party(tx, review.requester)
    if event is Event.SETTLED:
        return review.risk, lambda person: person.id == asker
    to = entry.facts.get("to") if event is Event.ESCALATED else None

    def decides(person: Person) -> bool:
        if event is Event.EXPIRED and person.id == asker:
            return True
        return (to is None or to in person.groups) and may_decide(tx, review, person, here=here)

    return review.risk, decides


def _operates(person: Person) -> bool:
    return has_role(person, Role.OPERATOR)
