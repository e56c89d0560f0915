"""Stored rows: how many bytes a workspace holds, and many parked runs made from the rows of one."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, MetaData, Table, create_engine, insert, inspect, select, text

from clearance.apps.chat import ReviewedChat
from clearance.fingerprint import fingerprint
from clearance.review import Review
from clearance.store import listing, policies, reviews
from clearance.toolcall import ToolCall
from tests.journeys.front import Front
from tests.journeys.program import PERSON, Stage, agent_of

AT_ONCE = 1000


def files(stage: Stage) -> list[Path]:
    """Return the files of a workspace on SQLite."""
    return [stage.home / name for name in ("clearance.db", "checkpoints.db")]


@contextmanager
def engines(stage: Stage) -> Iterator[list[Engine]]:
    """Open what a workspace is stored in: two files, or one database on a server."""
    on_sqlite = stage.url.startswith("sqlite")
    urls = [f"sqlite:///{file}" for file in files(stage)] if on_sqlite else [stage.url]
    opened = [create_engine(url) for url in urls]
    try:
        yield opened
    finally:
        for engine in opened:
            engine.dispose()


def stored_bytes(stage: Stage) -> int:
    """Return the length of all that is stored, over every column of every row of every table."""
    total = 0
    with engines(stage) as opened:
        for engine in opened:
            with engine.connect() as connection:
                for name in inspect(engine).get_table_names():
                    if engine.dialect.name == "sqlite":
                        columns = [each["name"] for each in inspect(engine).get_columns(name)]
                        lengths = [f'coalesce(length(CAST("{each}" AS BLOB)), 0)' for each in columns]
                        length = " + ".join(lengths)
                    else:
                        length = "octet_length(t::text)"
                    total += connection.execute(
                        text(f'SELECT coalesce(sum({length}), 0) FROM "{name}" t')
                    ).scalar_one()
    return total


def file_bytes(stage: Stage) -> int:
    """Return how large the files of a workspace on SQLite are when nothing in them is empty."""
    total = 0
    with engines(stage) as opened:
        for number, engine in enumerate(opened):
            packed = stage.home / f"packed-{number}"
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM INTO ?", (str(packed),))
            total += packed.stat().st_size
            packed.unlink()
    return total


# --- many parked runs ---


@dataclass(frozen=True)
class Copy:
    """The names of one copy of a parked run, as long as those of the run that it is copied from."""

    run: str
    thread: str

    @property
    def review(self) -> str:
        """The review that it waits for."""
        return f"{self.run}/1/1"


def copies_of(review: Review, *, count: int) -> list[Copy]:
    """Return the names of this many copies of a parked run."""
    run, thread = len(review.run_id), len(review.thread_id)
    return [Copy(f"{number:0{run}}", f"{number:0{thread}}") for number in range(1, count + 1)]


def park(front: Front, review: Review, copies: Sequence[Copy]) -> None:
    """Park these copies of a parked run beside it: the same rows under other names.

    Only the trail has nothing of them: its entries are written once.
    """
    [call] = review.calls
    with front.opened.database.read() as tx:
        schema = policies.schema(tx, call.schema_hash) or {}

    def names(copy: Copy) -> dict[str, str]:
        plain = ToolCall(call.key.replace(review.run_id, copy.run), call.tool, call.arguments)
        own = fingerprint(plain, run=copy.run, schema=schema, salt=call.salt)
        return {review.run_id: copy.run, review.thread_id: copy.thread, call.fingerprint: own}

    renamed = [names(copy) for copy in copies]
    with engines(front.stage) as opened:
        for engine in opened:
            metadata = MetaData()
            metadata.reflect(engine)
            for table in metadata.sorted_tables:
                if table.name != "entries":
                    _copy_rows(engine, table, tuple(names(Copy(review.run_id, review.thread_id))), renamed)


def _copy_rows(
    engine: Engine, table: Table, originals: Sequence[str], renamed: Sequence[Mapping[str, str]]
) -> None:
    with engine.begin() as connection:
        rows = [dict(row) for row in connection.execute(select(table)).mappings()]
        rows = [row for row in rows if any(_names(value, originals) for value in row.values())]
        for start in range(0, len(renamed) if rows else 0, AT_ONCE):
            values = [
                {column: _renamed(value, names) for column, value in row.items()}
                for names in renamed[start : start + AT_ONCE]
                for row in rows
            ]
            connection.execute(insert(table), values)


def _names(value: Any, originals: Sequence[str]) -> bool:
    if isinstance(value, bytes):
        return any(name.encode() in value for name in originals)
    if isinstance(value, dict | list):
        return _names(json.dumps(value), originals)
    return isinstance(value, str) and any(name in value for name in originals)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict | list):
        return json.loads(_renamed(json.dumps(value), names))
    for name, other in names.items():
        if isinstance(value, str):
            value = value.replace(name, other)
        elif isinstance(value, bytes):
            value = value.replace(name.encode(), other.encode())
    return value


# --- what a process of it needs ---


def measure(stage: Stage, report: Path) -> None:
    """Be a worker that has advanced something, list what waits, and report threads and memory (in kB)."""
    with stage.open(worker=True) as opened:
        chat = ReviewedChat(agent_of(opened, stage))
        chat.send_message("measured", "look a", by=PERSON, wait=60)
        opened.gate.sweep()
        with opened.database.read() as tx:
            listing.inbox(tx)
            waiting = reviews.waiting_count(tx)
        ps = ["ps", "-o", "rss=", "-p", str(os.getpid())]
        memory = subprocess.run(ps, capture_output=True, text=True, check=True).stdout.strip()
        report.write_text(f"{waiting} {threading.active_count()} {memory}")
