"""Rows of threads and runs: starting, claiming, parking, ending."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Column, Connection, Executable, bindparam, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from clearance.errors import FenceLostError, NotFoundError, ThreadClosedError
from clearance.run import OPEN, Run, RunState
from clearance.store.tables import reviews, runs, threads

_OPEN_STATES = tuple(sorted(OPEN))

BELOW = "|"
"""Stands in the id of a thread between that of an agent and what says where inside it another one runs."""

# Statements that a turn needs are made once: making one costs more than to run it.
_THREAD = select(
    threads.c.id,
    threads.c.program,
    threads.c.caller_driven,
    threads.c.wanted,
    threads.c.done,
    threads.c.fence,
    threads.c.owner,
    threads.c.closed_at,
).where(threads.c.id == bindparam("thread"))
_LOCKED_THREAD = _THREAD.with_for_update()
_SET_THREAD = update(threads).where(threads.c.id == bindparam("thread"))
_WANT = _SET_THREAD.values(wanted=threads.c.wanted + 1).returning(threads.c.program, threads.c.caller_driven)
_CLAIM = _SET_THREAD.values(fence=threads.c.fence + 1)
_DUE = (
    select(threads.c.id)
    .where(
        threads.c.wanted > threads.c.done,
        threads.c.program.in_(bindparam("programs", expanding=True)),
        threads.c.owner.is_(None),
        threads.c.caller_driven.is_(False),
    )
    .limit(bindparam("most"))
)
_OWNERS = select(threads.c.owner).where(threads.c.owner.is_not(None)).distinct()
_RUN = select(runs).where(runs.c.id == bindparam("run"))
_RUNS = select(runs).where(runs.c.id.in_(bindparam("ids", expanding=True)))
_OPEN_RUN = select(runs).where(runs.c.thread_id == bindparam("thread"), runs.c.state.in_(_OPEN_STATES))
_SET_OPEN_RUN = update(runs).where(runs.c.id == bindparam("run"), runs.c.state.in_(_OPEN_STATES))
_END_RUN = _SET_OPEN_RUN.returning(runs.c.id)


@dataclass(frozen=True)
class Thread:
    """A thread's row. It has work while `wanted` is above `done`; retention has closed it at `closed_at`."""

    id: str
    program: str
    caller_driven: bool
    wanted: int
    done: int
    fence: int
    owner: str | None
    closed_at: datetime | None = None

    def check_open(self) -> None:
        """Raise `ThreadClosedError` for a thread that takes nothing any more."""
        if self.closed_at is not None:
            raise ThreadClosedError(self.id, self.closed_at)


@dataclass(frozen=True)
class Claim:
    """The right of one segment to advance a thread, until a higher fence takes it over.

    `unfinished`: a call of the thread was started and has no outcome that is known.
    """

    thread_id: str
    program: str
    fence: int
    wanted: int
    run: Run | None
    unfinished: bool = False


def insert_ignoring(tx: Connection, table: object) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT that does nothing where the row exists; `.returning()` tells which it was.

    `rowcount` must not be used for that: psycopg reports -1.
    """
    make = sqlite.insert if tx.dialect.name == "sqlite" else postgresql.insert
    return make(table).on_conflict_do_nothing()  # type: ignore[arg-type]


@cache
def _insert_new(dialect: str, key: Column[Any]) -> Executable:
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return make(key.table).on_conflict_do_nothing().returning(key)


def insert_new(tx: Connection, key: Column[Any], values: Mapping[str, Any]) -> bool:
    """Insert a row into the table of this key; False where something like it exists, which stays."""
    return tx.execute(_insert_new(tx.dialect.name, key), values).first() is not None


def ensure_thread(
    tx: Connection, thread_id: str, *, program: str, now: datetime, caller_driven: bool = False
) -> Thread:
    """Return the thread's row, locked until the transaction ends, made when there was none."""
    values = {"id": thread_id, "program": program, "caller_driven": caller_driven, "created_at": now}
    insert_new(tx, threads.c.id, {**values, "wanted": 0, "done": 0, "fence": 0})
    return lock_thread(tx, thread_id)


def lock_thread(tx: Connection, thread_id: str) -> Thread:
    """Return the thread's row, locked until the transaction ends: always the first lock that is taken."""
    row = tx.execute(_LOCKED_THREAD, {"thread": thread_id}).mappings().first()
    if row is None:
        raise NotFoundError(f"There is no thread {thread_id}.")
    return Thread(**row)


