"""The whole trail exactly as it is stored, for a proof or an export: what was tampered with is read, too."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Row, Table, Text, func, select, type_coerce

from clearance.audit import Entry, Seal, time_text
from clearance.errors import InvalidInputError, StoreError
from clearance.export import entry_from, seal_from
from clearance.proof import Extent, Unreadable
from clearance.store.database import Database
from clearance.store.tables import entries, notary, seals
from clearance.toolcall import canonical

_PAGE = 500
_FIRST, _LAST = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What a row that we did not write raises when it is read as an entry or a seal.
_NOT_OURS = (ValueError, TypeError, OverflowError, RecursionError, InvalidInputError)


@dataclass(frozen=True)
class Trail:
    """The trail as it was when it was asked for, read while it is consumed; each iterator goes once.

    `extent` is how much the notary says there is.
    """

    extent: Extent
    entries: Iterator[Entry | Unreadable]
    seals: Iterator[Seal | Unreadable]


def trail(database: Database) -> Trail:
    """Return the trail as it is now, for `proof.verify` and `export.export_lines`.

    A row that no version of this product has written is `Unreadable`: tampering does not stop the reader.
    Each page is a transaction of its own, so that a slow consumer holds nothing.
    """
    last_entry = select(func.max(entries.c.seq)).where(entries.c.seq <= _LAST)
    last_seal = select(func.max(seals.c.number)).where(seals.c.number <= _LAST)
    with database.read() as tx:
        row = tx.execute(
            select(
                notary.c.last_seq,
                notary.c.last_seal,
                last_entry.scalar_subquery().label("to_entry"),
                last_seal.scalar_subquery().label("to_seal"),
            )
        ).one_or_none()
    if row is None:
        raise StoreError("The notary's row is missing from the database. Restore it from a backup.")
    return Trail(
        extent=Extent(row.last_seq, row.last_seal),
        entries=map(_entry, _rows(database, entries, entries.c.seq, to=row.to_entry)),
        seals=map(_seal, _rows(database, seals, seals.c.number, to=row.to_seal)),
    )


def _rows(database: Database, table: Table, number: Column[Any], *, to: int | None) -> Iterator[Row[Any]]:
    raw = {"time": BigInteger, "facts": Text}
    columns = [
        type_coerce(column, raw[column.name]).label(column.name) if column.name in raw else column
        for column in table.columns
    ]
    after, size = _FIRST, _PAGE
    while to is not None and size == _PAGE:
        page = select(*columns).where(number > after, number <= to).order_by(number).limit(_PAGE)
        with database.read() as tx:
            rows = tx.execute(page).all()
        yield from rows
        size = len(rows)
        after = rows[-1]._mapping[number] if rows else after


def _entry(row: Row[Any]) -> Entry | Unreadable:
    try:
        facts = json.loads(row.facts)
        if canonical(facts) == row.facts:
            return entry_from({"type": "entry", **row._mapping, "facts": facts, "time": _time(row.time)})
    except _NOT_OURS:
        pass
    return Unreadable("entry", row.seq if isinstance(row.seq, int) else None)


def _seal(row: Row[Any]) -> Seal | Unreadable:
    try:
        return seal_from({"type": "seal", **row._mapping, "time": _time(row.time)})
    except _NOT_OURS:
        return Unreadable("seal", row.number if isinstance(row.number, int) else None)


def _time(micros: int) -> str:
    return time_text(_EPOCH + timedelta(microseconds=micros))
