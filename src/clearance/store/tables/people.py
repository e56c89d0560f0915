"""The tables of people, and of what they show to be known."""

from sqlalchemy import Boolean, Column, ForeignKey, Table, Text

from clearance.store.columns import Instant, Json
from clearance.store.tables.metadata import metadata

people = Table(
    "people",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("groups", Json, nullable=False),
    Column("behind", Text),
    Column("disabled", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
)

# What a caller over HTTP shows to be known: only a digest of it is kept.
keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("person", Text, ForeignKey("people.id"), nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("used_at", Instant),
    Column("revoked_at", Instant),
)
