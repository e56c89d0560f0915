"""Retention's rows: which threads are finished, and the removal of every value that they hold.

What stays says what happened: states, fingerprints, who decided what and when, and the whole trail.
"""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from clearance.errors import StoreError
from clearance.outcome import CallState
from clearance.review import ReviewStatus
from clearance.run import AGENT
from clearance.store import standing
from clearance.store.database import PATIENCE
from clearance.store.runs import BELOW
from clearance.store.tables import (
    answers,
    artifacts,
    callbacks,
    calls,
    decisions,
    deliveries,
    late_answers,
    links,
    reviewed_calls,
    reviews,
    run_files,
    run_stages,
    runs,
    stream,
    threads,
)
from clearance.toolcall import canonical

NO_VALUES = "{}"
"""What stands in place of removed arguments, which are a JSON object everywhere."""

_OPEN_RUN = exists().where(runs.c.thread_id == threads.c.id, runs.c.ended_at.is_(None))
_WAITING = exists().where(reviews.c.thread_id == threads.c.id, reviews.c.status == ReviewStatus.PENDING.value)
_UNKNOWN = exists().where(
    calls.c.run_id == runs.c.id,
    runs.c.thread_id == threads.c.id,
    calls.c.state.in_([CallState.STARTED.value, CallState.UNCERTAIN.value]),
)
_WHY_NOT = (
    (_OPEN_RUN, "it has a run that has not ended"),
    (_WAITING, "a review of it waits for a decision"),
    (_UNKNOWN, "what became of one of its calls is not known"),
    (threads.c.owner.is_not(None), "a worker still works on it"),
)


@dataclass(frozen=True)
class Removed:
    """How many rows of a thread lost their values, or were deleted."""

    runs: int
    reviews: int
    calls: int
    decisions: int
    files: int
    artifacts: int
    answers: int


def why_not(tx: Connection, thread_id: str) -> str | None:
    """Say why the values of a thread cannot be removed now; None when they can."""
    for condition, reason in _WHY_NOT:
        found = select(threads.c.id).where(threads.c.id == thread_id, condition)
        if tx.execute(found).first() is not None:
            return reason
    return None


def finished(tx: Connection, *, before: datetime, limit: int) -> list[str]:
    """Return threads that may be emptied and in which nothing has happened since `before`, oldest first."""
    ended = select(func.max(runs.c.ended_at)).where(runs.c.thread_id == threads.c.id).scalar_subquery()
    reviewed = select(func.max(reviews.c.ended_at)).where(reviews.c.thread_id == threads.c.id)
    query = select(threads.c.id).where(
        threads.c.closed_at.is_(None),
        ended < before,
        func.coalesce(reviewed.scalar_subquery(), ended) < before,
        *(~condition for condition, _ in _WHY_NOT),
    )
    return list(tx.execute(query.order_by(threads.c.created_at, threads.c.id).limit(limit)).scalars())


def below(tx: Connection, thread_id: str) -> list[str]:
    """Return the threads of agents inside that of a thread."""
    start = thread_id + BELOW
    inside = func.substr(threads.c.id, 1, len(start)) == start
    return list(tx.execute(select(threads.c.id).where(inside).order_by(threads.c.id)).scalars())


def half_emptied(tx: Connection, *, limit: int) -> list[str]:
    """Return threads that are closed, and of which something may still lie outside of these tables."""
    query = select(threads.c.id).where(threads.c.closed_at.is_not(None), threads.c.emptied_at.is_(None))
    return list(tx.execute(query.order_by(threads.c.id).limit(limit)).scalars())


def run_ids(tx: Connection, thread_id: str) -> list[str]:
    """Return the runs of a thread."""
    return list(tx.execute(select(runs.c.id).where(runs.c.thread_id == thread_id)).scalars())


def counted(tx: Connection, thread_id: str) -> Removed:
    """Return how much a thread holds."""
    mine = run_ids(tx, thread_id)
    called = _called(mine)
    asked = _asked(thread_id)
    return Removed(
        runs=len(mine),
        reviews=_count(tx, reviews, reviews.c.thread_id == thread_id),
        calls=_count(tx, calls, calls.c.run_id.in_(mine)),
        decisions=_count(tx, decisions, decisions.c.review_id.in_(asked)),
        files=_count(tx, run_files, run_files.c.run_id.in_(mine)),
        artifacts=_count(tx, artifacts, artifacts.c.key.in_(called)),
        answers=_count(tx, late_answers, late_answers.c.thread_id == thread_id),
    )


