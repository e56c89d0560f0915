"""Turns: the transactions that start a run, claim its thread for a segment, and end it."""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import ConflictError, EmptyMessageError, ForbiddenError, InvalidInputError
from clearance.killpoints import at
from clearance.ledger import Ledger
from clearance.once import Once
from clearance.once import claim as claim_once
from clearance.once import keep as keep_once
from clearance.outcome import FINAL, CallState, withdrawn
from clearance.people import Role, has_role
from clearance.review import ReviewStatus, closed
from clearance.run import Run, RunState, conflict, is_one_call
from clearance.settlement import close_calls
from clearance.store import audit, calls, people, reviews, runs
from clearance.store.runs import Claim

MAX_MESSAGE = 1024 * 1024

log = logging.getLogger(__name__)


def start(
    ledger: Ledger,
    thread_id: str,
    text: str,
    *,
    run_id: str,
    program: str,
    by: str,
    once: Once[Run] | None = None,
) -> Run:
    """Start a run for a person's message; a worker takes it from there.

    Raises `EmptyMessageError`, and `InvalidInputError` for a text that cannot be kept; `ThreadBusyError`
    while an earlier message is worked on, and `ReviewPendingError` while one waits for people; `Repeated`
    for a request that was done before. A message never decides anything.
    """
    check_message(text)
    with ledger.database.write() as tx:
        claim_once(ledger.database, tx, once)
        now = ledger.database.now(tx)
        thread = runs.ensure_thread(tx, thread_id, program=program, now=now)
        thread.check_open()
        if thread.program != program or thread.caller_driven:
            raise ConflictError(f"Thread {thread_id} belongs to {thread.program}. Use another thread.")
        run = Run(
            id=run_id,
            thread_id=thread_id,
            program=program,
            state=RunState.QUEUED,
            requester=by,
            input=text,
            created_at=now,
        )
        earlier = runs.open_run(tx, thread_id)
        if earlier is not None:
            waiting = reviews.pending(tx, thread_id)
            raise conflict(earlier, pending_review=None if waiting is None else waiting.id)
        runs.insert_run(tx, run)
        known = ledger.programs.get(program)
        facts = {"thread": thread_id, "program": program, "model": known.model if known is not None else ""}
        audit.write(tx, AuditKind.RUN_QUEUED, run_id, actor=by, now=now, facts=facts)
        ledger.wake(tx, thread_id)
        keep_once(tx, once, run)
        at("in-start")
        return run


def check_message(text: str) -> None:
    """Refuse a message without text, or one that no database keeps as it is."""
    if not text.strip():
        raise EmptyMessageError
    if len(text.encode(errors="replace")) > MAX_MESSAGE:
        raise InvalidInputError(f"The message is larger than {MAX_MESSAGE} bytes. Send a shorter one.")
    if "\0" in text or text.encode(errors="replace").decode() != text:
        raise InvalidInputError("The message holds a null character or half of a surrogate pair.")


def start_by_caller(ledger: Ledger, run: Run) -> Run:
    """Keep the run of a caller who advances its thread alone; the same run again is the same."""
    with ledger.database.write() as tx:
        now = ledger.database.now(tx)
        run = replace(run, created_at=now)
        thread = runs.ensure_thread(tx, run.thread_id, program=run.program, now=now, caller_driven=True)
        thread.check_open()
        if not thread.caller_driven:
            raise ConflictError(f"Thread {thread.id} is advanced by a worker. Use another thread.")
        if thread.program != run.program and (is_one_call(thread.program) or is_one_call(run.program)):
            raise ConflictError(f"Thread {thread.id} belongs to {thread.program}. Use another thread.")
        earlier = runs.open_run(tx, run.thread_id)
        if earlier is not None and earlier.id != run.id:
            _cancel(ledger, tx, earlier, now=now, by=run.requester, reason="its caller went on without it")
        if runs.insert_run(tx, run):
            facts = {"thread": run.thread_id}
            audit.write(tx, AuditKind.RUN_QUEUED, run.id, actor=run.requester, now=now, facts=facts)
        return runs.run(tx, run.id)


