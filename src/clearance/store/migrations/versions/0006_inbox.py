"""The order of the inbox: risk, then deadline, then age."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the index of the inbox anew, with the deadline in it."""
    op.drop_index("reviews_inbox", "reviews")
    pending = sa.text("status = 'pending'")
    op.create_index(
        "reviews_inbox",
        "reviews",
        [sa.text("risk DESC"), "deadline", "asked_at", "id"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
