"""What is to happen after a commit happens once, after it, and not after a rollback."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from clearance.store.database import Database


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database of each kind."""
    opened = Database(migrated_database_url)
    yield opened
    opened.close()


def test_who_listens_for_a_run_hears_of_it_after_the_commit(database: Database) -> None:
    with database.listening("r1") as heard, database.listening("r2") as other:
        with database.write() as tx:
            database.announce(tx, "r1")
            assert not heard.is_set()
        assert heard.is_set()
        assert not other.is_set()


def test_what_is_rolled_back_is_not_announced_later_either(database: Database) -> None:
    with database.listening("r1") as heard:
        with suppress(ZeroDivisionError), database.write() as tx:
            database.announce(tx, "r1")
            raise ZeroDivisionError
        with database.write():
            pass
        assert not heard.is_set()


@pytest.mark.parametrize("hasty", [False, True])
def test_a_call_after_a_commit_comes_once(database: Database, hasty: bool) -> None:
    called: list[int] = []
    with database.write(hasty=hasty) as tx:
        database.after(tx, lambda: called.append(1))
    with database.write(hasty=hasty):
        pass
    assert called == [1]
