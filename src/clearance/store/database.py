"""One database, SQLite or PostgreSQL: engines, transactions, the clock, and foreign errors translated."""

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from clearance.errors import SettingsError, StoreError

PATIENCE = 30.0
"""Seconds that a transaction waits for another one to release what it needs."""
Result = TypeVar("Result")
_AFTER = "clearance-after"
_NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs"})


class Database:
    """The connections of one process to one database. Not usable in a forked child.

    `clock` replaces the database's own clock; it is for tests that move time. `patience` is how many seconds
    a transaction waits for another one to release what it needs; then it is a `StoreError`.
    """

    def __init__(
        self, url: str, *, clock: Callable[[], datetime] | None = None, patience: float = PATIENCE
    ) -> None:
        self.url = _parse(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._clock = clock
        self._pid = os.getpid()
        self._watcher: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._patience = patience
        self._listening: dict[str, list[threading.Event]] = {}
        self._closed = False
        if self.is_sqlite:
            _prepare_file(self.url)
            self._writer = _sqlite_engine(self.url, begin="BEGIN IMMEDIATE", patience=patience)
            self._reader = _sqlite_engine(self.url, begin="BEGIN", patience=patience)
            self._hasty_writer = _sqlite_engine(
                self.url, begin="BEGIN IMMEDIATE", patience=patience, synchronous="NORMAL"
            )
        else:
            self._writer = self._hasty_writer = _postgresql_engine(self.url, patience=patience)
            # The same connections; a review, its calls and its decisions are read as of one moment.
            self._reader = self._writer.execution_options(isolation_level="REPEATABLE READ")
        for pool in {engine.pool for engine in (self._writer, self._hasty_writer, self._reader)}:
            event.listen(pool, "checkin", self._given_back)

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database; None on PostgreSQL."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    @contextmanager
    def write(self, *, hasty: bool = False) -> Iterator[Connection]:
        """One writing transaction: committed at the end, rolled back by any exception.

        `hasty` is for what only living processes rely on, such as a claim: on SQLite it is not forced to the
        disk, so a failure of the machine, which ends them all, may undo it until something else is committed.
        Raises `StoreError` when the database cannot be used; then nothing of it was kept.
        """
        with self._transaction(self._hasty_writer if hasty else self._writer, turn=self._turn) as tx:
            yield tx

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One reading transaction: it sees the database as of one moment, and never waits for writers."""
        with self._transaction(self._reader) as tx:
            yield tx

    def now(self, tx: Connection) -> datetime:
        """The instant, from the database's clock, so that all processes agree on deadlines."""
        if self._clock is not None:
            return self._clock()
        if self.is_sqlite:
            return datetime.now(UTC)
        instant: datetime = tx.execute(text("SELECT clock_timestamp()")).scalar_one()
        return instant.astimezone(UTC)

    def after(self, tx: Connection, call: Callable[[], None]) -> None:
        """Have something called once this transaction is committed, in the thread that commits it."""
        tx.info.setdefault(_AFTER, []).append(call)

    def announce(self, tx: Connection, run_id: str) -> None:
        """Tell those threads of this process that listen for the run, once this transaction is committed."""
        self.after(tx, lambda: self._tell(run_id))

    @contextmanager
    def listening(self, run_id: str) -> Iterator[threading.Event]:
        """Within it, an event that each announcement of the run in this process sets."""
        heard = threading.Event()
        with self._lock:
            self._listening.setdefault(run_id, []).append(heard)
        try:
            yield heard
        finally:
            with self._lock:
                self._listening[run_id].remove(heard)
                if not self._listening[run_id]:
                    del self._listening[run_id]

    def data_version(self) -> int:
        """A number that changes when any other connection has committed (SQLite only); cheap to ask."""
        try:
            with self._lock:
                if self._watcher is None:
                    self._watcher = sqlite3.connect(
                        str(self.path), isolation_level=None, check_same_thread=False
                    )
                version: int = self._watcher.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise StoreError(f"The database cannot be used now: {error}") from error
        return version

    def migrate(self) -> None:
        """Bring the tables to the newest form; safe when several processes start at once."""
        from clearance.store.migrations import upgrade

        with self.write() as tx:
            if not self.is_sqlite:
                tx.execute(text("SELECT pg_advisory_xact_lock(7255441)"))
            upgrade(tx)

    def close(self) -> None:
        """Close every connection; one that a thread still uses, as soon as it gives it back."""
        self._closed = True
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self._writer.dispose()
        self._hasty_writer.dispose()
        self._reader.dispose()

    def _given_back(self, connection: Any, _: Any) -> None:
        if self._closed and connection is not None:
            connection.close()

    def _tell(self, run_id: str) -> None:
        with self._lock:
            for heard in self._listening.get(run_id, ()):
                heard.set()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have the threads of this process write one after the other, where only one of them can.

        SQLite lets those that wait sleep and try again: among many, some come to it only after seconds.
        """
        if not self.is_sqlite:
            yield
            return
        if not self._writing.acquire(timeout=self._patience):
            raise StoreError("The database cannot be used now: others write to it for too long.")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(
        self, engine: Engine, *, turn: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Iterator[Connection]:
        if os.getpid() != self._pid:
            raise SettingsError(
                "This process was forked after the database was opened. Open it again in the child."
            )
        after: list[Callable[[], None]] = []
        try:
            with turn(), engine.begin() as tx:
                tx.info[_AFTER] = after  # it belongs to the pooled connection, not to the transaction
                yield tx
            for call in after:
                call()
        except (OperationalError, PoolTimeoutError) as error:
            raise StoreError(f"The database cannot be used now: {_reason(error)}") from error
        except SQLAlchemyError as error:
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise StoreError("The connection to the database was lost.") from error
            if type(error) is DatabaseError:
                # No mistake of ours, which has a class of its own: the file is damaged, or no database.
                raise StoreError(f"The database cannot be used: {_reason(error)}") from error
            raise


def retrying(work: Callable[[], Result], *, tries: int = 4, pause: float = 0.1) -> Result:
    """Return what `work` returns, trying again with growing pauses while the database cannot be used.

    Only for work that is one transaction, or harmless when it is done again.
    """
    for left in range(tries - 1, 0, -1):
        try:
            return work()
        except StoreError:
            time.sleep(pause * 3 ** (tries - 1 - left))
    return work()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except SQLAlchemyError:
        raise SettingsError(
            "The database URL cannot be read. Write sqlite:///FILE or postgresql://…"
        ) from None
    match parsed.get_backend_name():
        case "sqlite" if parsed.database and parsed.database != ":memory:":
            return parsed.set(drivername="sqlite")
        case "sqlite":
            raise SettingsError("Reviews must survive the process: name a file, sqlite:///FILE.")
        case "postgresql":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise SettingsError(f"Databases are SQLite or PostgreSQL; {other} is neither.")


def _prepare_file(url: URL) -> None:
    path = Path(url.database or "").absolute()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"The folder of the database cannot be made: {error.strerror}") from error
    kind = _file_system(path.parent)
    if kind in _NETWORK_FILE_SYSTEMS:
        raise SettingsError(
            f"{path} is on a network file system ({kind}), where SQLite loses data. "
            "Use a local disk, or PostgreSQL."
        )
    make_private(path)


def make_private(path: Path) -> None:
    """Make an empty file for its owner alone, where there is none: arguments and messages will lie in it."""
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return
    except OSError as error:
        raise SettingsError(f"The file {path} cannot be made: {error.strerror}") from error


def _file_system(folder: Path) -> str:
    """Return the type of the file system under a folder where the system tells it, else an empty text."""
    if not sys.platform.startswith("linux"):
        return ""
    best, kind = -1, ""
    for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
        _, mount, fstype = line.split()[:3]
        mount = mount.replace("\\040", " ")
        if folder.resolve().is_relative_to(mount) and len(mount) > best:
            best, kind = len(mount), fstype
    return kind


def _sqlite_engine(url: URL, *, begin: str, patience: float, synchronous: str = "FULL") -> Engine:
    engine = create_engine(
        url, hide_parameters=True, connect_args={"timeout": patience}, pool_size=20, max_overflow=80
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: Any) -> None:
        # Transactions are begun below, by name: sqlite3's own would begin them too late.
        connection.isolation_level = None
        cursor = connection.cursor()
        _keep_a_log(cursor, patience=patience)
        for pragma in (
            f"busy_timeout = {int(patience * 1000)}",
            f"synchronous = {synchronous}",
            "foreign_keys = ON",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _keep_a_log(cursor: sqlite3.Cursor, *, patience: float) -> None:
    """Have a database file written through a log (WAL), which it then is for all who open it.

    Of several connections that want the change of a new file at once, SQLite lets one wait for the others
    and tells the rest at once that the file is locked, whatever their busy timeout.
    """
    until = time.monotonic() + patience
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _postgresql_engine(url: URL, *, patience: float) -> Engine:
    engine = create_engine(url, hide_parameters=True, pool_size=10, max_overflow=40, pool_pre_ping=True)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        # A process stopped inside a transaction must not keep its locks for ever.
        connection.autocommit = True
        connection.execute("SET idle_in_transaction_session_timeout = '10s'")
        connection.execute(f"SET lock_timeout = {int(patience * 1000)}")
        connection.autocommit = False

    return engine


def _reason(error: SQLAlchemyError) -> str:
    """Return the driver's own first line, without the statement and its values."""
    original = getattr(error, "orig", None)
    lines = str(original if original is not None else error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
