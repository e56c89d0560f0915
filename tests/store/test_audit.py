"""The trail's rows on both databases: numbered without gaps, sealed, and a reader misses nothing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from clearance.audit import AuditKind, Entry, Seal, entry_hash
from clearance.errors import StoreError
from clearance.store import audit
from clearance.store.database import Database
from tests.rules.trails import NOTARY
from tests.store.writers import (
    follow,
    repeating,
    write_from_threads,
    write_one,
    writing_processes,
)

NOW = datetime(2026, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    opened = Database(migrated_database_url)
    yield opened
    opened.close()


def _number(database: Database, **how: Any) -> int:
    with database.write() as tx:
        return audit.number(tx, **how)


def _seal(database: Database, **how: Any) -> Seal | None:
    with database.write() as tx:
        return audit.seal(tx, NOTARY.private.sign, key_id=NOTARY.id, **{"now": NOW, **how})


def _read(database: Database, seq: int = 0, *, limit: int = 1000, **how: Any) -> list[Entry]:
    with database.read() as tx:
        return audit.read_after(tx, seq, limit=limit, **how)


def _is_whole(entries: list[Entry], count: int) -> bool:
    """Whether a reader saw each entry once, in the order of numbers, and each transaction in its order."""
    parts: dict[str, list[int]] = {}
    for entry in entries:
        parts.setdefault(entry.subject, []).append(entry.facts["part"])
    return (
        [entry.seq for entry in entries] == list(range(1, count + 1))
        and len({entry.id for entry in entries}) == count
        and all(each == [0, 1] for each in parts.values())
    )


def test_an_entry_reads_back_as_it_was_written(database: Database) -> None:
    facts = {"exact": [2**70, 7, 7.0], "text": "a\u2028é", "none": None}
    with database.write() as tx:
        written = audit.write(tx, AuditKind.REVIEW_ASKED, "run-1/1/1", actor="Zoë", now=NOW, facts=facts)
    _number(database)
    (read,) = _read(database)
    assert (read.seq, read.hash, entry_hash(read)) == (1, written.hash, written.hash)
    assert (read.time, read.kind, read.facts) == (NOW, "review:asked", facts)


def test_an_entry_is_not_read_before_it_has_a_number(database: Database) -> None:
    write_one(database, "run-1")
    assert _read(database) == []
    with database.read() as tx:
        assert audit.standing(tx).waiting


def test_an_entry_of_a_transaction_that_failed_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as tx:
            audit.write(tx, AuditKind.CALL_HELD, "gone", actor="ann", now=NOW)
            raise RuntimeError("no")

    write_one(database, "before")
    with pytest.raises(RuntimeError):
        fail()
    write_one(database, "after")
    assert _number(database) == 2
    assert [(entry.seq, entry.subject) for entry in _read(database)] == [(1, "before"), (2, "after")]


def test_entries_of_one_transaction_keep_their_order(database: Database) -> None:
    write_one(database, "run-1", parts=40)
    _number(database)
    assert [entry.facts["part"] for entry in _read(database)] == list(range(40))


def test_a_batch_is_bounded_and_the_next_goes_on(database: Database) -> None:
    write_one(database, "run-1", parts=10)
    assert [_number(database, limit=4) for _ in range(4)] == [4, 4, 2, 0]
    assert [(entry.seq, entry.facts["part"]) for entry in _read(database)] == [
        (part + 1, part) for part in range(10)
    ]


def test_only_recent_entries_are_numbered_when_so_asked(database: Database) -> None:
    for age in (0, 60):
        with database.write() as tx:
            audit.write(tx, AuditKind.CALL_HELD, f"{age}", actor="a", now=NOW - timedelta(seconds=age))
    assert _number(database, since=NOW - timedelta(seconds=30)) == 1
    assert _number(database) == 1
    assert [entry.subject for entry in _read(database)] == ["0", "60"]


def test_a_reader_goes_on_after_what_it_has_seen(database: Database) -> None:
    write_one(database, "run-1", parts=5)
    _number(database)
    assert [entry.seq for entry in _read(database, 2, limit=2)] == [3, 4]
    assert _read(database, 5) == []


def test_a_reader_may_ask_for_kinds_and_a_subject(database: Database) -> None:
    for kind, subject in (
        (AuditKind.RUN_QUEUED, "run-1"),
        (AuditKind.RUN_DONE, "run-1"),
        (AuditKind.RUN_DONE, "run-2"),
    ):
        with database.write() as tx:
            audit.write(tx, kind, subject, actor="ann", now=database.now(tx))
    _number(database)
    assert [entry.seq for entry in _read(database, kinds=[AuditKind.RUN_DONE])] == [2, 3]
    assert [entry.seq for entry in _read(database, subject="run-1")] == [1, 2]
    assert [entry.seq for entry in _read(database, kinds={"run:done"}, subject="run-1")] == [2]
    assert _read(database, kinds=[]) == []


# --- many at once ---


def test_a_transaction_that_commits_late_is_not_missed(new_postgres_database: Callable[[], str]) -> None:
    database = Database(new_postgres_database())
    database.migrate()
    with database.write() as late:
        audit.write(late, AuditKind.CALL_HELD, "late", actor="ann", now=NOW)
        with database.write() as tx:
            audit.write(tx, AuditKind.CALL_HELD, "quick", actor="ann", now=NOW + timedelta(seconds=1))
        assert _number(database) == 1
        (seen,) = _read(database)
    assert _number(database) == 1
    assert [entry.subject for entry in _read(database, seen.seq or 0)] == ["late"]
    database.close()


def test_a_reader_misses_nothing_of_sixteen_threads(database: Database, migrated_database_url: str) -> None:
    count = 16 * 20 * 2
    with ThreadPoolExecutor(1) as reader, repeating(lambda: _number(database, limit=20)):
        seen = reader.submit(follow, database, until=count)
        write_from_threads(migrated_database_url, "threads", 16, 20)
        assert _is_whole(seen.result(timeout=60), count)


def test_a_reader_misses_nothing_of_two_processes_and_two_notaries(
    database: Database, migrated_database_url: str
) -> None:
    other = Database(migrated_database_url)
    count = 2 * 8 * 6 * 2
    with (
        writing_processes(migrated_database_url, processes=2, threads=8, transactions=6),
        repeating(lambda: _number(database, limit=7)),
        repeating(lambda: _number(other, limit=7)),
    ):
        seen = follow(database, until=count)
    other.close()
    assert _is_whole(seen, count)


# --- seals ---


def test_a_seal_covers_what_has_a_number_and_no_seal(database: Database) -> None:
    assert _seal(database) is None
    write_one(database, "run-1", parts=3)
    assert _seal(database) is None
    _number(database)
    first = _seal(database)
    assert first is not None
    assert (first.number, first.first_seq, first.last_seq, first.time) == (1, 1, 3, NOW)
    assert _seal(database) is None
    write_one(database, "run-2", parts=2)
    _number(database)
    second = _seal(database)
    assert second is not None
    assert (second.number, second.first_seq, second.last_seq) == (2, 4, 5)
    with database.read() as tx:
        assert audit.read_seals(tx, 0, limit=10) == [first, second]
        assert audit.read_seals(tx, 1, limit=10) == [second]
        assert audit.standing(tx) == audit.Standing(5, 2, 5, NOW, waiting=False)


def test_a_seal_is_bounded(database: Database) -> None:
    write_one(database, "run-1", parts=5)
    _number(database)
    made = [_seal(database, limit=2) for _ in range(4)]
    assert [(seal.first_seq, seal.last_seq) for seal in made if seal] == [(1, 2), (3, 4), (5, 5)]


def test_a_seal_waits_until_the_last_one_is_old_enough(database: Database) -> None:
    every = timedelta(seconds=1)
    made = []
    for milliseconds in (0, 999, 1000, -500_000):
        write_one(database, "run-1")
        _number(database)
        made.append(_seal(database, now=NOW + timedelta(milliseconds=milliseconds), every=every))
    assert [seal is not None for seal in made] == [True, False, True, True]


# --- a database that somebody else wrote to ---


def _execute(database: Database, statement: str) -> None:
    with database.write() as tx:
        tx.execute(text(statement))


def test_a_number_that_is_there_already_stops_the_numbering(database: Database) -> None:
    write_one(database, "run-1", parts=2)
    _number(database, limit=1)
    _execute(database, "UPDATE notary SET last_seq = 0")
    with pytest.raises(StoreError, match="changed from outside"):
        _number(database)


def test_a_seal_that_is_gone_stops_the_sealing(database: Database) -> None:
    write_one(database, "run-1", parts=2)
    _number(database)
    _seal(database, limit=1)
    _execute(database, "DELETE FROM seals")
    with pytest.raises(StoreError, match=r"Seal 1 .* changed from outside"):
        _seal(database)


@pytest.mark.parametrize("change", ["DELETE FROM seals", "UPDATE seals SET time = time + 1"])
def test_a_seal_that_is_not_as_the_caller_made_it_stops_the_sealing(database: Database, change: str) -> None:
    write_one(database, "run-1", parts=2)
    _number(database)
    made = _seal(database, limit=1)
    _execute(database, change)
    _execute(database, "UPDATE notary SET last_seal = (SELECT count(*) FROM seals)")
    with pytest.raises(StoreError, match=r"Seal 1 .* changed from outside"):
        _seal(database, known=made)


@pytest.mark.parametrize("work", [_number, _seal])
def test_a_lost_row_of_the_notary_is_said(database: Database, work: Callable[[Database], object]) -> None:
    _execute(database, "DELETE FROM notary")
    with pytest.raises(StoreError, match="notary's row"):
        work(database)


def test_a_batch_is_found_by_its_index_and_not_sorted(database: Database) -> None:
    write_one(database, "run-1", parts=300)
    statements: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, values: Any, *___: Any) -> None:
        statements.append((statement, values))

    with database.write() as tx:
        event.listen(tx, "before_cursor_execute", note)
        audit.number(tx, limit=10)
        event.remove(tx, "before_cursor_execute", note)
    with database.write() as tx:
        plan = _plan(tx, next(each for each in statements if "UPDATE entries" in each[0]))
    assert "entries_unnumbered" in plan
    assert "Sort Key" not in plan
    assert "TEMP B-TREE" not in plan


def _plan(tx: Connection, statement: tuple[str, Any]) -> str:
    explain = "EXPLAIN QUERY PLAN" if tx.dialect.name == "sqlite" else "EXPLAIN"
    if tx.dialect.name == "postgresql":
        tx.execute(text("SET LOCAL enable_sort = off"))
    rows = tx.exec_driver_sql(f"{explain} {statement[0]}", statement[1])
    return "\n".join(str(row[-1]) for row in rows)
