"""The tables of time: who is looking at a review now, and when people are to be told of it again."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text, text

from clearance.store.columns import Instant
from clearance.store.tables.metadata import metadata

# Who says that they are looking at a review, and until when. It binds nobody.
claims = Table(
    "claims",
    metadata,
    Column("review_id", Text, ForeignKey("reviews.id"), primary_key=True),
    Column("person", Text, nullable=False),
    Column("until", Instant, nullable=False),
)

# When a review that still waits is to be reminded of, or escalated to the group `to`; done once each.
review_times = Table(
    "review_times",
    metadata,
    Column("review_id", Text, ForeignKey("reviews.id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("at", Instant, primary_key=True, autoincrement=False),
    Column("to", Text, primary_key=True),
    Column("done_at", Instant),
)
Index(
    "review_times_open",
    review_times.c.at,
    sqlite_where=text("done_at IS NULL"),
    postgresql_where=text("done_at IS NULL"),
)
