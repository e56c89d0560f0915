"""Channels over HTTP, for operators: where people are told, and what became of each message."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from clearance.channel import DEFAULT_EVENTS, ChannelKind, Event, Serves
from clearance.ledger import new_id
from clearance.notices import channels as verbs
from clearance.notices.records import channel_record, delivery_record
from clearance.policy import Risk
from clearance.store import channels, deliveries
from clearance.store.deliveries import DeliveryStatus
from clearance.web.access import PersonOnly, Workspace
from clearance.web.bodies import StrictRoute, Words
from clearance.web.problems import refusals
from clearance.web.records import Record, exact

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["channels"])


class NewChannel(BaseModel):
    """A channel that is to be added."""

    model_config = ConfigDict(extra="forbid")

    name: Words = Field(min_length=1, max_length=verbs.MAX_NAME)
    kind: ChannelKind = ChannelKind.APPRISE
    address: Words = Field(
        min_length=1, max_length=2000, description="An address of Apprise's, or a webhook's URL. A secret."
    )
    serves: Serves
    whom: Words = Field(min_length=1, max_length=200, description="The person, the group or the role.")
    events: list[Event] = list(DEFAULT_EVENTS)
    min_risk: Risk = Risk.LOW


class ChannelRecord(Record):
    """A channel; of its address only the scheme is shown. `secret` is there once, when a webhook is added."""

    id: str
    name: str
    kind: ChannelKind
    address: str
    serves: Serves
    whom: str
    events: list[Event]
    min_risk: Risk
    enabled: bool
    created_at: str
    secret: str | None = None


class ChannelList(Record):
    """The channels."""

    channels: list[ChannelRecord]


class DeliveryRecord(Record):
    """A message, and what became of it."""

    entry: int
    channel: str
    person: str | None
    event: Event
    about: str
    status: DeliveryStatus
    tries: int
    created_at: str
    due_at: str | None
    ended_at: str | None
    error: str | None


class DeliveryList(Record):
    """The messages, the newest first."""

    deliveries: list[DeliveryRecord]


class Tried(Record):
    """Whether a message was taken, and why not."""

    taken: bool
    error: str | None


@router.get("/channels", response_model=ChannelList, responses=refusals(403))
def list_channels(here: Workspace, by: PersonOnly) -> Response:
    """List the channels by name."""
    with here.database.read() as tx:
        verbs.operator(tx, by.id)
        return exact({"channels": [channel_record(each) for each in channels.listed(tx)]})


@router.post("/channels", response_model=ChannelRecord, responses=refusals(403, 404, 409))
def add_channel(here: Workspace, by: PersonOnly, body: NewChannel) -> Response:
    """Add a channel; a webhook's secret is in this answer, and nowhere else."""
    made = verbs.add_channel(
        here.database,
        body.name,
        kind=body.kind,
        address=body.address,
        serves=body.serves,
        whom=body.whom,
        by=by.id,
        id=new_id(),
        allowed=here.worker.messenger.allowed,
        events=body.events,
        min_risk=body.min_risk,
    )
    return exact({**channel_record(made), "secret": made.secret})


@router.post("/channels/{name}/test", response_model=Tried, responses=refusals(403, 404))
def try_channel(here: Workspace, by: PersonOnly, name: str) -> Response:
    """Send a message by a channel now."""
    error = verbs.try_channel(
        here.database, name, by=by.id, id=new_id(), allowed=here.worker.messenger.allowed
    )
    return exact({"taken": error is None, "error": error})


@router.post("/channels/{name}/enable", response_model=ChannelRecord, responses=refusals(403, 404))
def enable_channel(here: Workspace, by: PersonOnly, name: str) -> Response:
    """Use a channel again; what waited for it is sent."""
    return exact(channel_record(verbs.set_enabled(here.database, name, enabled=True, by=by.id)))


@router.post("/channels/{name}/disable", response_model=ChannelRecord, responses=refusals(403, 404))
def disable_channel(here: Workspace, by: PersonOnly, name: str) -> Response:
    """Send nothing by a channel until it is enabled."""
    return exact(channel_record(verbs.set_enabled(here.database, name, enabled=False, by=by.id)))


@router.delete("/channels/{name}", response_model=ChannelRecord, responses=refusals(403, 404))
def remove_channel(here: Workspace, by: PersonOnly, name: str) -> Response:
    """Remove a channel, with what it had still to send."""
    return exact(channel_record(verbs.remove_channel(here.database, name, by=by.id)))


@router.get("/deliveries", response_model=DeliveryList, responses=refusals(403))
def list_deliveries(
    here: Workspace,
    by: PersonOnly,
    *,
    status: DeliveryStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500, description="How many at most.")] = 50,
) -> Response:
    """List what was sent and what is still to be sent, the newest first."""
    with here.database.read() as tx:
        verbs.operator(tx, by.id)
        found = deliveries.listed(tx, status=status, limit=limit)
        names = {each.id: each.name for each in channels.listed(tx)}
    return exact({"deliveries": [delivery_record(each, names[each.channel]) for each in found]})
