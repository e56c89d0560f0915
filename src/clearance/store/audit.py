"""The trail's rows: entries written with their facts, numbered after commit, sealed, and read by number.

An entry's `seq` is given under the lock on the one `notary` row, to entries whose transaction has committed.
So numbers become visible in their order and without gaps: a reader that asks for what comes after the last
number it has seen misses nothing, however many write at the same time.
"""

import itertools
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, exists, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from clearance.audit import AuditKind, Entry, Seal, Sign, make_entry, make_seal
from clearance.errors import StoreError
from clearance.store.columns import Instant
from clearance.store.tables import entries, notary, seals

# How many entries one transaction numbers, and how many one seal covers, at most: both hold the lock.
NUMBER_AT_ONCE = 500
SEAL_AT_ONCE = 2000
_EVER = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_written = itertools.count()

# SQLite has to be told the index: it would look by `seq`, and sort the whole backlog for each batch of it.
_NUMBER = """
UPDATE entries SET seq = batch.seq
FROM (
    SELECT id, :last + row_number() OVER (ORDER BY time, id) AS seq FROM entries {index}
    WHERE seq IS NULL AND time >= :since ORDER BY time, id LIMIT :limit
) AS batch
WHERE entries.id = batch.id
"""


# Made once: a worker asks this all the time.
_STANDING = select(
    notary.c.last_seq,
    notary.c.last_seal,
    seals.c.last_seq.label("sealed_to"),
    seals.c.time.label("sealed_at"),
    exists().where(entries.c.seq.is_(None), entries.c.time >= bindparam("since")).label("waiting"),
).outerjoin_from(notary, seals, seals.c.number == notary.c.last_seal)


@dataclass(frozen=True)
class Standing:
    """How far the trail is: numbered to `last_seq`, sealed to `sealed_to` by seal `last_seal`.

    `waiting` says whether committed entries wait for their number.
    """

    last_seq: int
    last_seal: int
    sealed_to: int
    sealed_at: datetime | None
    waiting: bool


def write(
    tx: Connection,
    kind: AuditKind,
    subject: str,
    *,
    actor: str,
    now: datetime,
    facts: Mapping[str, Any] | None = None,
) -> Entry:
    """Write one entry in the transaction of the fact it tells; entries of one transaction keep their order.

    `facts` holds no arguments and no comments: fingerprints and salted hashes stand for them.
    """
    entry = make_entry(kind, subject, actor=actor, facts=facts or {}, id=_new_id(now), now=now)
    tx.execute(
        insert(entries),
        {
            "id": entry.id,
            "time": entry.time,
            "kind": entry.kind,
            "subject": subject,
            "actor": actor,
            "facts": entry.facts,
            "hash": entry.hash,
        },
    )
    return entry


def read_after(
    tx: Connection,
    seq: int,
    *,
    limit: int,
    kinds: Collection[str] | None = None,
    subject: str | None = None,
    where: Sequence[ColumnElement[bool]] = (),
) -> list[Entry]:
    """Return the numbered entries after `seq`, in order, at most `limit`. `where`: more that they must be.

    A reader that filters and gets fewer than `limit` goes on from the `last_seq` that it read before, not
    from the last entry it got: else it looks at the same entries again each time.
    """
    wanted = select(entries).where(entries.c.seq > seq).order_by(entries.c.seq).limit(limit)
    if kinds is not None:
        wanted = wanted.where(entries.c.kind.in_(kinds))
    if subject is not None:
        wanted = wanted.where(entries.c.subject == subject)
    wanted = wanted.where(*where)
    return [_entry(row) for row in tx.execute(wanted)]


def of_ids(tx: Connection, ids: Sequence[str]) -> list[Entry]:
    """Return those of the entries that are there, in the order of their ids here."""
    found = {row.id: _entry(row) for row in tx.execute(select(entries).where(entries.c.id.in_(ids)))}
    return [found[each] for each in ids if each in found]


def of_numbers(tx: Connection, numbers: Sequence[int]) -> list[Entry]:
    """Return the entries of these numbers, in order."""
    wanted = select(entries).where(entries.c.seq.in_(numbers)).order_by(entries.c.seq)
    return [_entry(row) for row in tx.execute(wanted)]


def up_to(seq: int) -> ColumnElement[bool]:
    """Return the condition for the entries up to a number, that one included."""
    return entries.c.seq <= seq


def last_seq(tx: Connection) -> int:
    """Return the last number given; 0 before the first."""
    number: int = tx.execute(select(notary.c.last_seq)).scalar_one()
    return number


