"""The tables' history: Alembic revisions, run inside one transaction of ours."""

from pathlib import Path

from sqlalchemy import Connection

FOLDER = Path(__file__).parent


def upgrade(tx: Connection, *, revision: str = "head") -> None:
    """Bring the database to a revision; nothing happens when it is there."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(FOLDER))
    context = MigrationContext.configure(
        tx, opts={"fn": lambda current, _: scripts._upgrade_revs(revision, current)}
    )
    if context.get_current_heads() == tuple(scripts.get_heads()):
        return
    with Operations.context(context):
        context.run_migrations()
