"""The watcher of commits: it wakes who waits, whoever has committed, and loses none."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from clearance.store import facts
from clearance.store.database import Database
from clearance.web.changes import Changes

LONG = 30.0


def _watched(url: str, body: Callable[[Changes, Database], Awaitable[None]]) -> None:
    """Run something beside a watcher of one database; it commits through other connections."""

    async def run() -> None:
        mine, other = Database(url), Database(url)
        changes = Changes(mine)
        changes.start()
        try:
            await body(changes, other)
        finally:
            changes.stop()
            mine.close()
            other.close()

    asyncio.run(run())


def _commit(database: Database) -> None:
    with database.write() as tx:
        facts.put(tx, "watched", time.monotonic())


def test_a_commit_elsewhere_wakes_everybody_who_waits(migrated_database_url: str) -> None:
    async def body(changes: Changes, other: Database) -> None:
        await changes.wait(LONG, since=0)
        count = changes.count
        waiting = [asyncio.create_task(changes.wait(LONG, since=count)) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.to_thread(_commit, other)
        done, _ = await asyncio.wait(waiting, timeout=LONG / 2)
        assert len(done) == len(waiting)
        assert changes.count > count

    _watched(migrated_database_url, body)


def test_what_was_committed_since_the_look_is_not_waited_for(migrated_database_url: str) -> None:
    async def body(changes: Changes, other: Database) -> None:
        await changes.wait(LONG, since=0)
        count = changes.count
        await asyncio.to_thread(_commit, other)
        await changes.wait(LONG, since=count)
        began = time.monotonic()
        await changes.wait(LONG, since=count)
        assert time.monotonic() - began < LONG / 2

    _watched(migrated_database_url, body)


def test_a_wait_ends_when_its_time_is_over(migrated_database_url: str) -> None:
    async def body(changes: Changes, _: Database) -> None:
        await changes.wait(LONG, since=0)
        began = time.monotonic()
        await changes.wait(0.05, since=changes.count)
        assert time.monotonic() - began < LONG / 2

    _watched(migrated_database_url, body)


def test_once_streams_are_to_end_nobody_waits(migrated_database_url: str) -> None:
    async def body(changes: Changes, _: Database) -> None:
        await changes.wait(LONG, since=0)
        waiting = asyncio.create_task(changes.wait(LONG, since=changes.count))
        await asyncio.sleep(0)
        changes.end()
        await asyncio.wait_for(waiting, LONG / 2)
        await asyncio.wait_for(changes.wait(LONG), LONG / 2)

    _watched(migrated_database_url, body)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_last_number_of_the_trail_is_known_after_a_commit(migrated_database_url: str, rows: int) -> None:
    async def body(changes: Changes, other: Database) -> None:
        await changes.wait(LONG, since=0)
        await asyncio.to_thread(_number, other, rows)
        while changes.last_seq < rows:
            await asyncio.wait_for(changes.wait(LONG, since=changes.count), LONG / 2)
        assert changes.last_seq == rows

    _watched(migrated_database_url, body)


def _number(database: Database, rows: int) -> None:
    from clearance.audit import AuditKind
    from clearance.store import audit

    with database.write() as tx:
        for number in range(rows):
            audit.write(tx, AuditKind.RUN_DONE, f"r{number}", actor="ann", now=database.now(tx))
    with database.write() as tx:
        audit.number(tx)
