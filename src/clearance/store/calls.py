"""The ledger: rows that say which call was started and how it ended, and the clearances it needs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, or_, select, update

from clearance.outcome import CallState
from clearance.run import AGENT, RunState
from clearance.store.runs import insert_ignoring, insert_new
from clearance.store.tables import artifacts, calls, clearances, late_answers, runs

# Made once: see `store.runs`.
_CALL = select(calls).where(calls.c.key == bindparam("call"))
_CALLS = select(calls).where(calls.c.key.in_(bindparam("keys", expanding=True)))
_OF_RUN = select(calls).where(calls.c.run_id == bindparam("run")).order_by(calls.c.key)
_MOVE = (
    update(calls)
    .where(
        calls.c.key == bindparam("call"),
        calls.c.attempt == bindparam("try"),
        calls.c.state.in_(bindparam("frm", expanding=True)),
    )
    .returning(calls.c.key)
)
_UNFINISHED = (
    select(calls.c.key)
    .join(runs, runs.c.id == calls.c.run_id)
    .where(
        runs.c.thread_id == bindparam("thread"),
        calls.c.state.in_([CallState.STARTED.value, CallState.UNCERTAIN.value]),
    )
    .limit(1)
)
_CLEARANCE = (
    clearances.c.id,
    clearances.c.key,
    clearances.c.review_id,
    clearances.c.fingerprint,
    clearances.c.attempt,
)
_USE = (
    update(clearances)
    .where(
        clearances.c.key == bindparam("call"),
        clearances.c.attempt == bindparam("try"),
        clearances.c.fingerprint == bindparam("exact"),
        clearances.c.status == "open",
    )
    .returning(*_CLEARANCE)
)


@dataclass(frozen=True)
class LedgerRow:
    """One call in the ledger. `fence` and `worker` say which segment started it; `due_at` is its timeout."""

    key: str
    run_id: str
    tool: str
    arguments: str
    fingerprint: str
    state: CallState
    attempt: int
    fence: int = 0
    worker: str | None = None
    started_at: datetime | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None
    result: str | None = None
    artifact: str | None = None


@dataclass(frozen=True)
class Clearance:
    """The right to execute one call, with exactly the arguments of this fingerprint, once."""

    id: str
    key: str
    review_id: str
    fingerprint: str
    attempt: int


def row(tx: Connection, key: str) -> LedgerRow | None:
    """Return a call's row."""
    found = tx.execute(_CALL, {"call": key}).mappings().first()
    return None if found is None else _row(found)


def rows(tx: Connection, keys: Collection[str]) -> dict[str, LedgerRow]:
    """Return those of the calls that the ledger has, by their keys."""
    found = tx.execute(_CALLS, {"keys": list(keys)}).mappings()
    return {each["key"]: _row(each) for each in found}


def of_run(tx: Connection, run_id: str) -> list[LedgerRow]:
    """Return the rows of a run's calls."""
    return [_row(found) for found in tx.execute(_OF_RUN, {"run": run_id}).mappings()]


def in_state(tx: Connection, *states: CallState, limit: int = 100, after: str = "") -> list[LedgerRow]:
    """Return calls in these states, in the order of their keys, from the first one after `after`."""
    query = select(calls).where(calls.c.state.in_([state.value for state in states]), calls.c.key > after)
    return [_row(found) for found in tx.execute(query.order_by(calls.c.key).limit(limit)).mappings()]


def record(tx: Connection, entry: LedgerRow) -> bool:
    """Keep a call that is new to the ledger; False when it is there."""
    values = {**entry.__dict__, "state": entry.state.value}
    return insert_new(tx, calls.c.key, values)


def move(
    tx: Connection,
    key: str,
    *,
    attempt: int,
    frm: tuple[CallState, ...],
    to: CallState,
    values: Mapping[str, Any] | None = None,
) -> bool:
    """Move a call from one state to another; False when it is not in `frm` at this attempt."""
    found = {"call": key, "try": attempt, "frm": [state.value for state in frm]}
    return tx.execute(_MOVE, {**found, "state": to.value, **(values or {})}).first() is not None


def mint(tx: Connection, clearance: Clearance, *, now: datetime) -> None:
    """Keep a new clearance. A second open one for the same call is an error of the database."""
    tx.execute(insert(clearances), {**clearance.__dict__, "status": "open", "minted_at": now})


def use(tx: Connection, key: str, *, attempt: int, fingerprint: str, now: datetime) -> Clearance | None:
    """Use up the open clearance that fits exactly; None when there is none."""
    fitting = {"call": key, "try": attempt, "exact": fingerprint}
    found = tx.execute(_USE, {**fitting, "status": "used", "used_at": now}).mappings()
    row = found.first()
    return None if row is None else Clearance(**row)


