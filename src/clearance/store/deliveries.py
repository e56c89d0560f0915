"""Rows of deliveries: the messages that are to be sent, and how far the reader of the trail has come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select, tuple_, update

from clearance.channel import Event
from clearance.store.runs import insert_ignoring
from clearance.store.tables import channels, deliveries, readers

READER = "notices"


class DeliveryStatus(StrEnum):
    """`waiting` is sent when it is due; `overtaken`: there was nothing left to tell."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    UNDELIVERED = "undelivered"
    OVERTAKEN = "overtaken"


@dataclass(frozen=True)
class Delivery:
    """A message: about entry `seq` of the trail, by a channel, to a person (empty: whoever reads there).

    `subject` is what it is about: a review, run or agent. `due_at` is when it is tried next, None once it
    has ended; `folded`: it was told by the message of another one.
    """

    seq: int
    channel: str
    person: str
    event: Event
    subject: str
    created_at: datetime
    status: DeliveryStatus = DeliveryStatus.WAITING
    due_at: datetime | None = None
    tries: int = 0
    ended_at: datetime | None = None
    folded: bool = False
    error: str | None = None


def read_to(tx: Connection) -> int:
    """Return the number of the last entry that was read."""
    seq: int | None = tx.execute(select(readers.c.seq).where(readers.c.name == READER)).scalar()
    return 0 if seq is None else seq


def locked_reader(tx: Connection) -> int:
    """Return the number of the last entry that was read, and keep other workers from reading meanwhile."""
    tx.execute(insert_ignoring(tx, readers).values(name=READER, seq=0))
    query = select(readers.c.seq).where(readers.c.name == READER).with_for_update()
    seq: int = tx.execute(query).scalar_one()
    return seq


def move_reader(tx: Connection, seq: int) -> None:
    """Note that the trail was read to this number."""
    tx.execute(update(readers).where(readers.c.name == READER).values(seq=seq))


def add(tx: Connection, delivery: Delivery) -> None:
    """Have a message sent; the same one again is nothing new."""
    values = {**delivery.__dict__, "event": delivery.event.value, "status": delivery.status.value}
    tx.execute(insert_ignoring(tx, deliveries).values(values))


def is_due(tx: Connection, *, now: datetime) -> bool:
    """Whether something is to be sent; reads only."""
    return tx.execute(_due(now).limit(1)).first() is not None


def due(tx: Connection, *, now: datetime, limit: int) -> list[Delivery]:
    """Return what is due, the oldest first, and locked where others may look at the same time."""
    query = _due(now).order_by(deliveries.c.seq).limit(limit)
    if tx.dialect.name == "postgresql":
        query = query.with_for_update(of=deliveries, skip_locked=True)
    return [_delivery(row) for row in tx.execute(query).mappings()]


def put_off(tx: Connection, some: Sequence[Delivery], *, until: datetime) -> None:
    """Have messages tried not before an instant: by nobody else meanwhile, or by nobody at all."""
    keys = [(each.seq, each.channel, each.person) for each in some]
    key = tuple_(deliveries.c.seq, deliveries.c.channel, deliveries.c.person)
    tx.execute(update(deliveries).where(key.in_(keys)).values(due_at=until))


def lately(tx: Connection, channel: str, person: str, *, since: datetime) -> list[datetime]:
    """Return when messages were sent to somebody by a channel since an instant, the first one first."""
    query = select(deliveries.c.ended_at).where(
        deliveries.c.channel == channel,
        deliveries.c.status == DeliveryStatus.DELIVERED.value,
        deliveries.c.ended_at > since,
        deliveries.c.person == person,
        deliveries.c.folded.is_(False),
    )
    return [instant for instant in tx.execute(query.order_by(deliveries.c.ended_at)).scalars() if instant]


def end(tx: Connection, before: Delivery, after: Delivery) -> bool:
    """Note how a try went; False when somebody else has taken the message meanwhile."""
    changed = {
        "status": after.status.value,
        "due_at": after.due_at,
        "tries": after.tries,
        "ended_at": after.ended_at,
        "folded": after.folded,
        "error": after.error,
    }
    done = update(deliveries).where(
        deliveries.c.seq == before.seq,
        deliveries.c.channel == before.channel,
        deliveries.c.person == before.person,
        deliveries.c.due_at == before.due_at,
    )
    return tx.execute(done.values(changed).returning(deliveries.c.seq)).first() is not None


def listed(
    tx: Connection, *, status: DeliveryStatus | None = None, channel: str | None = None, limit: int
) -> list[Delivery]:
    """Return messages, the newest first."""
    query = select(deliveries).order_by(deliveries.c.seq.desc(), deliveries.c.channel, deliveries.c.person)
    if status is not None:
        query = query.where(deliveries.c.status == status.value)
    if channel is not None:
        query = query.where(deliveries.c.channel == channel)
    return [_delivery(row) for row in tx.execute(query.limit(limit)).mappings()]


def undelivered(tx: Connection) -> int:
    """Return how many messages could not be sent, however often they were tried."""
    query = select(func.count()).select_from(deliveries)
    query = query.where(deliveries.c.status == DeliveryStatus.UNDELIVERED.value)
    count: int = tx.execute(query).scalar_one()
    return count


def _due(now: datetime) -> Select[Any]:
    return (
        select(deliveries)
        .join(channels, channels.c.id == deliveries.c.channel)
        .where(deliveries.c.due_at <= now, channels.c.enabled.is_(True))
    )


def _delivery(row: RowMapping) -> Delivery:
    values = {**row, "event": Event(row["event"]), "status": DeliveryStatus(row["status"])}
    return Delivery(**values)
