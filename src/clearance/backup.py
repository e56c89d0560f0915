"""Backup and restore of a workspace on SQLite, and what a restored copy must no longer believe.

A copy does not know what ran after it was made. So in a restored workspace no clearance stays open: every
call that was held, cleared or started is uncertain, a person is asked what became of it, and open runs end.
"""

import shutil
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from clearance.asking import SYSTEM
from clearance.audit import AuditKind
from clearance.errors import SettingsError, StoreError
from clearance.ledger import Ledger
from clearance.outcome import CallState
from clearance.review import ReviewStatus, closed
from clearance.run import RunState
from clearance.settlement import invalidate
from clearance.store import audit, calls, reviews, runs
from clearance.uncertainty import make_uncertain

CHECKPOINTS = "checkpoints.db"
DATABASE = "clearance.db"
_OPEN_CALLS = (CallState.HELD, CallState.CLEARED, CallState.STARTED)
_OPEN_RUNS = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
BATCH = 100


@dataclass(frozen=True)
class Restored:
    """What a restore had to call into question."""

    uncertain_calls: int
    ended_runs: int


def back_up(database: Path, *, to: Path) -> None:
    """Copy a workspace's two databases into the folder `to`, while it is in use.

    Checkpoints first: a copy in which the reviews are newer than the conversation can go on, the other way
    round a conversation would wait for a review that is not there. Raises `SettingsError`, `StoreError`.
    """
    if to.exists() and any(to.iterdir()):
        raise SettingsError(f"{to} is not empty. Name a new folder for the backup.")
    to.mkdir(parents=True, exist_ok=True)
    checkpoints = database.parent / CHECKPOINTS
    if checkpoints.exists():
        _copy(checkpoints, to / CHECKPOINTS)
    _copy(database, to / DATABASE)


def copy_back(backup: Path, *, to: Path) -> Path:
    """Copy a backup into the workspace folder `to`, which must not have one; return the database's path.

    The workspace must then be marked with `mark_restored` before anything else uses it.
    """
    source = backup / DATABASE
    if not source.exists():
        raise SettingsError(f"{backup} holds no backup: there is no {DATABASE} in it.")
    if (to / DATABASE).exists():
        raise SettingsError(f"{to} has a workspace already. Move it away, or restore to another folder.")
    to.mkdir(parents=True, exist_ok=True)
    if (backup / CHECKPOINTS).exists():
        shutil.copyfile(backup / CHECKPOINTS, to / CHECKPOINTS)
    # The database last and by one rename: a workspace is there with all of it, or not at all.
    shutil.copyfile(source, to / f"{DATABASE}.part")
    (to / f"{DATABASE}.part").rename(to / DATABASE)
    return to / DATABASE


def mark_restored(ledger: Ledger, *, by: str) -> Restored:
    """Take every open right out of a restored workspace; harmless when it is done again."""
    with ledger.database.write() as tx:
        now = ledger.database.now(tx)
        audit.write(tx, AuditKind.WORKSPACE_RESTORED, "workspace", actor=by, now=now)
    uncertain = ended = 0
    while batch := _open_calls(ledger):
        for key in batch:
            uncertain += _question(ledger, key)
    while batch := _open_runs(ledger):
        for run_id in batch:
            ended += _end(ledger, run_id)
    return Restored(uncertain, ended)


def _question(ledger: Ledger, key: str) -> int:
    with ledger.database.write() as tx:
        row = calls.row(tx, key)
        if row is None or row.state not in _OPEN_CALLS:
            return 0
        run = runs.run(tx, row.run_id)
        runs.lock_thread(tx, run.thread_id)
        now = ledger.database.now(tx)
        calls.void(tx, key)
        _invalidate_reviews(tx, key, now=now)
        calls.move(tx, key, attempt=row.attempt, frm=_OPEN_CALLS, to=CallState.STARTED)
        started = replace(row, state=CallState.STARTED)
        make_uncertain(tx, started, run=run, actor=ledger.worker, now=now)
        return 1


def _invalidate_reviews(tx: Connection, key: str, *, now: datetime) -> None:
    for review in reviews.of_call(tx, key):
        if review.status is ReviewStatus.PENDING:
            reason = "The workspace was restored from a backup; this may have been decided since."
            after = closed(review, ReviewStatus.INVALIDATED, now=now, reason=reason)
            invalidate(tx, review, after, now=now, by=SYSTEM)


def _end(ledger: Ledger, run_id: str) -> int:
    with ledger.database.write() as tx:
        run = runs.run(tx, run_id)
        runs.lock_thread(tx, run.thread_id)
        now = ledger.database.now(tx)
        reason = "The workspace was restored from a backup; what this run did since is not known."
        if not runs.end_run(tx, run_id, RunState.FAILED, now=now, reason=reason):
            return 0
        audit.write(tx, AuditKind.RUN_FAILED, run_id, actor=SYSTEM, now=now, facts={"reason": "restored"})
        return 1


def _open_calls(ledger: Ledger) -> list[str]:
    with ledger.database.read() as tx:
        return [row.key for row in calls.in_state(tx, *_OPEN_CALLS, limit=BATCH)]


def _open_runs(ledger: Ledger) -> list[str]:
    with ledger.database.read() as tx:
        return [run.id for run in runs.list_runs(tx, states=_OPEN_RUNS, limit=BATCH)]


def _copy(source: Path, target: Path) -> None:
    try:
        with sqlite3.connect(source) as frm, sqlite3.connect(target) as into:
            frm.backup(into)
    except sqlite3.Error as error:
        raise StoreError(f"{source.name} could not be copied: {error}") from error
