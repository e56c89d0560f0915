"""Rows of channels: where people are told."""

from sqlalchemy import Connection, RowMapping, delete, or_, select, update

from clearance.channel import Channel, ChannelKind, Event, Serves
from clearance.errors import ConflictError, NotFoundError
from clearance.policy import Risk
from clearance.store.runs import insert_ignoring
from clearance.store.tables import channels, deliveries

_RISKS = tuple(Risk)


def add(tx: Connection, channel: Channel) -> None:
    """Keep a new channel; `ConflictError` when its name is taken."""
    values = {
        "id": channel.id,
        "name": channel.name,
        "kind": channel.kind.value,
        "address": channel.address,
        "secret": channel.secret,
        "serves": channel.serves.value,
        "whom": channel.whom,
        "events": [event.value for event in channel.events],
        "min_risk": _RISKS.index(channel.min_risk),
        "enabled": channel.enabled,
        "created_at": channel.created_at,
    }
    if tx.execute(insert_ignoring(tx, channels).values(values).returning(channels.c.id)).first() is None:
        raise ConflictError(f"There is a channel {channel.name} already. Choose another name.")


def named(tx: Connection, name: str) -> Channel:
    """Return the channel of this name or id; `NotFoundError` when there is none."""
    query = select(channels).where(or_(channels.c.name == name, channels.c.id == name))
    row = tx.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(f"There is no channel {name}. See which there are: clearance channels list")
    return _channel(row)


def listed(tx: Connection, *, enabled: bool | None = None) -> list[Channel]:
    """Return the channels by name, only those that are used or not where that is asked."""
    query = select(channels).order_by(channels.c.name)
    if enabled is not None:
        query = query.where(channels.c.enabled.is_(enabled))
    return [_channel(row) for row in tx.execute(query).mappings()]


def in_use(tx: Connection, channel_id: str) -> bool:
    """Whether there is such a channel, and it is used."""
    query = select(channels.c.id).where(channels.c.id == channel_id, channels.c.enabled.is_(True))
    return tx.execute(query).first() is not None


def set_enabled(tx: Connection, channel_id: str, *, enabled: bool) -> None:
    """Have a channel used, or not."""
    tx.execute(update(channels).where(channels.c.id == channel_id).values(enabled=enabled))


def remove(tx: Connection, channel_id: str) -> None:
    """Delete a channel, and all that was or is to be sent by it."""
    tx.execute(delete(deliveries).where(deliveries.c.channel == channel_id))
    tx.execute(delete(channels).where(channels.c.id == channel_id))


def _channel(row: RowMapping) -> Channel:
    return Channel(
        id=row["id"],
        name=row["name"],
        kind=ChannelKind(row["kind"]),
        serves=Serves(row["serves"]),
        whom=row["whom"],
        created_at=row["created_at"],
        address=row["address"],
        secret=row["secret"],
        events=tuple(Event(event) for event in row["events"]),
        min_risk=_RISKS[row["min_risk"]],
        enabled=row["enabled"],
    )
