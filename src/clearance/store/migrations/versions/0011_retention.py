"""Redaction and retention."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add when a thread was closed and emptied, and when the values of a run were removed."""
    op.add_column("threads", sa.Column("closed_at", sa.BigInteger(), nullable=True))
    op.add_column("threads", sa.Column("emptied_at", sa.BigInteger(), nullable=True))
    op.add_column("runs", sa.Column("redacted_at", sa.BigInteger(), nullable=True))
    half = sa.text("closed_at IS NOT NULL AND emptied_at IS NULL")
    op.create_index("threads_half_emptied", "threads", ["id"], sqlite_where=half, postgresql_where=half)
