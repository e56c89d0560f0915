"""The tables of standing rules, and of the breaker that stops agents which propose too much."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, text

from clearance.store.columns import Instant, Json
from clearance.store.tables.metadata import metadata

standing_rules = Table(
    "standing_rules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("program", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("schema_hash", Text, nullable=False),
    Column("equal", Json, nullable=False),
    Column("free", Json, nullable=False),
    Column("when", Text),
    Column("requester", Text, nullable=False),
    Column("thread_id", Text),
    Column("risk", Text, nullable=False),
    Column("uses", Integer, nullable=False),
    Column("uses_left", Integer, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("state", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("review_id", Text, ForeignKey("reviews.id"), nullable=False),
    Column("call", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
)
_OPEN = text("state IN ('drafted', 'active')")
Index(
    "standing_rules_open",
    standing_rules.c.program,
    standing_rules.c.requester,
    standing_rules.c.tool,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index(
    "standing_rules_due",
    standing_rules.c.expires_at,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)

# Who approved of a standing rule; its author is the first of them.
standing_approvals = Table(
    "standing_approvals",
    metadata,
    Column("rule_id", Text, ForeignKey("standing_rules.id"), primary_key=True),
    Column("person", Text, primary_key=True),
    Column("at", Instant, nullable=False),
)

# What agents proposed within the last minute, and which of them may propose nothing until somebody says so.
proposals = Table(
    "proposals",
    metadata,
    Column("call", Text, primary_key=True),
    Column("agent", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("at", Instant, nullable=False),
)
Index("proposals_by_agent", proposals.c.agent, proposals.c.at)
parked_agents = Table(
    "parked_agents",
    metadata,
    Column("agent", Text, ForeignKey("people.id"), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("at", Instant, nullable=False),
)
