"""LangGraph's checkpoints, written only by the segment that holds the thread.

A worker that was frozen and thaws goes on writing where it stopped, over what its successor wrote.
So every write checks, in its own transaction, that the thread's fence is still the one that the
segment got with its claim. On SQLite the checkpoints are a file of their own, with the fences
beside them; on PostgreSQL they lie in the database of our tables, where the thread's row is the
fence.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy.engine import make_url

from clearance.adapters.superseded import Tables, delete_superseded
from clearance.errors import FenceLostError, StoreError
from clearance.store.database import retrying

FILE_NAME = "checkpoints.db"
_MAX_HELD = 1_000
# Whose transaction it is. LangGraph calls savers from threads of its own, each call in one of them,
# so a variable of the context is what a call and the cursor it opens have in common.
_writing: ContextVar[str | None] = ContextVar("clearance_writing", default=None)
# The cursor of the one transaction in which this thread stores several writes.
_together: ContextVar[Any] = ContextVar("clearance_together", default=None)


class Fence:
    """The fences that a worker thread holds. LangGraph copies savers; the copies share this one."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def hold(self, thread_id: str, fence: int) -> None:
        """Note what a claim gave. The oldest notes go: their segments ended long ago."""
        self._held.pop(thread_id, None)
        self._held[thread_id] = fence
        while len(self._held) > _MAX_HELD:
            del self._held[next(iter(self._held))]

    def held(self, thread_id: str) -> int | None:
        """Return the fence held for a thread; None where no claim was made."""
        return self._held.get(thread_id)


class HeldBack:
    """Writes of segments under way that are not stored yet, in their order. Copies of a saver share it."""

    def __init__(self) -> None:
        self._writes: dict[str, list[Callable[[], object]]] = {}
        self._lock = threading.Lock()

    def begin(self, thread_id: str) -> None:
        """Hold back what is written to a thread from now on."""
        with self._lock:
            self._writes[thread_id] = []

    def add(self, thread_id: str, write: Callable[[], object]) -> bool:
        """Hold a write back; False for a thread where nothing is."""
        with self._lock:
            if thread_id not in self._writes:
                return False
            self._writes[thread_id].append(write)
            return True

    def taken(self, thread_id: str) -> list[Callable[[], object]]:
        """Return what is held back, to be stored now."""
        with self._lock:
            found = self._writes.get(thread_id, [])
            if found:
                self._writes[thread_id] = []
            return found

    def end(self, thread_id: str) -> list[Callable[[], object]]:
        """Hold nothing back any more, and return what still is."""
        with self._lock:
            return self._writes.pop(thread_id, [])