def void(tx: Connection, key: str) -> list[Clearance]:
    """Take back whatever clearance of the call is open; return what it was."""
    found = tx.execute(
        update(clearances)
        .where(clearances.c.key == key, clearances.c.status == "open")
        .values(status="void")
        .returning(*_CLEARANCE)
    ).mappings()
    return [Clearance(**row) for row in found]


def open_second_attempts(tx: Connection, thread_id: str) -> list[str]:
    """Return the keys of uncertain calls of a thread that people cleared to run again."""
    query = (
        select(calls.c.key)
        .join(clearances, clearances.c.key == calls.c.key)
        .join(runs, runs.c.id == calls.c.run_id)
        .where(
            runs.c.thread_id == thread_id,
            calls.c.state == CallState.UNCERTAIN.value,
            clearances.c.status == "open",
        )
    )
    return list(tx.execute(query).scalars())


def any_unfinished(tx: Connection, thread_id: str) -> bool:
    """Whether a call of the thread was started and has no outcome that is known."""
    return tx.execute(_UNFINISHED, {"thread": thread_id}).first() is not None


def abandoned(tx: Connection, thread_id: str, *, fence: int | None, now: datetime) -> list[LedgerRow]:
    """Return calls of a thread that were started and lost, and that no turn comes back to.

    They are second attempts, which run beside a turn, and the calls of a run that has ended without them;
    lost are those of an earlier segment, and those past their time limit.
    """
    lost = calls.c.due_at <= now
    if fence is not None:
        lost = or_(lost, calls.c.fence < fence)
    query = (
        select(calls)
        .join(runs, runs.c.id == calls.c.run_id)
        .where(
            runs.c.thread_id == thread_id,
            calls.c.state == CallState.STARTED.value,
            lost,
            or_(calls.c.attempt > 1, runs.c.ended_at.is_not(None)),
        )
        .order_by(calls.c.key)
    )
    return [_row(found) for found in tx.execute(query).mappings()]


def overdue_elsewhere(tx: Connection, *, now: datetime, limit: int) -> list[LedgerRow]:
    """Return calls that an agent elsewhere took, and whose outcome it has not told in time."""
    query = (
        select(calls)
        .join(runs, runs.c.id == calls.c.run_id)
        .where(
            calls.c.state == CallState.STARTED.value,
            calls.c.due_at <= now,
            runs.c.program.startswith(AGENT, autoescape=True),
        )
        .order_by(calls.c.key)
        .limit(limit)
    )
    return [_row(found) for found in tx.execute(query).mappings()]


def keep_artifact(tx: Connection, artifact_id: str, *, key: str, content: bytes) -> None:
    """Keep what was too large for the model."""
    tx.execute(insert_ignoring(tx, artifacts).values(id=artifact_id, key=key, content=content))


def artifact(tx: Connection, artifact_id: str) -> bytes | None:
    """Return a kept artifact."""
    content: bytes | None = tx.execute(
        select(artifacts.c.content).where(artifacts.c.id == artifact_id)
    ).scalar()
    return content


def add_late_answer(
    tx: Connection, answer_id: str, *, thread_id: str, key: str, text: str, now: datetime
) -> None:
    """Keep an answer that the thread's next message brings in."""
    tx.execute(
        insert_ignoring(tx, late_answers).values(
            id=answer_id, thread_id=thread_id, key=key, text=text, at=now
        )
    )


def late_answers_for(tx: Connection, run: str, *, thread_id: str) -> dict[str, str]:
    """Return by id the answers that this run brings into its thread; asking again gives the same.

    Among them are those of an earlier run that did not come to its end: whether it had brought them in, only
    the thread's messages tell.
    """
    broken_off = select(runs.c.id).where(
        runs.c.thread_id == thread_id, runs.c.state.in_([RunState.FAILED.value, RunState.CANCELLED.value])
    )
    free = or_(late_answers.c.taken_by.is_(None), late_answers.c.taken_by.in_(broken_off))
    tx.execute(update(late_answers).where(late_answers.c.thread_id == thread_id, free).values(taken_by=run))
    query = select(late_answers.c.id, late_answers.c.text).where(late_answers.c.taken_by == run)
    found = tx.execute(query.order_by(late_answers.c.at, late_answers.c.id))
    return {row.id: row.text for row in found}


def _row(found: RowMapping) -> LedgerRow:
    return LedgerRow(**{**found, "state": CallState(found["state"])})
