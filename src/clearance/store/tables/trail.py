"""The tables of the trail."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, text

from clearance.store.columns import Instant, Json
from clearance.store.tables.metadata import metadata

# The trail. An entry is written with its fact and gets its `seq` after commit, from the notary.
entries = Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seq", BigInteger, unique=True),
    Column("time", Instant, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("facts", Json, nullable=False),
    Column("hash", Text, nullable=False),
)
Index(
    "entries_unnumbered",
    entries.c.time,
    entries.c.id,
    sqlite_where=text("seq IS NULL"),
    postgresql_where=text("seq IS NULL"),
)
Index("entries_by_subject", entries.c.subject, entries.c.seq)

seals = Table(
    "seals",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("time", Instant, nullable=False),
)
# One row, whose lock makes numbering and sealing one at a time over all workers.
notary = Table(
    "notary",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("last_seal", BigInteger, nullable=False),
)
