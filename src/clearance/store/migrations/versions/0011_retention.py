"""Redaction and retention."""

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the columns."""
