"""The tables' history: Alembic revisions, run inside one transaction of ours."""

from pathlib import Path

from sqlalchemy import Connection

from clearance.errors import SettingsError

FOLDER = Path(__file__).parent


def upgrade(tx: Connection, *, revision: str = "head") -> None:
    """Bring the database to a revision; nothing happens when it is there.

    Raises `SettingsError` for a database that a newer version has migrated.
    """
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    scripts = ScriptDirectory(str(FOLDER))
    context = MigrationContext.configure(
        tx, opts={"fn": lambda current, _: scripts._upgrade_revs(revision, current)}
    )
    if context.get_current_heads() == tuple(scripts.get_heads()):
        return
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        raise SettingsError(
            "The database was made by a newer version of Clearance. Use that version, or another database."
        ) from error
