"""Reminders, escalation, and who is looking at a review."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns and tables. Of earlier calls and decisions it is not known, which counts as never."""
    op.add_column("reviewed_calls", sa.Column("since", sa.BigInteger(), nullable=True))
    op.add_column("decisions", sa.Column("counted", sa.Text(), nullable=True))
    op.create_table(
        "claims",
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"]),
        sa.PrimaryKeyConstraint("review_id"),
    )
    op.create_table(
        "review_times",
        sa.Column("review_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("to", sa.Text(), nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["review_id"], ["reviews.id"]),
        sa.PrimaryKeyConstraint("review_id", "kind", "at", "to"),
    )
    op.create_index(
        "review_times_open",
        "review_times",
        ["at"],
        sqlite_where=sa.text("done_at IS NULL"),
        postgresql_where=sa.text("done_at IS NULL"),
    )
