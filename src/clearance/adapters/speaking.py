"""Speaking: what a segment's model says is passed on while it is said, to whoever follows the run.

It is written beside the segment, never in its way: at most once every tenth of a second, in small
transactions of a thread of its own. A segment that is over before the first of them writes nothing. What is
said here is no record: the thread's messages are, and where the database fails a part of it is missing.
"""

import logging
import threading
from types import TracebackType
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from clearance.errors import ClearanceError
from clearance.store import stream
from clearance.store.database import Database
from clearance.store.stream import Piece

EVERY = 0.1
"""Seconds between two writes."""

log = logging.getLogger(__name__)


class Speaker:
    """The voice of one segment, which claimed the fence `attempt`. Leaving the `with` statement ends it."""

    def __init__(self, database: Database, run_id: str, *, attempt: int, every: float = EVERY) -> None:
        self._database = database
        self._run_id = run_id
        self._attempt = attempt
        self._every = every
        self._lock = threading.Lock()
        self._unwritten: list[str] = []
        self._written = 0
        self._timer: threading.Timer | None = None
        self._over = False

    def begin(self) -> None:
        """Begin a new text: a message of the model, or a further try at one that broke off."""
        with self._lock:
            if self._unwritten[-1] if self._unwritten else self._written:
                self._unwritten.append("")

    def say(self, text: str) -> None:
        """Pass a piece of the present text on, within `every` seconds."""
        if not text:
            return
        # What no database keeps is shown as what it is not: a text that can be kept.
        kept = text.encode(errors="replace").decode().replace("\0", "\ufffd")
        with self._lock:
            if self._over:
                return
            if self._unwritten and self._unwritten[-1]:
                self._unwritten[-1] += kept
            else:
                self._unwritten.append(kept)
            if self._timer is None:
                self._write_soon()

    def close(self) -> None:
        """Say nothing more, and take back what was said: the segment's end says it better."""
        with self._lock:
            self._over = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        if self._written:
            try:
                with self._database.write() as tx:
                    stream.forget(tx, self._run_id, upto=self._attempt)
            except (ClearanceError, SQLAlchemyError) as error:
                log.debug("run %s: what it said is left to the house keeping: %s", self._run_id, error)

    def _write_soon(self) -> None:
        self._timer = threading.Timer(self._every, self._write)
        self._timer.daemon = True
        self._timer.start()

    def _write(self) -> None:
        with self._lock:
            texts, self._unwritten = self._unwritten, []
            first = self._written + 1
            self._written += len(texts)
        pieces = [Piece(self._attempt, n, text) for n, text in enumerate(texts, start=first)]
        try:
            with self._database.write() as tx:
                stream.append(tx, self._run_id, pieces)
        except (ClearanceError, SQLAlchemyError) as error:
            log.debug("run %s: a part of what it says is not passed on: %s", self._run_id, error)
        with self._lock:
            # Only now: two writes at once could come out of order, and a reader would miss the first.
            self._timer = None
            if self._unwritten and not self._over:
                self._write_soon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def forget_the_ended(database: Database) -> None:
    """Delete what ended runs said: its segment's process was lost, or spoke after the end."""
    with database.read() as tx:
        found = stream.left_behind(tx)
    if found:
        with database.write() as tx:
            for run_id in found:
                stream.forget(tx, run_id)
