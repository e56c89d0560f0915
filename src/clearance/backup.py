"""Backup and restore of a workspace on SQLite, and what a restored copy must no longer believe.

A copy does not know what ran after it was made. So in a restored workspace no clearance stays open: every
call that was held, cleared, started or uncertain is uncertain, people are asked what became of it, and open
runs end.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import SettingsError, StoreError
from clearance.ledger import Ledger
from clearance.outcome import CallState
from clearance.people import SYSTEM
from clearance.review import Answer, Review, ReviewStatus, closed
from clearance.run import Run, RunState
from clearance.settlement import invalidate
from clearance.store import audit, calls, reviews, runs
from clearance.store.calls import LedgerRow
from clearance.uncertainty import ask_again, make_uncertain

CHECKPOINTS = "checkpoints.db"
DATABASE = "clearance.db"
KEYS = "notary.pub"
"""The public keys of the seals in the copy; the private one stays where it is."""

BATCH = 100
_UNFINISHED = (CallState.HELD, CallState.CLEARED, CallState.STARTED)
_OPEN_RUNS = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
_REASON = "The workspace was restored from a backup; this may have been decided since."


@dataclass(frozen=True)
class Restored:
    """What a restore had to call into question."""

    uncertain_calls: int
    ended_runs: int


def back_up(database: Path, *, to: Path, keys: bytes) -> None:
    """Copy a workspace's two databases and the public `keys` into the folder `to`, while it is in use.

    Checkpoints first: a copy in which the reviews are newer than the conversation can go on, the other way
    round a conversation would wait for a review that is not there. Raises `SettingsError`, `StoreError`.
    """
    with _files_of(to):
        if to.exists() and any(to.iterdir()):
            raise SettingsError(f"{to} is not empty. Name a new folder for the backup.")
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        (to / KEYS).write_bytes(keys)
        checkpoints = database.parent / CHECKPOINTS
        if checkpoints.exists():
            _copy(checkpoints, to / CHECKPOINTS)
        # The database last and by one rename: what has it is a whole backup.
        _copy(database, to / f"{DATABASE}.part")
        (to / f"{DATABASE}.part").rename(to / DATABASE)


@contextmanager
def restoring(backup: Path, *, to: Path) -> Iterator[Path]:
    """Copy a backup beside the workspace folder's own files, and yield the copy's database file.

    There it is to be marked with `mark_restored`, and closed. When the block has ended well the copy becomes
    the workspace in `to`, which must not have one; before that nobody finds it, so that nothing can run by
    what is still open in it. Raises `SettingsError`, `StoreError`.
    """
    with _files_of(to):
        _check(backup, to=to)
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".restoring-", dir=to))
    try:
        if (backup / CHECKPOINTS).exists():
            _copy(backup / CHECKPOINTS, aside / CHECKPOINTS)
        _copy(backup / DATABASE, aside / DATABASE)
        yield aside / DATABASE
        with _files_of(to):
            _put_in_place(aside, to=to)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def mark_restored(ledger: Ledger, *, by: str) -> Restored:
    """Take every open right out of a restored workspace; safe when it is done again.

    Whoever still works on it by what was claimed before is shut out.
    """
    with ledger.database.write() as tx:
        since = ledger.database.now(tx)
        audit.write(tx, AuditKind.WORKSPACE_RESTORED, "workspace", actor=by, now=since)
        for thread_id, fence in _fences_of_checkpoints(ledger.database.path):
            known = runs.thread(tx, thread_id)
            if known is not None and known.fence < fence:
                runs.shut_out(tx, thread_id, fence=fence)
    uncertain = sum(_question(ledger, row, since=since) for row in _open_calls(ledger))
    ended = 0
    while batch := _open_runs(ledger):
        ended += sum(_end(ledger, run) for run in batch)
    return Restored(uncertain, ended)


# --- calling into question ---


def _question(ledger: Ledger, found: LedgerRow, *, since: datetime) -> bool:
    """Call a call uncertain that might have run since, and ask about it; False when there is no need."""
    with ledger.database.read() as tx:
        run = runs.run(tx, found.run_id)
    with ledger.database.write() as tx:
        runs.shut_out(tx, run.thread_id)
        row = calls.row(tx, found.key)
        if row is None or row.state not in (*_UNFINISHED, CallState.UNCERTAIN):
            return False
        asked = reviews.of_call(tx, row.key)
        waiting = [review for review in asked if review.status is ReviewStatus.PENDING]
        if row.state is CallState.UNCERTAIN and any(review.asked_at >= since for review in waiting):
            return False
        now = ledger.database.now(tx)
        _void(tx, row, now=now)
        for review in waiting:
            _invalidate(tx, review, now=now)
        if row.state is CallState.UNCERTAIN:
            ask_again(tx, row, run=run, now=now)
        else:
            make_uncertain(tx, _started(tx, row, asked), run=run, actor=ledger.worker, now=now)
        return True


def _started(tx: Connection, row: LedgerRow, asked: list[Review]) -> LedgerRow:
    """Make a call a started one, as people last saw it: an edit is what may have run."""
    call = asked[-1].call(row.key) if asked and row.state is CallState.HELD else None
    if call is not None:
        row = replace(row, tool=call.tool, arguments=call.arguments, fingerprint=call.fingerprint)
    changed = {"tool": row.tool, "arguments": row.arguments, "fingerprint": row.fingerprint}
    calls.move(tx, row.key, attempt=row.attempt, frm=_UNFINISHED, to=CallState.STARTED, values=changed)
    return replace(row, state=CallState.STARTED)


def _void(tx: Connection, row: LedgerRow, *, now: datetime) -> None:
    for clearance in calls.void(tx, row.key):
        reviews.mark_call(tx, clearance.review_id, row.key, state=Answer.INVALIDATED)
        facts = {"review": clearance.review_id, "fingerprint": clearance.fingerprint, "reason": _REASON}
        audit.write(tx, AuditKind.CLEARANCE_VOIDED, row.key, actor=SYSTEM, now=now, facts=facts)


def _invalidate(tx: Connection, review: Review, *, now: datetime) -> None:
    invalidate(
        tx, review, closed(review, ReviewStatus.INVALIDATED, now=now, reason=_REASON), now=now, by=SYSTEM
    )


def _end(ledger: Ledger, run: Run) -> bool:
    with ledger.database.write() as tx:
        runs.shut_out(tx, run.thread_id)
        now = ledger.database.now(tx)
        waiting = reviews.pending(tx, run.thread_id)
        if waiting is not None and waiting.run_id == run.id:
            _invalidate(tx, waiting, now=now)
        reason = "The workspace was restored from a backup; what this run did since is not known."
        ended = runs.end_run(tx, run.id, RunState.FAILED, now=now, reason=reason)
        if ended:
            facts = {"reason": "restored"}
            audit.write(tx, AuditKind.RUN_FAILED, run.id, actor=SYSTEM, now=now, facts=facts)
        return ended


def _open_calls(ledger: Ledger) -> Iterator[LedgerRow]:
    after = ""
    while True:
        with ledger.database.read() as tx:
            page = calls.in_state(tx, *_UNFINISHED, CallState.UNCERTAIN, after=after, limit=BATCH)
        yield from page
        if len(page) < BATCH:
            return
        after = page[-1].key


def _open_runs(ledger: Ledger) -> list[Run]:
    with ledger.database.read() as tx:
        return runs.list_runs(tx, states=_OPEN_RUNS, limit=BATCH)


# --- files ---


def _fences_of_checkpoints(database: Path | None) -> list[tuple[str, int]]:
    """Return the fences that lie beside the checkpoints: a claim below one of them would be shut out."""
    checkpoints = database.parent / CHECKPOINTS if database is not None else None
    if checkpoints is None or not checkpoints.exists():
        return []
    try:
        with closing(sqlite3.connect(checkpoints)) as connection:
            if not _has_table(connection, "fences"):
                return []
            return connection.execute("SELECT thread, fence FROM fences").fetchall()
    except sqlite3.Error as error:
        raise StoreError(f"{checkpoints.name} cannot be read: {error}") from error


def _check(backup: Path, *, to: Path) -> None:
    source = backup / DATABASE
    if not source.is_file():
        raise SettingsError(f"{backup} holds no backup: there is no {DATABASE} in it.")
    # Also what SQLite keeps beside a database: a left one would be read as part of the restored.
    if any(each for name in (DATABASE, CHECKPOINTS) for each in to.glob(f"{name}*")):
        raise SettingsError(f"{to} has a workspace already. Move it away, or restore to another folder.")
    try:
        with closing(_reading(source)) as connection:
            whole = _has_table(connection, "threads")
    except sqlite3.DatabaseError:
        whole = False
    if not whole:
        raise SettingsError(f"{source} is no database of a workspace.")


def _put_in_place(aside: Path, *, to: Path) -> None:
    try:
        for name in (CHECKPOINTS, DATABASE):
            if (aside / name).exists():
                _in_one_file(aside / name)
                # A link is there at once, whole, and only if nothing was there before.
                os.link(aside / name, to / name)
    except FileExistsError:
        raise SettingsError(f"{to} has got a workspace meanwhile. Restore to another folder.") from None


def _copy(source: Path, target: Path) -> None:
    try:
        with closing(_reading(source)) as frm, closing(sqlite3.connect(target)) as into:
            frm.backup(into)
        _in_one_file(target)
    except sqlite3.Error as error:
        raise StoreError(f"{source.name} could not be copied: {error}") from error


def _in_one_file(database: Path) -> None:
    """Bring everything into the file itself, so that it can be moved, and read from a read-only disk."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise StoreError(f"{database.name} could not be closed: {error}") from error


def _reading(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


@contextmanager
def _files_of(folder: Path) -> Iterator[None]:
    """Say it in a sentence when a folder cannot be used."""
    try:
        yield
    except OSError as error:
        raise SettingsError(f"{folder} cannot be used: {error.strerror}") from error