def thread(tx: Connection, thread_id: str) -> Thread | None:
    """Return the thread's row as it is now, not locked."""
    row = tx.execute(_THREAD, {"thread": thread_id}).mappings().first()
    return None if row is None else Thread(**row)


def check_fence(found: Thread, fence: int | None) -> None:
    """Raise `FenceLostError` when a segment that claimed `fence` was taken over; None is unfenced."""
    if fence is not None and found.fence != fence:
        raise FenceLostError(found.id)


def insert_run(tx: Connection, run: Run) -> bool:
    """Keep a new run; False when it exists, or when its thread has another open one."""
    values = {
        "id": run.id,
        "thread_id": run.thread_id,
        "program": run.program,
        "state": run.state.value,
        "requester": run.requester,
        "input": run.input,
        "created_at": run.created_at,
    }
    return insert_new(tx, runs.c.id, values)


def open_run(tx: Connection, thread_id: str) -> Run | None:
    """Return the thread's one open run."""
    return _one(tx, _OPEN_RUN, {"thread": thread_id})


def open_below(tx: Connection, thread_id: str) -> list[str]:
    """Return the open runs of agents inside the thread's calls; see `BELOW`."""
    query = select(runs.c.id).where(
        runs.c.thread_id.startswith(thread_id + BELOW, autoescape=True), runs.c.state.in_(_OPEN_STATES)
    )
    return list(tx.execute(query).scalars())


def run(tx: Connection, run_id: str) -> Run:
    """Return a run; `NotFoundError` when there is none."""
    found = _one(tx, _RUN, {"run": run_id})
    if found is None:
        raise NotFoundError(f"There is no run {run_id}.")
    return found


def by_id(tx: Connection, ids: Collection[str]) -> dict[str, Run]:
    """Return those of the runs that are there, by their ids."""
    found = tx.execute(_RUNS, {"ids": list(ids)}).mappings()
    return {row["id"]: _run(row) for row in found}


def list_runs(
    tx: Connection,
    *,
    states: tuple[RunState, ...] = (),
    thread_id: str | None = None,
    program: str | None = None,
    limit: int = 50,
) -> list[Run]:
    """Return the newest runs first."""
    query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)
    if states:
        query = query.where(runs.c.state.in_([state.value for state in states]))
    if thread_id is not None:
        query = query.where(runs.c.thread_id == thread_id)
    if program is not None:
        query = query.where(runs.c.program == program)
    return [_run(row) for row in tx.execute(query).mappings()]


def ids_like(tx: Connection, text: str, *, program: str, limit: int) -> list[str]:
    """Return ids of a program's runs that begin with the text, the newest first."""
    named = runs.c.id.startswith(text, autoescape=True)
    query = select(runs.c.id).where(named, runs.c.program == program)
    found = tx.execute(query.order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)).scalars()
    # LIKE takes capital and small letters for the same on SQLite.
    return [each for each in found if each.startswith(text)]


def requesters(tx: Connection, thread_id: str) -> list[str]:
    """Return who asked for the runs of a thread."""
    query = select(runs.c.requester).where(runs.c.thread_id == thread_id).distinct()
    return list(tx.execute(query).scalars())


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
    tx.execute(_SET_OPEN_RUN, {"run": run_id, "state": state.value})


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
    ended = {"state": state.value, "ended_at": now, "answer": answer, "reason": reason}
    return tx.execute(_END_RUN, {"run": run_id, **ended}).first() is not None


def want(tx: Connection, thread_id: str) -> str | None:
    """Ask for one more segment of the thread; return its program if workers advance it."""
    found = tx.execute(_WANT, {"thread": thread_id}).first()
    return None if found is None or found.caller_driven else str(found.program)


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
    tx.execute(_CLAIM, {"thread": thread_id, "owner": owner})
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
    tx.execute(_SET_THREAD, {"thread": claimed.thread_id, "done": claimed.wanted, "owner": None})
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
    return list(tx.execute(_DUE, {"programs": programs, "most": limit}).scalars())


def owners(tx: Connection) -> list[str]:
    """Return the names that own threads now."""
    return list(tx.execute(_OWNERS).scalars())


def disown(tx: Connection, owner: str) -> None:
    """Free every thread that an earlier holder of this name left behind."""
    tx.execute(update(threads).where(threads.c.owner == owner).values(owner=None))


def _one(tx: Connection, query: Executable, values: Mapping[str, Any]) -> Run | None:
    row = tx.execute(query, values).mappings().first()
    return None if row is None else _run(row)


def _run(row: Mapping[Any, Any]) -> Run:
    return Run(**{**row, "state": RunState(row["state"])})
