"""Standing rules, which decisions came from one, and the breaker of floods."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_OPEN = "state IN ('drafted', 'active')"


def upgrade() -> None:
    """Add the column and the tables."""
    op.add_column("decisions", sa.Column("standing", sa.Text(), nullable=True))
    op.create_table(
        "standing_rules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("schema_hash", sa.Text(), nullable=False),
        sa.Column("equal", sa.Text(), nullable=False),
        sa.Column("free", sa.Text(), nullable=False),
        sa.Column("when", sa.Text(), nullable=True),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("risk", sa.Text(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    _index("standing_rules_open", ["program", "requester", "tool"])
    _index("standing_rules_due", ["expires_at"])
    op.create_table(
        "standing_approvals",
        sa.Column("rule_id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["rule_id"], ["standing_rules.id"]),
        sa.PrimaryKeyConstraint("rule_id", "person"),
    )
    _breaker()


def _breaker() -> None:
    op.create_table(
        "proposals",
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call"),
    )
    op.create_index("proposals_by_agent", "proposals", ["agent", "at"])
    op.create_table(
        "parked_agents",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["agent"], ["people.id"]),
        sa.PrimaryKeyConstraint("agent"),
    )


def _index(name: str, columns: list[str]) -> None:
    op.create_index(
        name,
        "standing_rules",
        columns,
        sqlite_where=sa.text(_OPEN),
        postgresql_where=sa.text(_OPEN),
    )
