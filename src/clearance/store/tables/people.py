"""The tables of people, and of what they show to be known."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text

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
    # Last, where the migration has put it. A row that does not say how far its key goes: it only reads.
    Column("scopes", Json, nullable=False, server_default="[]"),
)

# What somebody signs in with: an argon2 hash, which holds its own salt and cost.
passwords = Table(
    "passwords",
    metadata,
    Column("person", Text, ForeignKey("people.id"), primary_key=True),
    Column("hash", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
)

# Who is signed in, by a cookie whose digest alone is kept. `id` may be shown. `spent_at` is when the last
# full sign-in was used up by a critical decision.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("person", Text, ForeignKey("people.id"), nullable=False),
    Column("browser", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("fresh_at", Instant, nullable=False),
    Column("spent_at", Instant),
    Column("used_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    Index("sessions_by_person", "person"),
)

# Links that let somebody set a password, once. Only a digest of each is kept.
invitations = Table(
    "invitations",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("person", Text, ForeignKey("people.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
    Index("invitations_by_person", "person"),
)

# Who somebody is for an identity provider.
identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("person", Text, ForeignKey("people.id"), nullable=False),
    Column("created_at", Instant, nullable=False),
    Index("identities_by_person", "person"),
)

# How often somebody failed to sign in lately: by a digest of the name that was typed, and by address.
failed_sign_ins = Table(
    "failed_sign_ins",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("last_at", Instant, nullable=False),
    Index("failed_sign_ins_by_age", "last_at"),
)
