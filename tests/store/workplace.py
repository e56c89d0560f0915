"""A workplace: a database with workers of an engine on it, in threads of the test or in a doomed process."""

import os
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection

from clearance import turns
from clearance.engine import Engine
from clearance.engine.embedded import EmbeddedEngine
from clearance.engine.procrastinate import ProcrastinateEngine, setup
from clearance.ledger import Ledger
from clearance.program import Programs
from clearance.store import runs
from clearance.store.database import Database

LONG = 60.0
"""Seconds after which something that should happen never will."""


class Workplace:
    """Threads of a database, wanted by the test and advanced by its workers as the product's worker does.

    `body` is what a segment does. `segments` counts those that have ended, by thread; `overlaps` lists
    threads that had two at once. `programs` is what the workers know.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.database = Database(url)
        if not self.database.is_sqlite:
            setup(self.database)
        self.programs: tuple[str, ...] = ("chat",)
        self.body: Callable[[str], object] = lambda _: None
        self.segments: Counter[str] = Counter()
        self.overlaps: list[str] = []
        self._folder = folder
        self._running: set[str] = set()
        self._changed = threading.Condition()
        self._workers: list[tuple[Engine, threading.Thread]] = []
        self.engine = self._engine()

    def _engine(self, threads: int = 4) -> Engine:
        if self.database.is_sqlite:
            return EmbeddedEngine(self.database, slots=self._folder / "slots", threads=threads)
        return ProcrastinateEngine(self.database, concurrency=threads)

    def want(self, thread_id: str, *, program: str = "chat") -> None:
        """Ask for a segment of a thread, as a decision does."""
        with self.database.write() as tx:
            self.want_in(tx, thread_id, program=program)

    def want_in(self, tx: Connection, thread_id: str, *, program: str = "chat") -> None:
        """Ask for a segment in a transaction of the test's own."""
        self.want_silently(tx, thread_id, program=program)
        self.engine.wake(tx, thread_id, program=program)

    def want_silently(self, tx: Connection, thread_id: str, *, program: str = "chat") -> None:
        """Raise `wanted` and wake nobody."""
        runs.ensure_thread(tx, thread_id, program=program, now=self.database.now(tx))
        runs.want(tx, thread_id)

    def thread(self, thread_id: str) -> runs.Thread:
        """Return a thread's row."""
        with self.database.read() as tx:
            found = runs.thread(tx, thread_id)
        assert found is not None
        return found

    def start(self, *, threads: int = 4) -> Engine:
        """Start one more worker in a thread of its own."""
        engine = self._engine(threads) if self._workers else self.engine
        ledger = Ledger(
            self.database, Programs(), lambda *_: None, uuid.uuid4().hex, lambda: uuid.uuid4().hex
        )
        thread = threading.Thread(
            target=engine.work,
            args=(lambda thread_id: self._advance(ledger, engine, thread_id),),
            kwargs={"programs": lambda: self.programs},
            daemon=True,
        )
        self._workers.append((engine, thread))
        thread.start()
        return engine

    def has_ended(self, engine: Engine, *, within: float = LONG) -> bool:
        """Wait for a worker to end."""
        (thread,) = (thread for known, thread in self._workers if known is engine)
        thread.join(within)
        return not thread.is_alive()

    def until(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds; looked at whenever a segment begins or ends, and now and then."""
        left = int(LONG / 0.05)
        with self._changed:
            while not holds() and left > 0:
                self._changed.wait(0.05)
                left -= 1
        return left > 0

    def until_advanced(self, thread_id: str, *, times: int = 1) -> bool:
        """Wait until so many segments of a thread have ended."""
        return self.until(lambda: self.segments[thread_id] >= times)

    def close(self) -> None:
        """End every worker."""
        for engine, _ in self._workers:
            engine.stop()
        alive = [engine for engine, _ in self._workers if not self.has_ended(engine)]
        self.database.close()
        assert not alive

    def _advance(self, ledger: Ledger, engine: Engine, thread_id: str) -> None:
        with self._changed:
            if thread_id in self._running:
                self.overlaps.append(thread_id)
            self._running.add(thread_id)
        claimed = None
        try:
            claimed = turns.claim(ledger, thread_id, owner=engine.owner)
            if claimed is not None:
                self._segment(ledger, claimed)
        finally:
            with self._changed:
                self._running.discard(thread_id)
                self.segments[thread_id] += claimed is not None
                self._changed.notify_all()

    def _segment(self, ledger: Ledger, claimed: runs.Claim) -> None:
        try:
            self.body(claimed.thread_id)
        except Exception:
            turns.give_back(ledger, claimed)
            raise
        turns.finish(ledger, claimed, answer=None)


def die_in_a_segment(url: str, folder: str) -> None:
    """Work until the first segment, and end there as a killed process does, with its thread claimed."""
    place = Workplace(url, Path(folder))
    ledger = Ledger(place.database, Programs(), lambda *_: None, "doomed", lambda: uuid.uuid4().hex)

    def advance(thread_id: str) -> None:
        assert turns.claim(ledger, thread_id, owner=place.engine.owner)
        os.kill(os.getpid(), signal.SIGKILL)

    place.engine.work(advance, programs=lambda: place.programs)
