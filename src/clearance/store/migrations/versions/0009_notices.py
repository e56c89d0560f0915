"""Where people are told, and what was sent."""

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the tables."""
