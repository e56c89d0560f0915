"""The migrations make exactly the tables that the code speaks about, also when many start at once."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, text

from clearance.credential import EVERY_SCOPE
from clearance.errors import SettingsError
from clearance.store import keys
from clearance.store.database import Database
from clearance.store.migrations import FOLDER, upgrade
from clearance.store.tables import metadata
from tests.databases import Databases
from tests.house.sources import ROOT

TOGETHER = 4

_MIGRATE = """
import sys
from clearance.store.database import Database
database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
database.migrate()
database.close()
"""


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Give a plain connection, without any of the product's own settings."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def migrated(url: str) -> None:
    """Bring a database to the newest form, as every process does when it starts."""
    database = Database(url)
    try:
        database.migrate()
    finally:
        database.close()


_DEFINITIONS = {
    "sqlite": (
        "SELECT tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        'SELECT m.name, c.name || c.type || c."notnull" || c.pk '
        "FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'",
        'SELECT m.name, k."from" || k."table" || k."to" '
        "FROM sqlite_master m, pragma_foreign_key_list(m.name) k WHERE m.type = 'table'",
    ),
    "postgresql": (
        "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT table_name, column_name || data_type || is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public'",
        "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'",
    ),
}


def definitions(connection: Connection) -> set[tuple[str, str]]:
    """Return every column, index and key of our tables as the database itself describes them."""
    return {
        (row[0], row[1])
        for statement in _DEFINITIONS[connection.dialect.name]
        for row in connection.execute(text(statement))
        if row[0] in metadata.tables
    }


def test_the_migrated_database_is_what_the_code_speaks_about(migrated_database_url: str) -> None:
    with connected(migrated_database_url) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_name": lambda name, kind, _: kind != "table" or name in metadata.tables,
            },
        )
        assert compare_metadata(context, metadata) == []


def test_columns_indexes_and_keys_are_the_same_as_those_of_tables_made_by_the_code(
    databases: Databases, database_kind: str, migrated_database_url: str, tmp_path: Path
) -> None:
    other = tmp_path / "made"
    other.mkdir()
    url = databases.empty(database_kind, other)
    with connected(url) as connection:
        metadata.create_all(connection)
        expected = definitions(connection)
    with connected(migrated_database_url) as connection:
        assert definitions(connection) == expected
    if database_kind == "postgresql":
        databases.drop(url)


def test_every_table_of_the_code_is_there_and_the_revision_is_known(database_url: str) -> None:
    migrated(database_url)
    with connected(database_url) as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())
        (version,) = connection.execute(text("SELECT version_num FROM alembic_version")).scalars()
    assert [path.name for path in (FOLDER / "versions").glob(f"{version}_*.py")]


def test_migrating_again_changes_nothing(migrated_database_url: str) -> None:
    with connected(migrated_database_url) as connection:
        before = definitions(connection)
    for _ in range(2):
        migrated(migrated_database_url)
    with connected(migrated_database_url) as connection:
        assert definitions(connection) == before


def test_processes_that_start_at_once_make_the_tables_once(database_url: str) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _MIGRATE, database_url]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(TOGETHER)
    ]
    assert [process.stdout.readline() for process in started if process.stdout] == ["ready\n"] * TOGETHER
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0] * TOGETHER, errors
    with connected(database_url) as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1


def test_a_migration_that_fails_leaves_nothing_behind(database_url: str) -> None:
    database = Database(database_url)

    def fail() -> None:
        with database.write() as tx:
            upgrade(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    database.close()
    with connected(database_url) as connection:
        assert not set(metadata.tables) & set(inspect(connection).get_table_names())
    migrated(database_url)


def test_a_database_of_a_newer_version_is_refused_with_a_sentence(migrated_database_url: str) -> None:
    with connected(migrated_database_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SettingsError, match="newer version"):
        migrated(migrated_database_url)


def test_a_database_made_by_the_first_revision_is_brought_to_the_newest(database_url: str) -> None:
    database = Database(database_url)
    with database.write() as tx:
        upgrade(tx, revision="0001")
    database.migrate()
    database.close()
    with connected(database_url) as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())


def test_a_key_of_before_goes_as_far_as_it_did_and_a_row_that_says_nothing_only_reads(
    database_url: str,
) -> None:
    row = "INSERT INTO keys (id, name, person, digest, created_at) VALUES (:id, :id, 'ann', :id, 0)"
    database = Database(database_url)
    with database.write() as tx:
        upgrade(tx, revision="0011")
        tx.execute(text("INSERT INTO people VALUES ('ann', 'ann', 'person', 'admin', '[]', NULL, FALSE, 0)"))
        tx.execute(text(row), {"id": "before"})
    database.migrate()
    with database.write() as tx:
        tx.execute(text(row), {"id": "after"})
        found = {each.id: each.scopes for each in keys.listed(tx)}
    database.close()
    assert found == {"before": EVERY_SCOPE, "after": frozenset()}


def test_the_notary_s_one_row_is_there_from_the_beginning(migrated_database_url: str) -> None:
    with connected(migrated_database_url) as connection:
        assert connection.execute(text("SELECT last_seq, last_seal FROM notary")).all() == [(0, 0)]
