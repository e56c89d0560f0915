"""The checkpoints in the PostgreSQL database of our tables; a thread's row is its fence."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow, dict_row

from clearance.adapters.checkpoints import (
    Fence,
    FencedSaver,
    HeldBack,
    of_thread,
    strict,
    together,
    translated,
    writing,
)
from clearance.adapters.superseded import Saved, Tables, saved_as
from clearance.killpoints import at

_SETUP_LOCK = 7255442


class FencedPostgresSaver(FencedSaver, PostgresSaver):
    """See FencedSaver. The fence is read FOR SHARE: no claim comes between it and the write."""

    # Built concurrently, the indexes of processes that start at once wait for each other, and one
    # that fails stays behind half built. `setup` makes everything in one transaction instead.
    MIGRATIONS = [  # noqa: RUF012 (declared without ClassVar above)
        step.replace(" CONCURRENTLY", "") for step in PostgresSaver.MIGRATIONS
    ]

    def __init__(self, conninfo: str) -> None:
        self._line = _Line(conninfo)
        with translated(psycopg.OperationalError):
            super().__init__(self._line.connection(), serde=strict())
        self.fence = Fence()
        self.held_back = HeldBack()

    def setup(self) -> None:
        """Make the tables where they are missing; safe when several processes start at once."""
        with translated(psycopg.OperationalError):
            connection = self._line.connection()
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
                super().setup()

    def raise_fence(self, thread_id: str, fence: int) -> None:
        """Hold the fence that a claim gave: after the claim, before the thread's state is read.

        Raises FenceLostError when another claim was made meanwhile.
        """
        self.fence.hold(thread_id, fence)
        with of_thread(thread_id), self._cursor(pipeline=True):
            pass  # opening it is the check

    def close(self) -> None:
        """Close the connection. The saver is not used afterwards."""
        self._line.close()

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:
        """Open a cursor; with `pipeline`, in a fenced transaction that is committed at the end."""
        if (shared := together()) is not None:
            yield shared
            return
        with self.lock, translated(psycopg.OperationalError):
            connection = self._line.connection()
            if not pipeline:
                with connection.cursor(binary=True) as cursor:
                    yield cursor
                return
            with (
                connection.pipeline(),
                connection.transaction(),
                connection.cursor(binary=True) as cursor,
            ):
                self._check_fence(cursor, writing())
                yield cursor
                at("in-checkpoint")

    def _transaction(self) -> AbstractContextManager[psycopg.Cursor[DictRow]]:
        return self._cursor(pipeline=True)

    @contextmanager
    def _tables(self) -> Iterator[Tables]:
        with self._cursor(pipeline=True) as cursor:
            yield _PostgresTables(cursor)

    def _stored_fence(self, cursor: psycopg.Cursor[DictRow], thread_id: str) -> int | None:
        cursor.execute("SELECT fence FROM threads WHERE id = %s FOR SHARE", (thread_id,))
        row = cursor.fetchone()
        return row["fence"] if row else None


class _PostgresTables:
    """A transaction on PostgreSQL, where larger values lie beside the checkpoints, by version."""

    def __init__(self, cursor: psycopg.Cursor[DictRow]) -> None:
        self._cursor = cursor

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        named = statement.replace(" writes ", " checkpoint_writes ").replace("?", "%s")
        self._cursor.execute(named.encode(), values)
        if not statement.startswith("SELECT"):
            return []
        return [tuple(row.values()) for row in self._cursor.fetchall()]

    def saved(self, thread_id: str, namespace: str) -> list[Saved]:
        rows = self.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, checkpoint FROM checkpoints "
            "WHERE thread_id = ? AND checkpoint_ns = ?",
            (thread_id, namespace),
        )
        values = self._values(thread_id, namespace)
        return [saved_as(key, parent, checkpoint, beside=values) for key, parent, checkpoint in rows]

    def forget_values(self, thread_id: str, namespace: str, kept: Sequence[Saved]) -> None:
        used = {value for saved in kept for value in saved.versions.items()}
        for value in sorted(self._values(thread_id, namespace) - used):
            self.execute(
                "DELETE FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ? "
                "AND channel = ? AND version = ?",
                (thread_id, namespace, *value),
            )

    def _values(self, thread_id: str, namespace: str) -> set[tuple[str, str]]:
        rows = self.execute(
            "SELECT channel, version FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ?",
            (thread_id, namespace),
        )
        return {(channel, version) for channel, version in rows}


class _Line:
    """The one connection of a saver and its copies, made again after it broke."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: psycopg.Connection[DictRow] | None = None

    def connection(self) -> psycopg.Connection[DictRow]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.Connection.connect(
                self._conninfo, autocommit=True, prepare_threshold=0, row_factory=dict_row
            )
            # A process stopped inside a transaction must not keep its locks for ever.
            self._connection.execute("SET idle_in_transaction_session_timeout = '10s'")
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
