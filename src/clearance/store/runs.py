"""Rows of threads and runs: starting, claiming, parking, ending."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from clearance.errors import FenceLostError, NotFoundError
from clearance.run import OPEN, Run, RunState
from clearance.store.tables import reviews, runs, threads

_OPEN_STATES = tuple(sorted(OPEN))


@dataclass(frozen=True)
class Thread:
    """A thread's row. It has work while `wanted` is above `done`."""

    id: str
    program: str
    caller_driven: bool
    wanted: int
    done: int
    fence: int
    owner: str | None


@dataclass(frozen=True)
class Claim:
    """The right of one segment to advance a thread, until a higher fence takes it over."""

    thread_id: str
    program: str
    fence: int
    wanted: int
    run: Run | None


def insert_ignoring(tx: Connection, table: object) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT that does nothing where the row exists; `.returning()` tells which it was.

    `rowcount` must not be used for that: psycopg reports -1.
    """
    make = sqlite.insert if tx.dialect.name == "sqlite" else postgresql.insert
    return make(table).on_conflict_do_nothing()  # type: ignore[arg-type]


def ensure_thread(
    tx: Connection, thread_id: str, *, program: str, now: datetime, caller_driven: bool = False
) -> Thread:
    """Return the thread's row, locked until the transaction ends, made when there was none."""
    tx.execute(
        insert_ignoring(tx, threads).values(
            id=thread_id,
            program=program,
            caller_driven=caller_driven,
            wanted=0,
            done=0,
            fence=0,
            created_at=now,
        )
    )
    return lock_thread(tx, thread_id)


def lock_thread(tx: Connection, thread_id: str) -> Thread:
    """Return the thread's row, locked until the transaction ends: always the first lock that is taken."""
    row = tx.execute(_threads().where(threads.c.id == thread_id).with_for_update()).mappings().first()
    if row is None:
        raise NotFoundError(f"There is no thread {thread_id}.")
    return Thread(**row)


def thread(tx: Connection, thread_id: str) -> Thread | None:
    """Return the thread's row as it is now, not locked."""
    row = tx.execute(_threads().where(threads.c.id == thread_id)).mappings().first()
    return None if row is None else Thread(**row)


def check_fence(found: Thread, fence: int | None) -> None:
    """Raise `FenceLostError` when a segment that claimed `fence` was taken over; None is unfenced."""
    if fence is not None and found.fence != fence:
        raise FenceLostError(found.id)


def insert_run(tx: Connection, run: Run) -> bool:
    """Keep a new run; False when it exists, or when its thread has another open one."""
    row = tx.execute(
        insert_ignoring(tx, runs)
        .values(
            id=run.id,
            thread_id=run.thread_id,
            program=run.program,
            state=run.state.value,
            requester=run.requester,
            input=run.input,
            created_at=run.created_at,
        )
        .returning(runs.c.id)
    ).first()
    return row is not None


def open_run(tx: Connection, thread_id: str) -> Run | None:
    """Return the thread's one open run."""
    return _one(tx, select(runs).where(runs.c.thread_id == thread_id, runs.c.state.in_(_OPEN_STATES)))


def run(tx: Connection, run_id: str) -> Run:
    """Return a run; `NotFoundError` when there is none."""
    found = _one(tx, select(runs).where(runs.c.id == run_id))
    if found is None:
        raise NotFoundError(f"There is no run {run_id}.")
    return found


def list_runs(
    tx: Connection, *, states: tuple[RunState, ...] = (), thread_id: str | None = None, limit: int = 50
) -> list[Run]:
    """Return the newest runs first."""
    query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)
    if states:
        query = query.where(runs.c.state.in_([state.value for state in states]))
    if thread_id is not None:
        query = query.where(runs.c.thread_id == thread_id)
    return [_run(row) for row in tx.execute(query).mappings()]


def wanting(tx: Connection, *, states: tuple[RunState, ...]) -> list[tuple[Run, datetime]]:
    """Return the runs in these open states whose threads want a segment, and since when at the latest.

    That is when the run was asked for, or when its last review ended. The longest waiting come first.
    """
    ended = select(func.max(reviews.c.ended_at)).where(reviews.c.run_id == runs.c.id).scalar_subquery()
    query = (
        select(runs, ended.label("decided_at"))
        .join(threads, threads.c.id == runs.c.thread_id)
        .where(
            runs.c.state.in_([state.value for state in states]),
            threads.c.wanted > threads.c.done,
            threads.c.caller_driven.is_(False),
        )
    )
    found = [
        (_run({name: value for name, value in row.items() if name != "decided_at"}), row["decided_at"])
        for row in tx.execute(query).mappings()
    ]
    waiting = [(run, max(run.created_at, decided_at or run.created_at)) for run, decided_at in found]
    return sorted(waiting, key=lambda pair: pair[1])


