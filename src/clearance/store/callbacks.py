"""Rows of callbacks: where a caller wants to be told how its call stands, and whether it was."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select, update

from clearance.store.runs import insert_ignoring
from clearance.store.tables import callbacks


@dataclass(frozen=True)
class Callback:
    """One address to be told. `due_at` is when it is tried next, None while there is nothing to tell.

    `secret` signs what is sent; `error` says why the last try failed.
    """

    run_id: str
    url: str
    secret: str
    created_at: datetime
    due_at: datetime | None = None
    tries: int = 0
    delivered_at: datetime | None = None
    error: str | None = None


def keep(tx: Connection, callback: Callback) -> None:
    """Keep where a caller wants to be told; the first address of a run stays."""
    tx.execute(insert_ignoring(tx, callbacks).values(callback.__dict__))


def of_run(tx: Connection, run_id: str) -> Callback | None:
    """Return where the caller of a run wants to be told."""
    row = tx.execute(select(callbacks).where(callbacks.c.run_id == run_id)).mappings().first()
    return None if row is None else _callback(row)


def due(tx: Connection, run_id: str, *, now: datetime) -> None:
    """Have the caller of a run told how its call stands, if it wants to be."""
    values = {"due_at": now, "tries": 0, "delivered_at": None, "error": None}
    tx.execute(update(callbacks).where(callbacks.c.run_id == run_id).values(values))


def is_due(tx: Connection, *, now: datetime) -> bool:
    """Whether there is something to tell; reads only."""
    return (
        tx.execute(select(callbacks.c.run_id).where(callbacks.c.due_at <= now).limit(1)).first() is not None
    )


def claim(tx: Connection, *, now: datetime, until: datetime, limit: int) -> list[Callback]:
    """Take what is due for this process: nobody else tries it before `until`."""
    query = (
        select(callbacks.c.run_id).where(callbacks.c.due_at <= now).order_by(callbacks.c.due_at).limit(limit)
    )
    if tx.dialect.name == "postgresql":
        query = query.with_for_update(skip_locked=True)
    mine = list(tx.execute(query).scalars())
    if not mine:
        return []
    taken = update(callbacks).where(callbacks.c.run_id.in_(mine)).values(due_at=until).returning(callbacks)
    return [_callback(row) for row in tx.execute(taken).mappings()]


def tried(
    tx: Connection, callback: Callback, *, error: str | None, now: datetime, again: datetime | None
) -> None:
    """Note how a try went. What became due anew meanwhile stays due."""
    tx.execute(
        update(callbacks)
        .where(callbacks.c.run_id == callback.run_id, callbacks.c.due_at == callback.due_at)
        .values(
            due_at=again,
            tries=callback.tries + 1,
            error=error,
            delivered_at=now if error is None else None,
        )
    )


def given_up(tx: Connection, *, limit: int) -> list[Callback]:
    """Return what could not be told to anybody, however often it was tried."""
    query = select(callbacks).where(callbacks.c.due_at.is_(None), callbacks.c.error.is_not(None))
    return [
        _callback(row) for row in tx.execute(query.order_by(callbacks.c.created_at).limit(limit)).mappings()
    ]


def _callback(row: RowMapping) -> Callback:
    return Callback(**row)
