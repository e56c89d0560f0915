"""Changes: notices, once for the whole application, that something was committed, and wakes who waits for it.

One thread looks every few milliseconds whether any process has committed: SQLite has a number for that, and
on PostgreSQL the snapshot of the moment tells it. So a stream costs nothing while nothing happens.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from clearance.errors import StoreError
from clearance.store import audit
from clearance.store.database import Database

LOOK_EVERY = 0.025
_AGAIN_AFTER = 0.5

log = logging.getLogger(__name__)


class Changes:
    """The watcher of one application. Used from its event loop, between `start` and `stop`.

    Who waits for a state takes `count` first, then looks, then waits with `since=count`, and looks again:
    so no commit falls between the look and the wait. `last_seq` is the last number of the trail, as far as
    it is known; `ending` is true when streams are to end.
    """

    def __init__(self, database: Database) -> None:
        self.count = 0
        self.last_seq = 0
        self.ending = False
        self._database = database
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._next = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to watch, for the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._watch, name="changes", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Have every stream end: wake who waits, now and from now on at once."""
        self.ending = True
        self._wake(self.last_seq)

    def stop(self) -> None:
        """End the watch."""
        self.end()
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    async def wait(self, timeout: float, *, since: int | None = None) -> None:
        """Return when something was committed, in any process, or after `timeout` seconds.

        At once when there was a commit after `count` was `since`, or when streams are to end. What was
        committed is not told: the caller looks.
        """
        if self.ending or (since is not None and since != self.count):
            return
        following = self._next
        with suppress(TimeoutError):
            await asyncio.wait_for(following.wait(), timeout)

    def _wake(self, last_seq: int) -> None:
        self.count += 1
        self.last_seq = max(self.last_seq, last_seq)
        woken, self._next = self._next, asyncio.Event()
        woken.set()

    def _watch(self) -> None:
        seen: object = None
        with _looking(self._database) as look:
            while not self._stopping.wait(LOOK_EVERY):
                try:
                    found = look()
                    if found != seen:
                        with self._database.read() as tx:
                            last_seq = audit.last_seq(tx)
                        seen = found
                        self._tell(last_seq)
                except StoreError as error:
                    log.warning("the streams wait for the database: %s", error)
                    seen = None
                    self._stopping.wait(_AGAIN_AFTER)

    def _tell(self, last_seq: int) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it who waited
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake, last_seq)


@contextmanager
def _looking(database: Database) -> Iterator[Callable[[], object]]:
    """Give what tells by another value that something was committed."""
    if database.is_sqlite:
        yield database.data_version
        return
    snapshots = _Snapshots(database)
    try:
        yield snapshots.look
    finally:
        snapshots.close()


class _Snapshots:
    """The snapshots of a PostgreSQL server: each writing transaction that ends makes the next one differ."""

    def __init__(self, database: Database) -> None:
        _, self._parameters = database.url.get_dialect()().create_connect_args(database.url)
        self._connection: Any = None

    def close(self) -> None:
        """Close the connection; the next look opens another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def look(self) -> object:
        """Return the snapshot of this moment. Raises `StoreError` when the server is away."""
        import psycopg

        try:
            if self._connection is None:
                self._connection = psycopg.connect(**self._parameters, autocommit=True)
            return self._connection.execute("SELECT pg_current_snapshot()::text").fetchone()[0]
        except psycopg.Error as error:
            self.close()
            raise StoreError("The connection to the database was lost.") from error
