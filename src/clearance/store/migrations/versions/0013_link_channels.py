"""Channels of links."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add by which channel a link was sent. Links from before lead to the page behind the login."""
    op.add_column("links", sa.Column("channel", sa.Text(), nullable=True))
