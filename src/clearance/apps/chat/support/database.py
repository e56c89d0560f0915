"""The support desk's database: one SQLite file, opened for each use, filled with example rows once.

Many threads and processes may use it at once: each use has its own connection, writers wait for
one another, readers for nobody (WAL). The file must lie on a local disk.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from clearance.apps.chat.support.errors import SupportError
from clearance.apps.chat.support.rows import CUSTOMERS, ORDERS

FILE_NAME = "support.db"
_BUSY_SECONDS = 30.0
_VERSION = 1
_TABLES = (
    """CREATE TABLE customers (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, city TEXT NOT NULL
    )""",
    """CREATE TABLE orders (
        id TEXT PRIMARY KEY,
        customer_id TEXT REFERENCES customers (id) ON DELETE SET NULL,
        item TEXT NOT NULL,
        status TEXT NOT NULL,
        ordered_on TEXT NOT NULL,
        paid_cents INTEGER NOT NULL CHECK (typeof(paid_cents) = 'integer' AND paid_cents >= 0)
    )""",
    """CREATE TABLE refunds (
        id INTEGER PRIMARY KEY,
        order_id TEXT NOT NULL REFERENCES orders (id) ON DELETE RESTRICT,
        amount_cents INTEGER NOT NULL
            CHECK (typeof(amount_cents) = 'integer' AND amount_cents > 0),
        reason TEXT NOT NULL,
        idempotency_key TEXT NOT NULL UNIQUE,
        made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    )""",
    """CREATE TABLE deletions (
        idempotency_key TEXT PRIMARY KEY,
        record_table TEXT NOT NULL,
        record_id TEXT NOT NULL,
        orders_kept INTEGER NOT NULL,
        made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    )""",
)


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database for reading; everything read inside is of one moment."""
    with _opened(folder) as connection:
        connection.execute("BEGIN")
        yield connection
        connection.execute("ROLLBACK")


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database for one transaction: kept when the block ends, undone when it raises."""
    with _opened(folder) as connection, _transaction(connection):
        yield connection


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if _version(connection) < _VERSION:
                _create(connection)
            yield connection
    except sqlite3.Error as error:
        raise SupportError("The support desk's database cannot be used now; nothing was changed.") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _create(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        if _version(connection) >= _VERSION:  # another process was first
            return
        for table in _TABLES:
            connection.execute(table)
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", CUSTOMERS)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", ORDERS)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
