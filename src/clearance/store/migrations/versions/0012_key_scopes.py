"""Scopes of keys."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add how far a key goes. Those that there are go as far as before."""
    op.add_column("keys", sa.Column("scopes", sa.Text(), nullable=False, server_default="[]"))
    keys = sa.table("keys", sa.column("scopes", sa.Text()))
    op.execute(keys.update().values(scopes='["decide","manage","propose"]'))