def empty(tx: Connection, thread_id: str, *, now: datetime) -> Removed:
    """Remove every value of a thread and close it; its row is locked, and its runs have ended."""
    mine = run_ids(tx, thread_id)
    removed = counted(tx, thread_id)
    tx.execute(delete(artifacts).where(artifacts.c.key.in_(_called(mine))))
    tx.execute(delete(late_answers).where(late_answers.c.thread_id == thread_id))
    for table in (stream, callbacks, run_files, run_stages):
        tx.execute(delete(table).where(table.c.run_id.in_(mine)))
    gone = {"arguments": NO_VALUES, "result": None, "artifact": None}
    tx.execute(update(calls).where(calls.c.run_id.in_(mine)).values(gone))
    _empty_reviews(tx, thread_id)
    standing.forget(tx, _asked(thread_id), now=now)
    _forget_notices(tx, thread_id, mine)
    for run_id in mine:
        _forget_answers(tx, (f"runs/{run_id}/", f"reviews/{run_id}/", f"pipeline/{run_id}/"))
    _forget_answers(tx, (f"threads/{thread_id}/",))
    tx.execute(delete(answers).where(answers.c.route == f"agui/{thread_id}"))
    _empty_runs(tx, mine, now=now)
    tx.execute(update(threads).where(threads.c.id == thread_id).values(closed_at=now))
    return removed


def emptied(tx: Connection, thread_id: str, *, now: datetime) -> None:
    """Note that nothing of a closed thread is left anywhere."""
    tx.execute(update(threads).where(threads.c.id == thread_id).values(emptied_at=now))


def scour(path: Path) -> bool:
    """Rewrite an SQLite file without what was deleted from it; False when others were in the way.

    Deleting alone leaves the bytes where they were. Raises `StoreError` when the file cannot be used.
    """
    try:
        with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path.name} cannot be rewritten now: {error}") from error
    return not busy


def _empty_reviews(tx: Connection, thread_id: str) -> None:
    asked = _asked(thread_id)
    tx.execute(update(reviews).where(reviews.c.thread_id == thread_id).values(reason=None))
    said = decisions.c.review_id.in_(asked)
    tx.execute(update(decisions).where(said).values(message=None, arguments=None))
    inside = reviewed_calls.c.review_id.in_(asked)
    for row in tx.execute(
        select(reviewed_calls.c.review_id, reviewed_calls.c.key, reviewed_calls.c.verdict).where(inside)
    ).all():
        # Where the secrets were is named by keys of the arguments, which may say something themselves.
        tx.execute(
            update(reviewed_calls)
            .where(reviewed_calls.c.review_id == row.review_id, reviewed_calls.c.key == row.key)
            .values(proposed=NO_VALUES, arguments=NO_VALUES, salt="", verdict={**row.verdict, "secret": []})
        )


def _forget_notices(tx: Connection, thread_id: str, mine: Sequence[str]) -> None:
    asked = _asked(thread_id)
    tx.execute(delete(links).where(links.c.review_id.in_(asked)))
    told = or_(deliveries.c.subject.in_(asked), deliveries.c.subject.in_(mine))
    tx.execute(delete(deliveries).where(told))


def _asked(thread_id: str) -> Select[tuple[str]]:
    return select(reviews.c.id).where(reviews.c.thread_id == thread_id)


def _called(mine: Sequence[str]) -> Select[tuple[str]]:
    return select(calls.c.key).where(calls.c.run_id.in_(mine))


def _empty_runs(tx: Connection, mine: Sequence[str], *, now: datetime) -> None:
    """Leave of each run what happened; of a call of an agent elsewhere also which one it was."""
    for row in tx.execute(select(runs.c.id, runs.c.program, runs.c.input).where(runs.c.id.in_(mine))).all():
        kept = _call_without_values(row.input) if row.program.startswith(AGENT) and row.input else None
        values = {"input": kept, "answer": None, "reason": None, "redacted_at": now}
        tx.execute(update(runs).where(runs.c.id == row.id).values(values))


def _call_without_values(text: str) -> str:
    said = json.loads(text)
    left = {name: said[name] for name in ("key", "tool", "timeout")}
    return canonical({**left, "arguments": NO_VALUES, "proposed": NO_VALUES, "schema": {}})


def _forget_answers(tx: Connection, routes: Sequence[str]) -> None:
    """Delete what was answered to requests about something; its name is compared exactly, unlike by LIKE."""
    for route in routes:
        tx.execute(delete(answers).where(func.substr(answers.c.route, 1, len(route)) == route))


def _count(tx: Connection, table: Table, condition: ColumnElement[bool]) -> int:
    found: int = tx.execute(select(func.count()).select_from(table).where(condition)).scalar_one()
    return found