def finish_by_caller(ledger: Ledger, run_id: str, *, failed: str | None = None) -> bool:
    """End the run of a caller who advances its thread alone, with `failed` as the reason of a failure.

    A run that has ended stays as it is. False: a call of the run is still open, and so is the run;
    or a worker advances the thread, and ends its runs.
    """
    with ledger.database.write() as tx:
        found = runs.run(tx, run_id)
        thread = runs.lock_thread(tx, found.thread_id)
        if not thread.caller_driven or any(row.state not in FINAL for row in calls.of_run(tx, run_id)):
            return False
        now = ledger.database.now(tx)
        state = RunState.DONE if failed is None else RunState.FAILED
        if runs.end_run(tx, run_id, state, now=now, reason=failed):
            kind = AuditKind.RUN_DONE if failed is None else AuditKind.RUN_FAILED
            audit.write(tx, kind, run_id, actor=found.requester, now=now)
        return True


def find(tx: Connection, run_id: str) -> Run:
    """Return a run; `NotFoundError` when there is none."""
    return runs.run(tx, run_id)


def claim(ledger: Ledger, thread_id: str, *, owner: str | None) -> Claim | None:
    """Take a thread for one segment; None when nothing is wanted of it, or it has an owner."""
    with ledger.database.write(hasty=True) as tx:
        claimed = runs.claim(tx, thread_id, owner=owner)
        at("in-claim")
        if claimed is None:
            return None
        claimed = replace(claimed, unfinished=calls.any_unfinished(tx, thread_id))
        if claimed.run is None or claimed.run.state is RunState.WAITING:
            return claimed
        now = ledger.database.now(tx)
        runs.set_state(tx, claimed.run.id, RunState.RUNNING)
        facts = {"fence": claimed.fence}
        audit.write(tx, AuditKind.RUN_RESUMED, claimed.run.id, actor=ledger.worker, now=now, facts=facts)
        return replace(claimed, run=replace(claimed.run, state=RunState.RUNNING))


def check_claim(ledger: Ledger, thread_id: str, *, fence: int | None) -> None:
    """Raise `FenceLostError` when the thread was taken over from the segment that claimed `fence`."""
    with ledger.database.read() as tx:
        found = runs.thread(tx, thread_id)
    if found is not None:
        runs.check_fence(found, fence)


def finish(ledger: Ledger, claimed: Claim, *, answer: str | None) -> bool:
    """End a segment, and with an answer its run; True when more was wanted meanwhile.

    Raises `FenceLostError` when the thread was taken over: then nothing of it is kept.
    """
    with ledger.database.write() as tx:
        more = runs.release(tx, claimed)
        now = ledger.database.now(tx)
        run = claimed.run
        if (
            run is not None
            and answer is not None
            and runs.end_run(tx, run.id, RunState.DONE, now=now, answer=answer)
        ):
            audit.write(tx, AuditKind.RUN_DONE, run.id, actor=ledger.worker, now=now)
            ledger.database.announce(tx, run.id)
        at("in-release")
    _stopped(ledger, run)
    return more


def fail(ledger: Ledger, claimed: Claim, *, reason: str) -> None:
    """End a run whose segment raised; its thread takes the next message."""
    with ledger.database.write() as tx:
        runs.release(tx, claimed)
        now = ledger.database.now(tx)
        if claimed.run is not None and runs.run(tx, claimed.run.id).is_open:
            _take_back(ledger, tx, claimed.run, now=now, by=ledger.worker, reason=f"the run failed: {reason}")
            runs.end_run(tx, claimed.run.id, RunState.FAILED, now=now, reason=reason)
            audit.write(tx, AuditKind.RUN_FAILED, claimed.run.id, actor=ledger.worker, now=now)
            ledger.database.announce(tx, claimed.run.id)
        at("in-fail")
    _stopped(ledger, claimed.run)