def set_state(tx: Connection, run_id: str, state: RunState) -> None:
    """Move an open run to another open state."""
    tx.execute(
        update(runs).where(runs.c.id == run_id, runs.c.state.in_(_OPEN_STATES)).values(state=state.value)
    )


def end_run(
    tx: Connection,
    run_id: str,
    state: RunState,
    *,
    now: datetime,
    answer: str | None = None,
    reason: str | None = None,
) -> bool:
    """End an open run; False when it had ended before."""
    row = tx.execute(
        update(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(_OPEN_STATES))
        .values(state=state.value, ended_at=now, answer=answer, reason=reason)
        .returning(runs.c.id)
    ).first()
    return row is not None


def want(tx: Connection, thread_id: str) -> None:
    """Ask for one more segment of the thread."""
    tx.execute(update(threads).where(threads.c.id == thread_id).values(wanted=threads.c.wanted + 1))


def wants(tx: Connection, thread_id: str) -> bool:
    """Whether the thread wants a segment that it has not had."""
    found = thread(tx, thread_id)
    return found is not None and found.wanted > found.done


def claim(tx: Connection, thread_id: str, *, owner: str | None) -> Claim | None:
    """Take the thread for one segment: its fence rises, and any earlier segment is shut out.

    None when nothing is wanted of it, or when it has an owner.
    """
    found = lock_thread(tx, thread_id)
    if found.wanted <= found.done or found.owner is not None:
        return None
    tx.execute(
        update(threads).where(threads.c.id == thread_id).values(fence=threads.c.fence + 1, owner=owner)
    )
    return Claim(
        thread_id=thread_id,
        program=found.program,
        fence=found.fence + 1,
        wanted=found.wanted,
        run=open_run(tx, thread_id),
    )


def release(tx: Connection, claimed: Claim) -> bool:
    """Note that everything wanted at the claim is done; True when more came meanwhile."""
    found = lock_thread(tx, claimed.thread_id)
    check_fence(found, claimed.fence)
    tx.execute(
        update(threads).where(threads.c.id == claimed.thread_id).values(done=claimed.wanted, owner=None)
    )
    return found.wanted > claimed.wanted


def unclaim(tx: Connection, claimed: Claim) -> None:
    """Give a claimed thread back with its work undone."""
    tx.execute(
        update(threads)
        .where(threads.c.id == claimed.thread_id, threads.c.fence == claimed.fence)
        .values(owner=None)
    )


def shut_out(tx: Connection, thread_id: str, *, fence: int = 0) -> None:
    """Take a thread from whoever holds it: its fence rises, above `fence` too, and it has no owner.

    The thread is locked until the transaction ends.
    """
    found = lock_thread(tx, thread_id)
    tx.execute(
        update(threads).where(threads.c.id == thread_id).values(fence=max(found.fence, fence) + 1, owner=None)
    )


def due_threads(tx: Connection, *, programs: tuple[str, ...], limit: int) -> list[str]:
    """Return threads of these programs that want a segment and have no owner."""
    query = (
        select(threads.c.id)
        .where(
            threads.c.wanted > threads.c.done,
            threads.c.program.in_(programs),
            threads.c.owner.is_(None),
            threads.c.caller_driven.is_(False),
        )
        .limit(limit)
    )
    return list(tx.execute(query).scalars())


def owners(tx: Connection) -> list[str]:
    """Return the names that own threads now."""
    return list(tx.execute(select(threads.c.owner).where(threads.c.owner.is_not(None)).distinct()).scalars())


def disown(tx: Connection, owner: str) -> None:
    """Free every thread that an earlier holder of this name left behind."""
    tx.execute(update(threads).where(threads.c.owner == owner).values(owner=None))


def _threads() -> Select[tuple[str, str, bool, int, int, int, str | None]]:
    c = threads.c
    return select(c.id, c.program, c.caller_driven, c.wanted, c.done, c.fence, c.owner)


def _one(tx: Connection, query: Select[tuple[object, ...]]) -> Run | None:
    row = tx.execute(query).mappings().first()
    return None if row is None else _run(row)


def _run(row: Mapping[Any, Any]) -> Run:
    return Run(**{**row, "state": RunState(row["state"])})
