"""The checkpoints in an SQLite file of their own, with the fences beside them."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from clearance.adapters.checkpoints import (
    Fence,
    FencedSaver,
    HeldBack,
    strict,
    together,
    translated,
    writing,
)
from clearance.adapters.superseded import Saved, Tables, saved_as
from clearance.killpoints import at
from clearance.store.database import PATIENCE, make_private

# Decodes a checkpoint's row, but none of the values in it: only their names are wanted.
_NAMES = JsonPlusSerializer(__unpack_ext_hook__=lambda _code, _data: None)


class FencedSqliteSaver(FencedSaver, SqliteSaver):
    """See FencedSaver. The fences are a table here: two SQLite files have no common commit."""

    def __init__(self, path: Path) -> None:
        make_private(path)
        with translated(sqlite3.OperationalError):
            # Transactions are begun by name: sqlite3's own would take the write lock too late.
            connection = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA synchronous = FULL")
        super().__init__(connection, serde=strict())
        self.fence = Fence()
        self.held_back = HeldBack()

    def setup(self) -> None:
        """Make the tables where they are missing; safe when several processes start at once."""
        if self.is_setup:
            return
        with translated(sqlite3.OperationalError):
            super().setup()
            self.is_setup = False
            self.conn.execute(
                "CREATE TABLE IF NOT EXISTS fences "
                "(thread TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID"
            )
        self.is_setup = True

    def raise_fence(self, thread_id: str, fence: int) -> None:
        """Hold the fence that a claim gave: after the claim, before the thread's state is read.

        Raises FenceLostError when another claim was made meanwhile.
        """
        self.fence.hold(thread_id, fence)
        # Not forced to the disk: a failure of the machine ends every process that it could keep out.
        self.conn.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO fences VALUES (?, ?) ON CONFLICT (thread) "
                    "DO UPDATE SET fence = max(fence, excluded.fence)",
                    (thread_id, fence),
                )
                self._check_fence(cursor, thread_id)
        finally:
            self.conn.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Open a cursor; with `transaction`, in a fenced one that is committed at the end."""
        if (shared := together()) is not None:
            yield shared
            return
        with self.lock, translated(sqlite3.OperationalError):
            self.setup()
            cursor = self.conn.cursor()
            try:
                if transaction:
                    cursor.execute("BEGIN IMMEDIATE")
                    self._check_fence(cursor, writing())
                yield cursor
                if transaction:
                    at("in-checkpoint")
                    cursor.execute("COMMIT")
            finally:
                if transaction and self.conn.in_transaction:
                    self.conn.rollback()
                cursor.close()

    def close(self) -> None:
        """Close the connection. The saver is not used afterwards."""
        self.conn.close()

    def _transaction(self) -> AbstractContextManager[sqlite3.Cursor]:
        return self.cursor()

    @contextmanager
    def _tables(self) -> Iterator[Tables]:
        with self.cursor() as cursor:
            yield _SqliteTables(cursor)

    def _stored_fence(self, cursor: sqlite3.Cursor, thread_id: str) -> int | None:
        rows = cursor.execute("SELECT fence FROM fences WHERE thread = ?", (thread_id,)).fetchall()
        return rows[0][0] if rows else None


class _SqliteTables:
    """A transaction on SQLite, where a checkpoint's values lie in its own row."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._cursor.execute(statement, values).fetchall()

    def saved(self, thread_id: str, namespace: str) -> list[Saved]:
        rows = self.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint FROM checkpoints "
            "WHERE thread_id = ? AND checkpoint_ns = ?",
            (thread_id, namespace),
        )
        return [saved_as(key, parent, _NAMES.loads_typed((kind, row))) for key, parent, kind, row in rows]

    def forget_values(self, thread_id: str, namespace: str, kept: Sequence[Saved]) -> None:
        pass
