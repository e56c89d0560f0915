"""What must be true at the end of every journey, whatever was killed on the way."""

from collections import Counter
from typing import Any

from langchain_core.messages import BaseMessage

from clearance.adapters.history import run_of
from clearance.audit import AuditKind, Entry
from clearance.notary import published_keys
from clearance.outcome import CallState
from clearance.proof import verify
from clearance.review import Answer, Review, ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store.calls import LedgerRow
from clearance.store.trail import trail
from tests.journeys.front import Front

UNFINISHED = {CallState.HELD, CallState.CLEARED, CallState.STARTED}
REPEATABLE = {"look", "peek", "post"}

_REVIEW_STATES = {
    AuditKind.REVIEW_ASKED: ReviewStatus.PENDING,
    AuditKind.REVIEW_SETTLED: ReviewStatus.SETTLED,
    AuditKind.REVIEW_EXPIRED: ReviewStatus.EXPIRED,
    AuditKind.REVIEW_WITHDRAWN: ReviewStatus.WITHDRAWN,
    AuditKind.REVIEW_INVALIDATED: ReviewStatus.INVALIDATED,
}
_CALL_STATES = {
    AuditKind.CALL_EXECUTED: CallState.EXECUTED,
    AuditKind.CALL_FAILED: CallState.FAILED,
    AuditKind.CALL_REJECTED: CallState.REJECTED,
    AuditKind.CALL_RESPONDED: CallState.RESPONDED,
    AuditKind.CALL_BLOCKED: CallState.BLOCKED,
    AuditKind.CALL_UNCERTAIN: CallState.UNCERTAIN,
}


def check(front: Front) -> None:
    """Check that nothing is lost, nothing ran twice, and the trail tells all of it."""
    threads = {run.thread_id for run in front.runs()}
    for thread_id in threads:
        front.wait_until_idle(thread_id)
    rows = [row for run in front.runs() for row in front.calls(run.id)]
    asked = [review for thread_id in threads for review in front.reviews(thread_id)]
    assert not [run for run in front.runs() if run.is_open]
    assert not [row for row in rows if row.state in UNFINISHED]
    check_effects(front, rows)
    check_outcomes(rows, asked)
    check_trail(front, rows=rows, asked=asked)
    for thread_id in threads:
        check_messages(front, thread_id)


def check_messages(front: Front, thread_id: str) -> None:
    """Check that the thread holds every turn once, in its order, with the answer that the run ended with."""
    turns: dict[str, list[BaseMessage]] = {}
    for message in front.messages(thread_id):
        run_id = run_of(message)
        if run_id is not None:
            assert run_id not in turns, f"{run_id} begins twice"
            turns[run_id] = []
        turns[next(reversed(turns))].append(message)
    done = [
        run for run in reversed(front.runs()) if run.thread_id == thread_id and run.state is RunState.DONE
    ]
    assert [run_id for run_id in turns if run_id in {run.id for run in done}] == [run.id for run in done]
    for run in done:
        assert turns[run.id][-1].text == run.answer, f"the thread has another answer of {run.id}"


def check_effects(front: Front, rows: list[LedgerRow]) -> None:
    """Check that each call had as many effects as the ledger says: nothing by itself runs twice."""
    effects = Counter(line.split()[2] for line in front.stage.effects())
    for row in rows:
        count = effects.pop(row.key, 0)
        assert count <= row.attempt or row.tool in REPEATABLE, f"{row.key} ran {count} times"
        match row.state:
            case CallState.EXECUTED | CallState.FAILED:
                assert count >= 1, f"{row.key} is {row.state} and never ran"
            case CallState.RESPONDED | CallState.REJECTED if row.started_at is None:
                assert count == 0, f"{row.key} is {row.state} and ran"
    assert not effects, f"unknown to the ledger: {effects}"


def check_outcomes(rows: list[LedgerRow], asked: list[Review]) -> None:
    """Check that people are asked about every uncertain call, and about no other."""
    uncertain = {row.key for row in rows if row.state is CallState.UNCERTAIN}
    open_questions = [
        call.key
        for review in asked
        if review.kind is ReviewKind.OUTCOME and review.status is ReviewStatus.PENDING
        for call in review.calls
    ]
    assert sorted(open_questions) == sorted(uncertain)


def check_trail(front: Front, *, rows: list[LedgerRow], asked: list[Review]) -> None:
    """Check that the trail verifies under the published key, and that replaying it gives every state."""
    front.opened.worker.notary.seal_now()  # type: ignore[union-attr]
    found = trail(front.opened.database)
    entries = list(found.entries)
    key = published_keys(front.stage.home / ".clearance" / "notary.key")
    report = verify(entries, found.seals, public_key=key, extent=found.extent)
    assert report.ok, report.summary
    assert report.authenticated
    assert report.unsealed == 0
    told = [entry for entry in entries if isinstance(entry, Entry)]
    assert replayed_reviews(told) == {review.id: _state(review) for review in asked}
    check_calls_told(told, rows)


def replayed_reviews(entries: list[Entry]) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the status of every review and what became of its calls, from the trail alone."""
    status: dict[str, str] = {}
    answers: dict[str, dict[str, str]] = {}
    for entry in entries:
        facts: dict[str, Any] = dict(entry.facts)
        if entry.kind == AuditKind.REVIEW_ASKED:
            answers[entry.subject] = {call["call"]: Answer.WAITING.value for call in facts["calls"]}
        if entry.kind == AuditKind.REVIEW_SETTLED:
            answers[entry.subject] = {call["call"]: call["answer"] for call in facts["calls"]}
        if entry.kind == AuditKind.CLEARANCE_VOIDED and "review" in facts:
            answers[facts["review"]][entry.subject] = Answer.INVALIDATED.value
        if entry.kind in _REVIEW_STATES:
            state = _REVIEW_STATES[AuditKind(entry.kind)]
            status[entry.subject] = state.value
            if state not in (ReviewStatus.PENDING, ReviewStatus.SETTLED):
                waiting = answers[entry.subject]
                answers[entry.subject] = {
                    key: state.value if answer == Answer.WAITING else answer
                    for key, answer in waiting.items()
                }
    return {review_id: (status[review_id], answers[review_id]) for review_id in status}


def check_calls_told(entries: list[Entry], rows: list[LedgerRow]) -> None:
    """Check that the last that is told of each call is how it stands, and that it is told once."""
    for row in rows:
        told = [entry for entry in entries if entry.subject == row.key]
        ends = [_CALL_STATES[AuditKind(entry.kind)] for entry in told if entry.kind in _CALL_STATES]
        late = any(entry.kind == AuditKind.CALL_LATE for entry in told)
        assert ends or late, f"nothing is told of the end of {row.key}"
        assert late or ends[-1] is row.state, f"{row.key} is {row.state}, and told as {ends}"
        assert len(ends) <= 2 * row.attempt, f"{row.key} is told as {ends}"


def _state(review: Review) -> tuple[str, dict[str, str]]:
    return review.status.value, {call.key: call.state.value for call in review.calls}
