"""The databases that the other tests stand on are what their fixtures say."""

import importlib
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import create_engine, inspect, text

from tests.databases import Databases
from tests.house.sources import TEST_FILES, called


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


def test_what_postgresql_has_by_day_too_is_there() -> None:
    unknown = []
    for path in TEST_FILES:
        source = path.read_text(encoding="utf-8")
        if "pytestmark = pytest.mark.sqlite_by_day(" not in source:
            continue
        module = importlib.import_module(called(path).removesuffix(".py").replace("/", "."))
        mark = getattr(module, "pytestmark", None)
        for name in mark.kwargs["but"] if mark is not None else ():
            # A case is named here and where it is one of the parameters.
            if not hasattr(module, name) and source.count(f'"{name.partition(":")[0]}') < 2:
                unknown.append(f"{called(path)}: {name}")
    assert not unknown, unknown
