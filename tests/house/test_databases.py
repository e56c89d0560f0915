"""The databases that the other tests stand on are what their fixtures say."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import create_engine, inspect, text

from tests.databases import Databases


def _tables(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def _make_a_table(url: str) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE mark (id INTEGER PRIMARY KEY)"))
    finally:
        engine.dispose()


def test_a_new_database_has_no_tables_and_takes_some(database_url: str) -> None:
    assert _tables(database_url) == set()
    _make_a_table(database_url)
    assert _tables(database_url) == {"mark"}


def test_migrated_databases_have_the_same_tables_and_share_no_rows(
    databases: Databases, database_kind: str, migrated_database_url: str, tmp_path: Path
) -> None:
    _make_a_table(migrated_database_url)
    (tmp_path / "other").mkdir()
    other = databases.migrated(database_kind, tmp_path / "other")
    assert _tables(other)
    assert _tables(migrated_database_url) == _tables(other) | {"mark"}


def test_several_postgresql_databases_are_apart(new_postgres_database: Callable[[], str]) -> None:
    first, second = new_postgres_database(), new_postgres_database()
    _make_a_table(first)
    assert _tables(second) == set()
