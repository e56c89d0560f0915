"""The trail in a database that somebody wrote to by SQL: what was done is located, there and in an export."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from clearance.export import export_lines, verify_export
from clearance.proof import Report, verify
from clearance.store import audit
from clearance.store.database import Database
from clearance.store.trail import trail
from clearance.tampering import ProblemKind
from tests.databases import Databases
from tests.rules.trails import NOTARY
from tests.store.writers import repeating, write_many, write_one

ALTERED, MISSING, INSERTED = ProblemKind.ALTERED, ProblemKind.MISSING, ProblemKind.INSERTED
CUT_OFF, BROKEN = ProblemKind.CUT_OFF, ProblemKind.SEAL_BROKEN
START = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database whose clock goes a second a look; entries 1-3, 4-6 and 7-9 are sealed, 10 and 11 are not."""
    seconds = itertools.count()
    opened = Database(migrated_database_url, clock=lambda: START + timedelta(seconds=next(seconds)))
    for number, parts in enumerate((3, 3, 3, 2)):
        write_one(opened, f"run-{number}", parts=parts)
        with opened.write() as tx:
            audit.number(tx)
        if parts == 3:
            seal(opened)
    yield opened
    opened.close()


def seal(database: Database) -> None:
    """Seal what has a number."""
    with database.write() as tx:
        audit.seal(tx, NOTARY.private.sign, key_id=NOTARY.id, now=database.now(tx))


def _check(database: Database, *, head: str | None = None) -> Report:
    stored = trail(database)
    return verify(stored.entries, stored.seals, public_key=NOTARY.pem, extent=stored.extent, expect_head=head)


def _check_export(database: Database) -> Report:
    stored = trail(database)
    lines = export_lines(stored.entries, stored.seals, extent=stored.extent)
    return verify_export(lines, public_key=NOTARY.pem)


def _execute(database: Database, *statements: str) -> None:
    with database.write() as tx:
        for statement in statements:
            tx.exec_driver_sql(statement)


def test_the_trail_is_authenticated_in_the_database_and_in_an_export(database: Database) -> None:
    for report in (_check(database), _check_export(database)):
        assert report.ok
        assert report.authenticated
        assert (report.entries, report.sealed_to, report.unsealed) == (11, 9, 2)


def test_an_empty_trail_is_right(migrated_database_url: str) -> None:
    database = Database(migrated_database_url)
    assert _check(database).ok
    assert _check_export(database).ok
    database.close()


def test_a_trail_of_many_pages_is_read_whole(database: Database) -> None:
    write_one(database, "long", parts=1200)
    with database.write() as tx:
        audit.number(tx, limit=2000)
    seal(database)
    assert _check(database).sealed_to == 1211


def test_a_trail_is_right_while_it_grows(database: Database) -> None:
    def work() -> None:
        with database.write() as tx:
            audit.number(tx, limit=5)
        seal(database)

    with repeating(work):
        for number in range(5):
            write_many(database, f"more-{number}", transactions=3)
            assert _check(database).ok
            assert _check_export(database).ok


def _copy_of_the_first(seq: int) -> str:
    columns = "time, kind, subject, actor, facts, hash"
    return f"INSERT INTO entries (id, seq, {columns}) SELECT 'x', {seq}, {columns} FROM entries WHERE seq = 1"


