"""Reminders, escalation, and who is looking at a review."""

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns and tables."""
