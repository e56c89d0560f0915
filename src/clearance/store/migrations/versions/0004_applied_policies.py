"""Policies that people apply from files: where the active one came from, and the file's text."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the two columns; what is there came from the programs' own code."""
    op.add_column("policies", sa.Column("source", sa.Text(), nullable=False, server_default="code"))
    op.add_column("policies", sa.Column("text", sa.Text(), nullable=True))
