"""The cache of responses: one SQLite file in the workspace folder, shared by all runs."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from clearance.apps.research.http.response import Fetched, Origin, public, request_key
from clearance.toolcall import canonical

_TABLE = """
CREATE TABLE IF NOT EXISTS response (
    key TEXT PRIMARY KEY, url TEXT NOT NULL, params TEXT NOT NULL, body BLOB NOT NULL,
    etag TEXT, sha256 TEXT NOT NULL, retrieved_at TEXT NOT NULL
)
"""
_PUT = "INSERT OR REPLACE INTO response VALUES (?, ?, ?, ?, ?, ?, ?)"
_GET = "SELECT body, etag, sha256, retrieved_at FROM response WHERE key = ?"


class HttpCache:
    """Whole answers by URL and parameters. A copy whose bytes no longer have their sha256 is not given."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, url: str, params: Mapping[str, str]) -> Fetched | None:
        """Return the kept answer, with the time when its source last confirmed it."""
        with self._open() as connection:
            row = connection.execute(_GET, (request_key(url, params),)).fetchone()
        if row is None or hashlib.sha256(row[0]).hexdigest() != row[2]:
            return None
        return Fetched(
            url=url,
            status=200,
            body=row[0],
            retrieved_at=datetime.fromisoformat(row[3]),
            origin=Origin.CACHED,
            etag=row[1],
        )

    def put(self, params: Mapping[str, str], fetched: Fetched) -> None:
        """Keep an answer in place of the one before."""
        row = (
            request_key(fetched.url, params),
            fetched.url,
            canonical(public(params)),
            fetched.body,
            fetched.etag,
            fetched.sha256,
            fetched.retrieved_at.isoformat(),
        )
        with self._open() as connection, connection:
            connection.execute(_PUT, row)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            connection.execute(_TABLE)
            yield connection
