"""How people sign in."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the tables."""
