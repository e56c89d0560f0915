"""The embedded engine: a runner in the process, over the threads' own rows in SQLite.

A wake is the commit itself. In the process of the runner it starts the segment at once. Of other processes
SQLite tells through `data_version` that they have committed, and the runner looks which threads want
something. Threads of a process that died are freed by its slot's lock.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlalchemy import Connection

from clearance.engine import Advance
from clearance.engine.slots import Slot
from clearance.errors import StoreError
from clearance.store import runs
from clearance.store.database import Database

LOOK_EVERY = 0.02
"""Seconds between two looks at `data_version`, for commits of other processes; one of this process wakes."""
SWEEP_EVERY = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Working:
    """What a working engine starts segments with."""

    pool: ThreadPoolExecutor
    advance: Advance
    programs: Callable[[], tuple[str, ...]]


class EmbeddedEngine:
    """Delivers wakes on SQLite, to up to `threads` segments at a time in this process."""

    def __init__(self, database: Database, *, slots: Path, threads: int = 4) -> None:
        self._database = database
        self._slots = slots
        self._threads = threads
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._ended = threading.Event()
        self._working: _Working | None = None

    @cached_property
    def _slot(self) -> Slot:
        """Taken at the first work: a process that only reads or decides is not seen as a worker."""
        return Slot(self._slots)

    @property
    def owner(self) -> str | None:
        """The slot of this process."""
        return self._slot.name

    def wake(self, tx: Connection, thread_id: str, *, program: str) -> None:
        """Start the segment at the commit, where this process works and has room for it.

        Elsewhere the commit of the row is the wake.
        """
        if self._working is not None:
            self._database.after(tx, lambda: self._woken(thread_id, program))

    def work(self, advance: Advance, *, programs: Callable[[], tuple[str, ...]]) -> None:
        """Advance threads until `stop`."""
        with self._database.write() as tx:
            runs.disown(tx, self._slot.name)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="segment") as pool:
            self._working = _Working(pool, advance, programs)
            try:
                self._keep_looking(self._working)
            finally:
                with self._lock:
                    self._working = None
        self._slot.close()

    def stop(self) -> None:
        """Take no more threads."""
        self._stopping.set()

    def _keep_looking(self, working: _Working) -> None:
        seen, swept = -1, 0.0
        while not self._stopping.is_set():
            try:
                if time.monotonic() - swept > SWEEP_EVERY:
                    self._free_the_dead()
                    swept, seen = time.monotonic(), -1
                version = self._database.data_version()
                if version != seen or self._ended.is_set():
                    self._ended.clear()
                    seen = version
                    self._start_due(working.programs())
            except StoreError as error:
                log.warning("the embedded engine waits for the database: %s", error)
                self._stopping.wait(SWEEP_EVERY)
            # Not a wait for `_stopping`, which costs more than the look.
            time.sleep(LOOK_EVERY)

    def _woken(self, thread_id: str, program: str) -> None:
        working = self._working
        if working is not None and program in working.programs():
            self._start(thread_id)

    def _start_due(self, programs: tuple[str, ...]) -> None:
        with self._lock:
            free = self._threads - len(self._busy)
        if free <= 0 or not programs:
            return
        with self._database.read() as tx:
            # As many more as are busy: those still want something until their segment has ended.
            due = runs.due_threads(tx, programs=programs, limit=self._threads + free)
        for thread_id in due:
            self._start(thread_id)

    def _start(self, thread_id: str) -> None:
        """Start a segment unless the thread has one here, or there is no room: then a look comes after it."""
        with self._lock:
            room = len(self._busy) < self._threads and thread_id not in self._busy
            if room and self._working is not None and not self._stopping.is_set():
                self._busy.add(thread_id)
                self._working.pool.submit(self._advance, self._working.advance, thread_id)

    def _advance(self, advance: Advance, thread_id: str) -> None:
        try:
            advance(thread_id)
        finally:
            with self._lock:
                self._busy.discard(thread_id)
            self._ended.set()

    def _free_the_dead(self) -> None:
        with self._database.read() as tx:
            owners = runs.owners(tx)
        for owner in owners:
            with self._slot.held_if_dead(owner) as dead:
                if dead:
                    with self._database.write() as tx:
                        runs.disown(tx, owner)
