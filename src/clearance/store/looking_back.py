"""The trail read backwards, the newest entry first, by filters: a page costs the same however long it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, select, true

from clearance.audit import Entry
from clearance.store import audit
from clearance.store.pages import Page, page
from clearance.store.tables import entries

_SKEW = timedelta(minutes=10)
"""How far the order of numbers may be from that of times: a transaction may take, and a clock be set back."""


@dataclass(frozen=True)
class EntryFilter:
    """Which entries are wanted; None is: whatever it is. `family` is what a kind begins with (`review`).

    `since` and `before` are instants; an entry at `since` is wanted, one at `before` is not.
    """

    actor: str | None = None
    kind: str | None = None
    family: str | None = None
    subject: str | None = None
    since: datetime | None = None
    before: datetime | None = None


def newest_entries(
    tx: Connection, wanted: EntryFilter, *, below: int | None, limit: int
) -> tuple[list[Entry], Page[int]]:
    """Return numbered entries, the newest first, from below a number on, and the page that they are."""
    last, first = _bounds(tx, wanted)
    top = last + 1 if below is None else min(below, last + 1)
    fits = and_(true(), *_conditions(wanted)).label("fits")

    def fetch(place: int | None, size: int) -> Sequence[Row[Any]]:
        query = select(entries.c.id, entries.c.seq, fits).where(entries.c.seq < (place or top))
        if wanted.subject is not None:
            query = query.where(entries.c.subject == wanted.subject)
        if first is not None:
            query = query.where(entries.c.seq >= first)
        return tx.execute(query.order_by(entries.c.seq.desc()).limit(size)).all()

    found: Page[int] = page(fetch, lambda row: row.seq, after=None, limit=limit)
    return audit.of_ids(tx, found.ids), found


def _conditions(wanted: EntryFilter) -> list[Any]:
    columns = entries.c
    found = []
    if wanted.actor is not None:
        found.append(columns.actor == wanted.actor)
    if wanted.kind is not None:
        found.append(columns.kind == wanted.kind)
    if wanted.family is not None:
        found.append(columns.kind.startswith(f"{wanted.family}:", autoescape=True))
    if wanted.since is not None:
        found.append(columns.time >= wanted.since)
    if wanted.before is not None:
        found.append(columns.time < wanted.before)
    return found


def _bounds(tx: Connection, wanted: EntryFilter) -> tuple[int, int | None]:
    """Return the last number that may fit, and the first where one is known."""
    last = audit.last_seq(tx)
    first = None if wanted.since is None else _first_at(tx, wanted.since - _SKEW, last=last)
    if wanted.before is not None:
        last = _first_at(tx, wanted.before + _SKEW, last=last) - 1
    return last, first


def _first_at(tx: Connection, instant: datetime, *, last: int) -> int:
    """Return the number from which on entries are of this time or later, or one behind the last.

    No index has the times of numbered entries. Their numbers follow them closely, so it is found by halves.
    """
    low, high = 1, last + 1
    while low < high:
        middle = (low + high) // 2
        # An entry may be missing: it is the trail's check that says so.
        query = select(entries.c.seq, entries.c.time).where(entries.c.seq >= middle, entries.c.seq < high)
        row = tx.execute(query.order_by(entries.c.seq).limit(1)).one_or_none()
        if row is None or row.time >= instant:
            high = middle
        else:
            low = row.seq + 1
    return low
