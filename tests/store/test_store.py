"""The store on both databases: transactions that end well or not at all, exact values, one clock."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

import clearance
from clearance.errors import SettingsError, StoreError
from clearance.store import people
from clearance.store import tables as t
from clearance.store.database import Database, retrying
from tests.databases import Databases
from tests.house.sources import ROOT
from tests.rules.json_values import json_objects
from tests.rules.small_reviews import RITA
from tests.store.bench import LONG

NOW = datetime(2026, 3, 2, 9, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    made = Database(migrated_database_url)
    yield made
    made.close()


# --- transactions ---


def test_a_transaction_that_raises_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as tx:
            people.add(tx, RITA, now=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.read() as tx:
        assert people.nobody(tx)


def test_a_reader_sees_nothing_of_a_transaction_that_is_not_committed(database: Database) -> None:
    with database.write() as tx:
        people.add(tx, RITA, now=NOW)
        with database.read() as other:
            assert people.nobody(other)
    with database.read() as tx:
        assert not people.nobody(tx)


def test_a_reading_transaction_sees_one_moment(database: Database) -> None:
    with database.read() as tx:
        assert people.nobody(tx)
        with database.write() as other:
            people.add(other, RITA, now=NOW)
        assert people.nobody(tx)
    with database.read() as tx:
        assert not people.nobody(tx)


@pytest.mark.parametrize("how", ["read", "write"])
def test_a_connection_in_use_is_closed_as_soon_as_it_is_given_back(
    migrated_database_url: str, how: str
) -> None:
    opened = Database(migrated_database_url)
    with getattr(opened, how)() as tx:
        connection = tx.connection.dbapi_connection
        opened.close()
        assert tx.execute(select(1)).scalar_one() == 1
    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        connection.execute("SELECT 1")


def test_the_clock_is_aware_utc_and_goes_on_inside_a_transaction(database: Database) -> None:
    with database.write() as tx:
        first = database.now(tx)
        threading.Event().wait(0.01)
        second = database.now(tx)
    assert first.utcoffset() == timedelta(0)
    assert first < second
    assert abs(second - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_test_moves_the_clock(migrated_database_url: str) -> None:
    moved = Database(migrated_database_url, clock=lambda: NOW)
    with moved.read() as tx:
        assert moved.now(tx) == NOW
    moved.close()


@given(st.datetimes(timezones=st.just(UTC)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_instants_come_back_to_the_microsecond(database: Database, instant: datetime) -> None:
    with database.write() as tx:
        tx.execute(t.people.delete())
        people.add(tx, RITA, now=instant)
        assert tx.execute(select(t.people.c.created_at)).scalar_one() == instant


def test_an_instant_without_a_zone_is_never_stored(database: Database) -> None:
    with pytest.raises(Exception, match="offset-naive"), database.write() as tx:
        people.add(tx, RITA, now=NOW.replace(tzinfo=None))


@given(json_objects)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_json_comes_back_with_type_and_precision(database: Database, value: dict[str, Any]) -> None:
    with database.write() as tx:
        tx.execute(t.facts.delete())
        tx.execute(insert(t.facts).values(name="f", value=value))
        found = tx.execute(select(t.facts.c.value)).scalar_one()
    assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


_FORK = """
import os, sys
from clearance.errors import SettingsError
from clearance.store.database import Database
database = Database(sys.argv[1])
with database.read() as tx:
    pass
if os.fork() == 0:
    try:
        with database.read() as tx:
            os._exit(1)
    except SettingsError:
        os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]))
database.close()
"""


def test_a_child_of_a_fork_may_not_use_its_parent_s_connections(migrated_database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORK, migrated_database_url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG,
    )
    assert done.stdout == "7\n"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("mysql://localhost/x", "mysql is neither"),
        ("not a url", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_database_that_cannot_serve_is_refused_with_a_sentence(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Database(url)


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "clearance.db"
    file.write_text("this is no database, but a text of some length" * 100)
    database = Database(f"sqlite:///{file}")
    with pytest.raises(StoreError, match="not a database"):
        database.migrate()
    database.close()
    assert file.read_text().startswith("this is no database")


def test_what_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with clearance.open(home=tmp_path / "workspace", person="ann", worker=False) as opened:
            opened.checkpointer()
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in (opened.home, *opened.home.glob("*.db*"))
            }
    finally:
        os.umask(before)
    assert modes.pop("workspace") == 0o700
    assert {"clearance.db", "checkpoints.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_a_server_that_is_not_there_is_a_store_error(tmp_path: Path) -> None:
    database = Database(f"postgresql:///nothing?host={tmp_path}")
    with pytest.raises(StoreError, match="cannot be used now"):
        database.migrate()
    database.close()


def test_a_connection_that_was_cut_is_a_store_error_and_the_next_one_works(
    new_postgres_database: Callable[[], str],
) -> None:
    database = Database(new_postgres_database())
    database.migrate()
    with pytest.raises(StoreError), database.write() as tx:
        tx.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    with database.read() as tx:
        assert people.nobody(tx)
    database.close()


def test_retrying_tries_again_only_while_the_database_is_away() -> None:
    tried: list[int] = []

    def work() -> str:
        tried.append(1)
        if len(tried) < 3:
            raise StoreError("away")
        return "done"

    assert retrying(work, pause=0.001) == "done"
    assert len(tried) == 3
    with pytest.raises(StoreError):
        retrying(lambda: (_ for _ in ()).throw(StoreError("away")), tries=2, pause=0.001)
    with pytest.raises(ZeroDivisionError):
        retrying(lambda: 1 / 0, pause=100)


def test_a_writer_on_sqlite_waits_for_the_other_one(tmp_path: Path, databases: Databases) -> None:
    database = Database(databases.migrated("sqlite", tmp_path))
    other = sqlite3.connect(str(database.path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = threading.Event()

    def write() -> None:
        with database.write() as tx:
            people.add(tx, RITA, now=NOW)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not done.wait(0.1)
    other.execute("COMMIT")
    assert done.wait(LONG)
    thread.join()
    other.close()
    database.close()