def give_back(ledger: Ledger, claimed: Claim) -> None:
    """Free a claimed thread with its work undone; it is picked up again."""
    with ledger.database.write() as tx:
        runs.unclaim(tx, claimed)


def cancel(ledger: Ledger, run_id: str, *, by: str, reason: str, once: Once[Run] | None = None) -> Run:
    """End a run early: what waits is withdrawn, what was cleared but not started never starts.

    Raises `Repeated` for a request that was done before.
    """
    with ledger.database.read() as tx:
        found = runs.run(tx, run_id)
        person = people.person(tx, by)
    if by != found.requester and not has_role(person, Role.OPERATOR):
        raise ForbiddenError("Only who asked for this run, or an operator, can cancel it.")
    with ledger.database.write() as tx:
        claim_once(ledger.database, tx, once)
        runs.lock_thread(tx, found.thread_id)
        now = ledger.database.now(tx)
        if not runs.run(tx, run_id).is_open:
            raise ConflictError(f"Run {run_id} has ended already.")
        _cancel(ledger, tx, found, now=now, by=by, reason=reason)
        after = runs.run(tx, run_id)
        keep_once(tx, once, after)
        at("in-cancel")
    _stopped(ledger, after)
    return after


def take_back_cleared(
    ledger: Ledger, run: Run, *, by: str, reason: str, only: Collection[str] | None = None
) -> None:
    """Let nothing of a run start any more that was cleared and has not started; the run goes on.

    With `only`, of these calls.
    """
    with ledger.database.write() as tx:
        runs.lock_thread(tx, run.thread_id)
        now = ledger.database.now(tx)
        _void_cleared(tx, run, now=now, by=by, reason=reason, only=only)


def _stopped(ledger: Ledger, run: Run | None) -> None:
    """Tell a run's program that it has stopped, where this process knows the program."""
    program = None if run is None else ledger.programs.get(run.program)
    if run is None or program is None or program.stopped is None:
        return
    try:
        program.stopped(run.id)
    except Exception as error:  # noqa: BLE001 - whatever it is, such as a full disk: how the run stands is kept
        log.warning("run %s stopped; %s could not note it: %s", run.id, run.program, type(error).__name__)


def _cancel(ledger: Ledger, tx: Connection, run: Run, *, now: datetime, by: str, reason: str) -> None:
    # First, because the end of its last call ends some runs as done.
    runs.end_run(tx, run.id, RunState.CANCELLED, now=now, reason=reason)
    _take_back(ledger, tx, run, now=now, by=by, reason=reason)
    audit.write(tx, AuditKind.RUN_CANCELLED, run.id, actor=by, now=now)
    ledger.database.announce(tx, run.id)


def _take_back(ledger: Ledger, tx: Connection, run: Run, *, now: datetime, by: str, reason: str) -> None:
    """Withdraw what a run waits for, and what was cleared for it and has not started."""
    waiting = reviews.pending(tx, run.thread_id)
    if waiting is not None and waiting.run_id == run.id:
        after = closed(waiting, ReviewStatus.WITHDRAWN, now=now, reason=reason)
        reviews.save(tx, waiting, after)
        close_calls(tx, waiting, after, now=now, by=by, wake=ledger.wake)
    _void_cleared(tx, run, now=now, by=by, reason=reason)


def _void_cleared(
    tx: Connection, run: Run, *, now: datetime, by: str, reason: str, only: Collection[str] | None = None
) -> None:
    for row in calls.of_run(tx, run.id):
        if only is not None and row.key not in only:
            continue
        values = {"result": withdrawn(row.tool, reason=reason), "ended_at": now}
        cleared = (CallState.CLEARED,)
        if calls.move(tx, row.key, attempt=1, frm=cleared, to=CallState.REJECTED, values=values):
            calls.void(tx, row.key)
            audit.write(tx, AuditKind.CALL_REJECTED, row.key, actor=by, now=now)