def standing(tx: Connection, *, since: datetime | None = None) -> Standing:
    """Return how far the trail is. With `since`, entries older than that do not count as waiting."""
    row = tx.execute(_STANDING, {"since": since or _EVER}).one_or_none()
    if row is None:
        raise _notary_lost()
    return Standing(row.last_seq, row.last_seal, row.sealed_to or 0, row.sealed_at, bool(row.waiting))


def number(tx: Connection, *, limit: int = NUMBER_AT_ONCE, since: datetime | None = None) -> int:
    """Give the next numbers to at most `limit` committed entries; return how many got one.

    The transaction does nothing else: it holds the lock that all numbering waits for. With `since`, only
    entries of that time or later are looked at, which costs the same however many others there are.
    """
    last = _locked(tx).last_seq
    on_sqlite = tx.dialect.name == "sqlite"
    if not on_sqlite:
        # Statistics know nothing of a backlog: without this, each batch of a long one sorts all of it.
        tx.execute(text("SET LOCAL enable_sort = off"))
    statement = text(_NUMBER.format(index="INDEXED BY entries_unnumbered" if on_sqlite else ""))
    values = {"last": last, "since": since or _EVER, "limit": limit}
    try:
        count = tx.execute(statement.bindparams(bindparam("since", type_=Instant)), values).rowcount
    except IntegrityError as error:
        raise StoreError(
            f"Entry {last + 1} or one after it is there already, though its number was not given yet. "
            "The trail was changed from outside: clearance audit verify"
        ) from error
    if count:
        tx.execute(update(notary).values(last_seq=last + count))
    return count


def seal(
    tx: Connection,
    sign: Sign,
    *,
    key_id: str,
    now: datetime,
    every: timedelta = timedelta(0),
    known: Seal | None = None,
    limit: int = SEAL_AT_ONCE,
) -> Seal | None:
    """Seal the numbered entries that have no seal yet, the first `limit` of them.

    Returns None when there is none, or when the last seal is younger than `every`. Entries that were
    removed since they got their number are sealed as missing: the range says that they were there.
    Raises `StoreError` when the last seal, or the one that the caller has made before (`known`), is gone:
    sealing what it covered once more would hide what was done to it.
    """
    row = _locked(tx)
    if known and known != _seal_before(tx, known.number):
        raise _seal_lost(known.number)
    before = _seal_before(tx, row.last_seal)
    first = before.last_seq + 1 if before else 1
    if first > row.last_seq or (before and abs(now - before.time) < every):
        return None
    last = min(row.last_seq, first + limit - 1)
    hashes = tx.execute(
        select(entries.c.hash).where(entries.c.seq.between(first, last)).order_by(entries.c.seq)
    ).scalars()
    made = make_seal(hashes, sign, first_seq=first, last_seq=last, after=before, key_id=key_id, now=now)
    tx.execute(insert(seals), {name: getattr(made, name) for name in seals.columns.keys()})  # noqa: SIM118
    tx.execute(update(notary).values(last_seal=made.number))
    return made


def read_seals(tx: Connection, after: int, *, limit: int) -> list[Seal]:
    """Return the seals after that number, in order, at most `limit`."""
    rows = tx.execute(select(seals).where(seals.c.number > after).order_by(seals.c.number).limit(limit))
    return [_seal(row) for row in rows]


def _new_id(now: datetime) -> str:
    """Return 128 bits in hexadecimal that sort by time, then by order of writing in this process."""
    micros = (now - _EPOCH) // timedelta(microseconds=1)
    return f"{micros & (1 << 56) - 1:014x}{next(_written) & 0xFFFFFFFF:08x}{secrets.token_hex(5)}"


def _locked(tx: Connection) -> Row[Any]:
    # On SQLite the writing transaction itself is the lock.
    row = tx.execute(select(notary).with_for_update()).one_or_none()
    if row is None:
        raise _notary_lost()
    return row


def _seal_before(tx: Connection, number: int) -> Seal | None:
    if number == 0:
        return None
    row = tx.execute(select(seals).where(seals.c.number == number)).one_or_none()
    if row is None:
        raise _seal_lost(number)
    return _seal(row)


def _seal_lost(number: int) -> StoreError:
    return StoreError(
        f"Seal {number} was made and is not there as it was. "
        "The trail was changed from outside: clearance audit verify"
    )


def _notary_lost() -> StoreError:
    return StoreError("The notary's row is missing from the database. Restore it from a backup.")


def _entry(row: Row[Any]) -> Entry:
    return Entry(row.id, row.time, row.kind, row.subject, row.actor, row.facts, row.hash, row.seq)


def _seal(row: Row[Any]) -> Seal:
    return Seal(**row._mapping)
