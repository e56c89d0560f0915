"""Keeping what became of a started call: its outcome, a late one, or that nobody knows.

An outcome is judged by the call's own row, not by the thread's fence: the true result of a worker that was
frozen counts until its successor has marked the call uncertain.
"""

from datetime import datetime

from sqlalchemy import Connection

from clearance import outcome as words
from clearance.audit import AuditKind
from clearance.ending import end_with_call
from clearance.killpoints import at
from clearance.ledger import Ledger, Taken, outcome_of
from clearance.outcome import CallState, Outcome
from clearance.people import SYSTEM
from clearance.redaction import masked
from clearance.results import Result, bound
from clearance.review import ReviewKind, ReviewStatus, closed
from clearance.store import audit, calls, reviews, runs, secret_parts
from clearance.uncertainty import make_uncertain


def keep(ledger: Ledger, taken: Taken, result: Result) -> Outcome:
    """Keep a tool's result, or note that it came late; return how the call then stands."""
    state = CallState.EXECUTED if result.ok else CallState.FAILED
    artifact_id = f"{taken.key}/{taken.attempt}"
    bounded = bound(result.text, artifact=artifact_id)
    with ledger.database.write() as tx:
        runs.lock_thread(tx, taken.thread_id)
        now = ledger.database.now(tx)
        values = {"result": bounded.text, "ended_at": now, "artifact": artifact_id if bounded.whole else None}
        if bounded.whole is not None:
            calls.keep_artifact(tx, artifact_id, key=taken.key, content=bounded.whole)
        started = (CallState.STARTED,)
        if calls.move(tx, taken.key, attempt=taken.attempt, frm=started, to=state, values=values):
            kind = AuditKind.CALL_EXECUTED if result.ok else AuditKind.CALL_FAILED
            facts = {"attempt": taken.attempt, "characters": len(result.text)}
            audit.write(tx, kind, taken.key, actor=ledger.worker, now=now, facts=facts)
            end_with_call(tx, taken.run_id, actor=ledger.worker, now=now)
            if taken.attempt > 1:
                _bring_in(tx, taken, text=bounded.text, state=state, now=now)
        else:
            _keep_late(ledger, tx, taken, values=values, state=state, now=now)
        at("in-keep")
        return _standing(tx, taken.key)


def conclude(ledger: Ledger, taken: Taken, *, fence: int | None) -> Outcome:
    """Return how a call stands whose time is over: still without outcome, it is uncertain from now on.

    A tool that only reads has had no effect to be uncertain about, so it has failed. Raises `FenceLostError`
    for a segment that was taken over: its successor may have started the same attempt anew.
    """
    with ledger.database.write() as tx:
        runs.check_fence(runs.lock_thread(tx, taken.thread_id), fence)
        now = ledger.database.now(tx)
        row = calls.row(tx, taken.key)
        if row is not None and row.state is CallState.STARTED and row.attempt == taken.attempt:
            if taken.tool.read_only:
                _fail_reading(ledger, tx, taken, now=now)
            else:
                run = runs.run(tx, taken.run_id)
                make_uncertain(tx, row, run=run, actor=ledger.worker, now=now)
        at("in-conclude")
        return _standing(tx, taken.key)


def _fail_reading(ledger: Ledger, tx: Connection, taken: Taken, *, now: datetime) -> None:
    text = words.timed_out(taken.tool.name, seconds=taken.tool.timeout)
    values = {"result": text, "ended_at": now}
    frm = (CallState.STARTED,)
    calls.move(tx, taken.key, attempt=taken.attempt, frm=frm, to=CallState.FAILED, values=values)
    facts = {"attempt": taken.attempt, "reason": "timeout"}
    audit.write(tx, AuditKind.CALL_FAILED, taken.key, actor=ledger.worker, now=now, facts=facts)


def _bring_in(tx: Connection, taken: Taken, *, text: str, state: CallState, now: datetime) -> None:
    """Let the thread's next message tell the model what became of a call whose turn went on without it."""
    error = state is not CallState.EXECUTED
    program = runs.run(tx, taken.run_id).program
    told = masked(taken.arguments, secret_parts.of_call(tx, program, taken.tool.name, taken.arguments))
    text = words.late_answer(taken.tool.name, told, text=text, error=error)
    answer_id = f"{taken.key}/{taken.attempt}"
    calls.add_late_answer(tx, answer_id, thread_id=taken.thread_id, key=taken.key, text=text, now=now)


def _keep_late(
    ledger: Ledger,
    tx: Connection,
    taken: Taken,
    *,
    values: dict[str, object],
    state: CallState,
    now: datetime,
) -> None:
    """Keep a result that came after the call was called uncertain.

    While nobody has answered what became of it, this is the answer, and the question is withdrawn.
    """
    facts = {"attempt": taken.attempt, "ok": state is CallState.EXECUTED}
    audit.write(tx, AuditKind.CALL_LATE, taken.key, actor=ledger.worker, now=now, facts=facts)
    asked = reviews.of_call(tx, taken.key, kind=ReviewKind.OUTCOME)
    pending = [review for review in asked if review.status is ReviewStatus.PENDING]
    frm = (CallState.UNCERTAIN,)
    if not pending or not calls.move(tx, taken.key, attempt=taken.attempt, frm=frm, to=state, values=values):
        return
    for before in pending:
        after = closed(before, ReviewStatus.WITHDRAWN, now=now, reason="The tool's own result came late.")
        reviews.save(tx, before, after)
        closing = {"reason": after.reason}
        audit.write(tx, AuditKind.REVIEW_WITHDRAWN, after.id, actor=SYSTEM, now=now, facts=closing)
    end_with_call(tx, taken.run_id, actor=ledger.worker, now=now)
    _bring_in(tx, taken, text=str(values["result"]), state=state, now=now)


def _standing(tx: Connection, key: str) -> Outcome:
    row = calls.row(tx, key)
    if row is None:
        raise LookupError(f"started call {key} is not in the ledger")
    return outcome_of(row)
