"""What the tests of LangGraph's savers and of cleared functions can ask for."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert, make_url, update

import clearance
from clearance.adapters.checkpoints import FencedSaver, open_checkpointer
from clearance.store.database import Database
from clearance.store.tables import threads
from clearance.workspace import Clearance

Opener = Callable[[], FencedSaver]


@pytest.fixture
def opened(migrated_database_url: str) -> Iterator[Opener]:
    """A call that opens one more saver of the same database, as each worker thread does."""
    savers: list[FencedSaver] = []

    def opener() -> FencedSaver:
        savers.append(open_checkpointer(migrated_database_url))
        return savers[-1]

    yield opener
    for saver in savers:
        saver.close()


@pytest.fixture
def saver(opened: Opener) -> FencedSaver:
    return opened()


@pytest.fixture
def claim(migrated_database_url: str) -> Iterator[Callable[[str], int]]:
    """A call that claims a thread, as the engine does, and returns the fence."""
    database = Database(migrated_database_url)

    def claimed(thread: str) -> int:
        with database.write() as tx:
            raised = update(threads).where(threads.c.id == thread)
            fence = tx.execute(raised.values(fence=threads.c.fence + 1).returning(threads.c.fence)).scalar()
            if fence is None:
                tx.execute(
                    insert(threads).values(
                        id=thread, program="chat", caller_driven=False, wanted=1, done=0, fence=1,
                        created_at=database.now(tx),
                    )
                )  # fmt: skip
            return int(fence or 1)

    yield claimed
    database.close()


@pytest.fixture
def rows(migrated_database_url: str) -> Callable[[], dict[str, list[tuple[Any, ...]]]]:
    """A call that returns every row of LangGraph's tables."""

    def read() -> dict[str, list[tuple[Any, ...]]]:
        url = make_url(migrated_database_url)
        if url.get_backend_name() == "sqlite":
            file = Path(url.database or "").with_name("checkpoints.db")
            with sqlite3.connect(file) as connection:
                tables = ("checkpoints", "writes")
                found = {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in tables}
            connection.close()
            return found
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain) as postgres:
            tables = ("checkpoints", "checkpoint_writes", "checkpoint_blobs")  # type: ignore[assignment]
            return {t: postgres.execute(f"SELECT * FROM {t}".encode()).fetchall() for t in tables}

    return read


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """A workspace without a worker, on each kind of database; functions find it as the one opened last."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def paid() -> list[Any]:
    """What the function of a test really did."""
    return []
