"""Standing rules, and the breaker of floods."""

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the tables."""
