"""Rows of what runs say while they work: in order, unaudited, and only as long as a run is open.

`attempt` is the fence of the segment that speaks; `n` counts its pieces from 1. An empty text says that what
the segment said so far is over: a new text begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, tuple_

from clearance.run import OPEN
from clearance.store.runs import insert_ignoring
from clearance.store.tables import runs, stream

_OPEN_STATES = tuple(sorted(OPEN))


@dataclass(frozen=True)
class Piece:
    """One piece of what a run said."""

    attempt: int
    n: int
    text: str


def append(tx: Connection, run_id: str, pieces: Sequence[Piece]) -> None:
    """Keep pieces; those that are kept already stay as they are."""
    rows = [
        {"run_id": run_id, "attempt": piece.attempt, "n": piece.n, "text": piece.text} for piece in pieces
    ]
    tx.execute(insert_ignoring(tx, stream), rows)


def after(tx: Connection, run_id: str, *, attempt: int, n: int) -> list[Piece]:
    """Return what came after a place, of the newest attempt only: what earlier ones said is void."""
    query = (
        select(stream.c.attempt, stream.c.n, stream.c.text)
        .where(stream.c.run_id == run_id, tuple_(stream.c.attempt, stream.c.n) > tuple_(attempt, n))
        .order_by(stream.c.attempt, stream.c.n)
    )
    found = [Piece(*row) for row in tx.execute(query)]
    return [piece for piece in found if piece.attempt == found[-1].attempt]


def forget(tx: Connection, run_id: str, *, upto: int | None = None) -> None:
    """Delete what a run said, up to and with an attempt: that segment has ended. None: all of it."""
    query = delete(stream).where(stream.c.run_id == run_id)
    tx.execute(query if upto is None else query.where(stream.c.attempt <= upto))


def left_behind(tx: Connection) -> list[str]:
    """Return the runs that have ended and of which something is still here: it came too late."""
    query = (
        select(stream.c.run_id)
        .join(runs, runs.c.id == stream.c.run_id)
        .where(runs.c.state.not_in(_OPEN_STATES))
        .distinct()
    )
    return list(tx.execute(query).scalars())
