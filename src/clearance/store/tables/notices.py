"""The tables of notices: where people are told, what is to be sent, and links in messages."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from clearance.store.columns import Instant, Json
from clearance.store.tables.metadata import metadata

# `address` holds secrets and is never shown; `secret` signs what goes to a webhook.
channels = Table(
    "channels",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("secret", Text),
    Column("serves", Text, nullable=False),
    Column("whom", Text, nullable=False),
    Column("events", Json, nullable=False),
    Column("min_risk", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
)

# How far each reader of the trail has come.
readers = Table(
    "readers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

# One message that is to be sent: for one entry of the trail, by one channel. `folded`: it went with another.
deliveries = Table(
    "deliveries",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("channel", Text, ForeignKey("channels.id"), primary_key=True),
    Column("person", Text, primary_key=True),
    Column("event", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("due_at", Instant),
    Column("tries", Integer, nullable=False),
    Column("ended_at", Instant),
    Column("folded", Boolean, nullable=False),
    Column("error", Text),
)
_WAITING = text("due_at IS NOT NULL")
Index("deliveries_due", deliveries.c.due_at, sqlite_where=_WAITING, postgresql_where=_WAITING)
Index("deliveries_ended", deliveries.c.channel, deliveries.c.status, deliveries.c.ended_at)

# A link in a message. The token is made from the row and a key that is not in the database. A link stays when
# the channel that it was sent by is removed, so that following it says so.
links = Table(
    "links",
    metadata,
    Column("id", Text, primary_key=True),
    Column("review_id", Text, ForeignKey("reviews.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
    Column("channel", Text),
)
Index("links_by_review", links.c.review_id)
