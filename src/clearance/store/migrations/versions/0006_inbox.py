"""The order of the inbox."""

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the index."""