# What was done, by SQL that both databases know; the first problem: its kind, the entry and the seal.
DONE_BY_SQL = {
    "an entry altered": (["UPDATE entries SET actor = 'bob' WHERE seq = 5"], ALTERED, 5, None),
    "facts altered": (["UPDATE entries SET facts = '{\"part\":7}' WHERE seq = 5"], ALTERED, 5, None),
    "facts written another way": (
        ["UPDATE entries SET facts = '{\"part\": 1}' WHERE seq = 5"],
        ALTERED,
        5,
        None,
    ),
    "facts that are no JSON": (["UPDATE entries SET facts = '{' WHERE seq = 5"], ALTERED, 5, None),
    "facts that are no object": (["UPDATE entries SET facts = '[1]' WHERE seq = 5"], ALTERED, 5, None),
    "a time beyond time": (
        [f"UPDATE entries SET time = {2**62} WHERE seq = 5"],
        ALTERED,
        5,
        None,
    ),
    "the hash altered": (["UPDATE entries SET hash = 'x' WHERE seq = 5"], ALTERED, 5, None),
    "content and hash of another entry": (
        [
            "UPDATE entries SET id = 'x' WHERE seq = 6",
            "UPDATE entries SET seq = -1 WHERE seq = 5",
            "UPDATE entries SET seq = 5 WHERE seq = 6",
            "UPDATE entries SET seq = 6 WHERE seq = -1",
        ],
        ALTERED,
        5,
        None,
    ),
    "entries exchanged": (
        [
            "UPDATE entries SET seq = 100 WHERE seq = 5",
            "UPDATE entries SET seq = 5 WHERE seq = 6",
            "UPDATE entries SET seq = 6 WHERE seq = 100",
        ],
        ALTERED,
        4,
        2,
    ),
    "an entry deleted": (["DELETE FROM entries WHERE seq = 5"], MISSING, 5, None),
    "the number taken away": (["UPDATE entries SET seq = NULL WHERE seq = 5"], MISSING, 5, None),
    "an entry moved to the end": (["UPDATE entries SET seq = 12 WHERE seq = 5"], MISSING, 5, None),
    "an entry inserted at the end": (
        [_copy_of_the_first(12)],
        ALTERED,
        12,
        None,
    ),
    "an entry inserted before the first": (
        [_copy_of_the_first(0)],
        INSERTED,
        0,
        None,
    ),
    "the end deleted": (["DELETE FROM entries WHERE seq > 7"], CUT_OFF, 8, None),
    "the unsealed end deleted": (["DELETE FROM entries WHERE seq > 9"], CUT_OFF, 10, None),
    "the end deleted with its seal": (
        ["DELETE FROM entries WHERE seq > 6", "DELETE FROM seals WHERE number = 3"],
        CUT_OFF,
        7,
        None,
    ),
    "everything deleted": (["DELETE FROM entries", "DELETE FROM seals"], CUT_OFF, 1, None),
    "a seal altered": (["UPDATE seals SET last_seq = 5 WHERE number = 2"], BROKEN, 4, 2),
    "a seal that is none": ([f"UPDATE seals SET time = {2**62} WHERE number = 2"], ALTERED, None, 2),
    "a seal deleted": (["DELETE FROM seals WHERE number = 2"], MISSING, None, 2),
    "the last seal deleted": (["DELETE FROM seals WHERE number = 3"], CUT_OFF, None, 3),
}


@pytest.mark.parametrize(("done", "kind", "seq", "number"), DONE_BY_SQL.values(), ids=DONE_BY_SQL.keys())
def test_what_was_done_by_sql_is_located(
    database: Database, done: list[str], kind: ProblemKind, seq: int | None, number: int | None
) -> None:
    _execute(database, *done)
    for report in (_check(database), _check_export(database)):
        first = report.problems[0]
        assert (first.kind, first.seq, first.seal) == (kind, seq, number), report.problems


def test_the_notary_seals_what_was_removed_before_it_came_as_missing(database: Database) -> None:
    _execute(database, "DELETE FROM entries WHERE seq = 10")
    seal(database)
    first = _check(database).problems[0]
    assert (first.kind, first.seq) == (MISSING, 10)


def test_a_trail_that_was_shortened_in_every_way_is_found_by_the_head_kept_elsewhere(
    database: Database,
) -> None:
    head = _check(database).head
    _execute(
        database,
        "DELETE FROM entries WHERE seq > 6",
        "DELETE FROM seals WHERE number = 3",
        "UPDATE notary SET last_seq = 6, last_seal = 2",
    )
    assert _check(database).authenticated
    first = _check(database, head=head).problems[0]
    assert (first.kind, first.seal) == (CUT_OFF, 3)


@pytest.mark.parametrize("value", ["'five'", "5.5", "x'00'"])
@pytest.mark.parametrize("column", ["seq", "time", "facts", "hash"])
def test_a_value_of_another_type_which_sqlite_takes_is_found(
    databases: Databases, tmp_path: Path, column: str, value: str
) -> None:
    database = Database(databases.migrated("sqlite", tmp_path))
    write_one(database, "run-1", parts=3)
    with database.write() as tx:
        audit.number(tx)
    seal(database)
    _execute(database, f"UPDATE entries SET {column} = {value} WHERE seq = 2")
    for report in (_check(database), _check_export(database)):
        assert report.problems[0].seq == 2
    database.close()


def test_values_can_be_redacted_and_the_trail_stays_as_it_is(database: Database) -> None:
    with database.write() as tx:
        tx.execute(text("UPDATE reviewed_calls SET arguments = '{}', salt = ''"))
    assert _check(database).authenticated