class FencedSaver(BaseCheckpointSaver[str], ABC):
    """A saver for one worker thread: one connection, one segment at a time.

    After `raise_fence`, whatever changes that thread here raises `FenceLostError` and leaves
    nothing behind as soon as another claim was made. For a thread without a claim it is an
    ordinary saver, so a graph used by hand needs no engine. Errors of the database are
    `StoreError`; after a lost connection the next call connects again.
    """

    fence: Fence
    held_back: HeldBack

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint. What begins a turn is stored at once, for others to see."""
        thread_id = str(config["configurable"]["thread_id"])
        later = partial(super().put, config, checkpoint, metadata.copy(), new_versions)
        if not self.held_back.add(thread_id, later):
            with of_thread(thread_id):
                return super().put(config, checkpoint, metadata, new_versions)
        if metadata.get("source") == "input":
            self.store(thread_id)
        namespace = config["configurable"]["checkpoint_ns"]
        names = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint["id"]}
        return {"configurable": names}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save what a task wrote."""
        thread_id = str(config["configurable"]["thread_id"])
        later = partial(super().put_writes, config, list(writes), task_id, task_path)
        if not self.held_back.add(thread_id, later):
            with of_thread(thread_id):
                super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread."""
        with of_thread(thread_id):
            super().delete_thread(thread_id)

    def delete_superseded(self, thread_id: str) -> None:
        """Delete what only older states of the thread need; its present state stays as it is.

        May be called whenever no segment of the thread runs, parked or ended. Takes as long as what
        was added since the last time, whatever the length of the thread. What is held back is stored first.
        """
        with of_thread(thread_id), self._in_one():
            for write in self.held_back.taken(thread_id):
                write()
            with self._tables() as tables:
                delete_superseded(tables, thread_id)

    @contextmanager
    def holding_back(self, thread_id: str) -> Iterator[None]:
        """Within it, what a segment writes waits for `store`, and is stored in one transaction.

        A segment that is lost is done again from what was stored; tools are not, they have the ledger. So
        only what others rely on has to be stored: the state that a question is about, and the last one.
        """
        self.held_back.begin(thread_id)
        try:
            yield
        finally:
            self._store(thread_id, self.held_back.end(thread_id))

    def store(self, thread_id: str) -> None:
        """Store what is held back."""
        self._store(thread_id, self.held_back.taken(thread_id))

    def _store(self, thread_id: str, writes: Sequence[Callable[[], object]]) -> None:
        if writes:
            with of_thread(thread_id), self._in_one():
                for write in writes:
                    write()

    @contextmanager
    def _in_one(self) -> Iterator[None]:
        """Let all that this thread writes inside be one fenced transaction."""
        with self._transaction() as cursor:
            token = _together.set(cursor)
            try:
                yield
            finally:
                _together.reset(token)

    @abstractmethod
    def raise_fence(self, thread_id: str, fence: int) -> None:
        """Hold the fence that a claim gave: after the claim, before the thread's state is read.

        Raises FenceLostError when another claim was made meanwhile.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. The saver is not used afterwards."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """Open a fenced transaction, and give its cursor."""

    @abstractmethod
    def _tables(self) -> AbstractContextManager[Tables]:
        """Open a fenced transaction."""

    @abstractmethod
    def _stored_fence(self, cursor: Any, thread_id: str) -> int | None:
        """Return the thread's fence as it cannot change before the transaction ends."""

    def _check_fence(self, cursor: Any, thread_id: str | None) -> None:
        """Stop a segment whose thread has another fence than the segment holds."""
        held = None if thread_id is None else self.fence.held(thread_id)
        if thread_id is None or held is None:
            return
        if self._stored_fence(cursor, thread_id) != held:
            raise FenceLostError(thread_id)


def open_checkpointer(url: str, *, folder: Path | None = None) -> FencedSaver:
    """Return a saver for one worker thread, ready for use.

    For `sqlite:///FILE` it is the file `checkpoints.db` beside that file, or in `folder`; for
    `postgresql+psycopg://…` the same database, which has our tables already.

    Raises StoreError when the database cannot be used.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        from clearance.adapters.checkpoints_sqlite import FencedSqliteSaver

        file = (folder or Path(parsed.database or "").parent) / FILE_NAME
        saver = FencedSqliteSaver(file)
        return _made_ready(saver, saver.setup)
    from clearance.adapters.checkpoints_postgres import FencedPostgresSaver

    plain = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
    shared = FencedPostgresSaver(plain)
    return _made_ready(shared, shared.setup)


def _made_ready(saver: FencedSaver, setup: Callable[[], None]) -> FencedSaver:
    try:
        retrying(setup)
    except BaseException:
        saver.close()
        raise
    return saver


# --- for the two savers ---


@contextmanager
def of_thread(thread_id: str) -> Iterator[None]:
    """Let the transactions opened inside belong to a thread."""
    token = _writing.set(str(thread_id))
    try:
        yield
    finally:
        _writing.reset(token)


def writing() -> str | None:
    """Return the thread that a transaction opened now belongs to."""
    return _writing.get()


def together() -> Any:
    """Return the cursor of the transaction that this thread has open for several writes, if it has."""
    return _together.get()


@contextmanager
def translated(kind: type[Exception]) -> Iterator[None]:
    """Raise the driver's errors of this kind as StoreError, without statement and values."""
    try:
        yield
    except kind as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StoreError(f"The checkpoints cannot be used now: {reason}") from error


def strict() -> JsonPlusSerializer:
    """Read back plain values and messages only: a stored name never makes a module be imported."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)
