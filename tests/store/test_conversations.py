"""Conversations are listed by what was said in them last, page by page, and nothing else is one."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from clearance.run import Run, RunState
from clearance.store import runs
from clearance.store.conversations import latest_conversations
from clearance.store.database import Database
from clearance.store.listing import Dated
from clearance.store.runs import BELOW

NOW = datetime(2026, 3, 2, 9, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def database(migrated_database_url: str) -> Iterator[Database]:
    """A database with the product's tables."""
    made = Database(migrated_database_url)
    yield made
    made.close()


def _said(
    database: Database,
    thread_id: str,
    minute: int,
    *,
    by: str = "ann",
    program: str = "chat",
    caller_driven: bool = False,
) -> None:
    at = NOW + timedelta(minutes=minute)
    with database.write() as tx:
        runs.ensure_thread(tx, thread_id, program=program, now=at, caller_driven=caller_driven)
        run_id = f"{thread_id}-{minute}"
        runs.insert_run(
            tx, Run(run_id, thread_id, program, RunState.QUEUED, by, f"said at {minute}", created_at=at)
        )
        runs.end_run(tx, run_id, list(RunState)[3 + minute % 3], now=at)


def _pages(database: Database, *, person: str | None, limit: int = 2) -> list[list[str]]:
    pages: list[list[str]] = []
    after: Dated | None = None
    with database.read() as tx:
        while True:
            found, after = latest_conversations(
                tx, with_person=person, without=["research"], after=after, limit=limit
            )
            pages.append([each.id for each in found])
            if after is None:
                return pages


def test_the_one_written_in_last_comes_first_and_each_comes_once(database: Database) -> None:
    for minute, thread in enumerate(["a", "b", "c", "d", "a", "e", "b"]):
        _said(database, thread, minute)
    assert _pages(database, person=None) == [["b", "e"], ["a", "d"], ["c"]]
    with database.read() as tx:
        [first], _ = latest_conversations(tx, with_person=None, after=None, limit=1)
    assert (first.first, first.newest.input) == ("said at 1", "said at 6")


def test_those_of_one_person_are_those_in_which_they_asked_for_anything(database: Database) -> None:
    _said(database, "mine", 1)
    _said(database, "both", 2)
    _said(database, "both", 3, by="eva")
    _said(database, "theirs", 4, by="eva")
    assert _pages(database, person="ann") == [["both", "mine"]]
    assert _pages(database, person="eva") == [["theirs", "both"]]
    assert _pages(database, person="bob") == [[]]


def test_two_turns_of_one_instant_are_one_conversation(database: Database) -> None:
    at = NOW
    with database.write() as tx:
        runs.ensure_thread(tx, "t", program="chat", now=at)
        for run_id in ("r2", "r1"):
            runs.insert_run(tx, Run(run_id, "t", "chat", RunState.QUEUED, "ann", run_id, created_at=at))
            runs.end_run(tx, run_id, RunState.DONE, now=at)
        newest = runs.list_runs(tx, thread_id="t", limit=1)[0]
        found, _ = latest_conversations(tx, with_person=None, after=None, limit=9)
    assert [each.newest for each in found] == [newest]


def test_calls_of_agents_elsewhere_and_what_callers_advance_are_no_conversations(database: Database) -> None:
    _said(database, "talk", 1)
    _said(database, "bot:1", 2, program="agent:bot")
    _said(database, "graph", 3, caller_driven=True)
    _said(database, f"talk{BELOW}inner", 4)
    _said(database, "run", 5, program="research")
    assert _pages(database, person=None) == [["talk"]]
