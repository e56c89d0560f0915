"""What the end of a review does to its calls: clearances, final states, the run's next segment."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from clearance import outcome as words
from clearance.audit import AuditKind, salted_hash
from clearance.ending import end_with_call
from clearance.outcome import CallState
from clearance.people import SYSTEM
from clearance.redaction import masked
from clearance.review import Answer, Review, ReviewedCall, ReviewKind, ReviewStatus, response
from clearance.run import RunState
from clearance.store import audit, callbacks, calls, reviews, runs
from clearance.store.calls import Clearance, LedgerRow

Wake = Callable[[Connection, str], None]
"""Asks for one more segment of a thread, in this transaction."""

_CLOSED = {
    ReviewStatus.EXPIRED: AuditKind.REVIEW_EXPIRED,
    ReviewStatus.WITHDRAWN: AuditKind.REVIEW_WITHDRAWN,
    ReviewStatus.INVALIDATED: AuditKind.REVIEW_INVALIDATED,
}


def settle_calls(
    tx: Connection, review: Review, *, now: datetime, by: str, new_id: Callable[[], str], wake: Wake
) -> None:
    """Give every call of a settled review what was decided, and let its run go on."""
    answer_calls(tx, review, now=now, by=by, new_id=new_id)
    _go_on(tx, review, wake=wake, now=now)


def answer_calls(
    tx: Connection, review: Review, *, now: datetime, by: str, new_id: Callable[[], str]
) -> None:
    """Give every call of a settled review what was decided."""
    answers = [
        {"call": call.key, "answer": call.state, "fingerprint": call.fingerprint} for call in review.calls
    ]
    audit.write(tx, AuditKind.REVIEW_SETTLED, review.id, actor=by, now=now, facts={"calls": answers})
    whole = all(call.state is Answer.APPROVED for call in review.calls)
    for call in review.calls:
        row = calls.row(tx, call.key)
        if row is None:
            raise LookupError(f"reviewed call {call.key} is not in the ledger")
        match call.state:
            case Answer.APPROVED if review.kind is ReviewKind.PLAN and not whole:
                # Some of its steps needed fewer people, and had them before others said no.
                text = words.withdrawn(call.tool, reason="its plan was not approved")
                _end(tx, review, call, to=CallState.REJECTED, text=text, now=now, by=by)
            case Answer.APPROVED:
                _clear(tx, review, call, row=row, now=now, by=by, new_id=new_id)
            case Answer.REJECTED if review.kind is ReviewKind.OUTCOME:
                _end(tx, review, call, to=CallState.REJECTED, text=words.dropped(call.tool), now=now, by=by)
            case Answer.REJECTED:
                _end(tx, review, call, to=CallState.REJECTED, text=words.rejected(call), now=now, by=by)
            case Answer.REVISED:
                _end(tx, review, call, to=CallState.REJECTED, text=words.revised(call), now=now, by=by)
            case Answer.RESPONDED:
                _end(tx, review, call, to=CallState.RESPONDED, text=response(call), now=now, by=by)
            case _:
                raise ValueError(f"call {call.key} of a settled review is {call.state}")


def close_calls(tx: Connection, before: Review, after: Review, *, now: datetime, by: str, wake: Wake) -> None:
    """End the waiting calls of a review that closed without a settlement, and let its run go on."""
    facts = {"reason": _told(after, by=by), "calls": [call.key for call in before.waiting]}
    audit.write(tx, _CLOSED[after.status], after.id, actor=by, now=now, facts=facts)
    for call in before.calls if before.kind is not ReviewKind.OUTCOME else ():
        to, text = CallState.REJECTED, _closing_words(call, after)
        if call.state is Answer.RESPONDED:
            to, text = CallState.RESPONDED, response(call)
        _end(tx, after, call, to=to, text=text, now=now, by=by)
    _go_on(tx, before, wake=wake, now=now)


def _told(after: Review, *, by: str) -> str | None:
    """Return what stands in the trail for a reason: that of the product itself, or a hash of a person's."""
    if after.reason is None or by == SYSTEM:
        return after.reason
    return salted_hash(after.reason, salt=after.calls[0].salt)


def _closing_words(call: ReviewedCall, review: Review) -> str:
    """Say why a call of a closed review does not run: what people decided about it alone comes first."""
    if call.state is Answer.REJECTED:
        return words.rejected(call)
    if review.status is ReviewStatus.EXPIRED:
        return words.expired(call.tool)
    return words.withdrawn(call.tool, reason=review.reason or "")


def invalidate(tx: Connection, before: Review, after: Review, *, now: datetime, by: str) -> None:
    """Note that a review no longer counts, because what it was about changed; its calls are asked anew."""
    reviews.save(tx, before, after)
    audit.write(tx, _CLOSED[after.status], after.id, actor=by, now=now, facts={"reason": after.reason})


def _clear(
    tx: Connection,
    review: Review,
    call: ReviewedCall,
    *,
    row: LedgerRow,
    now: datetime,
    by: str,
    new_id: Callable[[], str],
) -> None:
    attempt = row.attempt + 1 if review.kind is ReviewKind.OUTCOME else row.attempt
    clearance = Clearance(
        id=new_id(), key=call.key, review_id=review.id, fingerprint=call.fingerprint, attempt=attempt
    )
    calls.mint(tx, clearance, now=now)
    if review.kind is not ReviewKind.OUTCOME:
        changed = {"tool": call.tool, "arguments": call.arguments, "fingerprint": call.fingerprint}
        calls.move(tx, call.key, attempt=attempt, frm=(CallState.HELD,), to=CallState.CLEARED, values=changed)
    facts = {
        "clearance": clearance.id,
        "fingerprint": call.fingerprint,
        "attempt": attempt,
        "review": review.id,
    }
    audit.write(tx, AuditKind.CLEARANCE_MINTED, call.key, actor=by, now=now, facts=facts)


def _end(
    tx: Connection, review: Review, call: ReviewedCall, *, to: CallState, text: str, now: datetime, by: str
) -> None:
    """Give a call that will not run its final state."""
    row = calls.row(tx, call.key)
    waiting = (CallState.HELD, CallState.CLEARED, CallState.UNCERTAIN)
    if row is None or not calls.move(
        tx, call.key, attempt=row.attempt, frm=waiting, to=to, values={"result": text, "ended_at": now}
    ):
        return
    calls.void(tx, call.key)
    kind = AuditKind.CALL_RESPONDED if to is CallState.RESPONDED else AuditKind.CALL_REJECTED
    audit.write(tx, kind, call.key, actor=by, now=now, facts={"review": review.id})
    end_with_call(tx, row.run_id, actor=by, now=now)
    if review.kind is ReviewKind.OUTCOME:
        told = masked(call.arguments, call.verdict.secret)
        text = words.late_answer(call.tool, told, text=text, error=to is CallState.REJECTED)
        calls.add_late_answer(tx, review.id, thread_id=review.thread_id, key=call.key, text=text, now=now)


def _go_on(tx: Connection, review: Review, *, wake: Wake, now: datetime) -> None:
    """Let the run of a closed review go on. A caller who drives the thread comes back by itself."""
    thread = runs.lock_thread(tx, review.thread_id)
    if review.kind is not ReviewKind.OUTCOME:
        state = RunState.RUNNING if thread.caller_driven else RunState.QUEUED
        runs.set_state(tx, review.run_id, state)
    if thread.caller_driven:
        callbacks.due(tx, review.run_id, now=now)
    wake(tx, review.thread_id)
