"""Reading: one review whole, with all that a person wants to know before deciding it, and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clearance.people import Mode, Person
from clearance.policy import DecisionType
from clearance.review import Review, ReviewedCall, ReviewKind, standing
from clearance.run import Run
from clearance.summary import summary
from clearance.toolcall import parse_arguments

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from clearance.store.calls import LedgerRow
    from clearance.store.database import Database


@dataclass(frozen=True)
class Whole:
    """A review at one instant. `descriptions` are what the makers of the tools say about them."""

    review: Review
    run: Run
    people: Mapping[str, Person]
    descriptions: Mapping[str, str]
    ledger: "Mapping[str, LedgerRow]"
    mode: Mode
    now: datetime

    def place(self, call: ReviewedCall) -> int:
        """The call's number in the review, from 1."""
        return self.review.calls.index(call) + 1

    def consequence(self, call: ReviewedCall, decision: DecisionType) -> str:
        """Say what a decision on a call does."""
        words = _AFTERWARDS if self.review.kind is ReviewKind.OUTCOME else _BEFOREHAND
        return words[decision].format(tool=call.tool)


_BEFOREHAND = {
    DecisionType.APPROVE: "{tool} runs once, with exactly these arguments.",
    DecisionType.EDIT: "{tool} runs once, with your arguments instead.",
    DecisionType.REJECT: "{tool} does not run; the agent is told so, with your reason.",
    DecisionType.RESPOND: "{tool} does not run; the agent gets your text as its result.",
    DecisionType.REVISE: "the plan goes back to who made it.",
}
_AFTERWARDS = {
    **_BEFOREHAND,
    DecisionType.APPROVE: "it did not happen: {tool} runs again, with exactly these arguments.",
    DecisionType.REJECT: "nothing runs; whether it happened stays unknown.",
    DecisionType.RESPOND: "it did happen: your text is its result, marked as a person's word.",
}


def whole(database: "Database", tx: "Connection", review: Review) -> Whole:
    """Return the review with everything around it, as of this transaction."""
    return every(database, tx, [review])[0]


def every(database: "Database", tx: "Connection", reviews: Sequence[Review]) -> list[Whole]:
    """Return reviews with everything around them, as of this transaction, with few queries for all."""
    from clearance.store import calls, people, policies, runs

    reviewed = [call for review in reviews for call in review.calls]
    deciders = {item.by for call in reviewed for item in call.decisions}
    known = people.by_id(tx, sorted(deciders)) if deciders else {}
    rows = calls.rows(tx, {call.key for call in reviewed})
    found = runs.by_id(tx, {review.run_id for review in reviews})
    programs = {review.program for review in reviews}
    told = {program: policies.tool_descriptions(tx, program) for program in programs}
    mode, now = people.mode(tx), database.now(tx)
    return [
        Whole(
            review=review,
            run=found[review.run_id],
            people=known,
            descriptions=told[review.program],
            ledger=rows,
            mode=mode,
            now=now,
        )
        for review in reviews
    ]


def review_record(found: Whole, *, model_text: str | None = None) -> dict[str, Any]:
    """Return a review as every door gives it in JSON."""
    review = found.review
    return {
        "review_id": review.id,
        "version": review.version,
        "status": review.status.value,
        "kind": review.kind.value,
        "risk": review.risk.value,
        "thread_id": review.thread_id,
        "run_id": review.run_id,
        "program": review.program,
        "requester": review.requester,
        "asked_at": review.asked_at.isoformat(),
        "expires_at": _time(review.deadline),
        "ended_at": _time(review.ended_at),
        "reason": review.reason,
        "calls": [_call_record(found, call) for call in review.calls],
        "untrusted": {"message": found.run.input, "model_text": model_text},
    }


def run_record(run: Run) -> dict[str, Any]:
    """Return a run as every door gives it in JSON."""
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "program": run.program,
        "state": run.state.value,
        "requester": run.requester,
        "message": run.input,
        "answer": run.answer,
        "reason": run.reason,
        "created_at": run.created_at.isoformat(),
        "ended_at": _time(run.ended_at),
    }


def summary_of(call: ReviewedCall) -> str | None:
    """Return what the rules say the call is, in sentences with its values; None where they say nothing."""
    arguments = parse_arguments(call.arguments)
    return " ".join(summary(each, arguments) for each in call.verdict.summaries) or None


def _call_record(found: Whole, call: ReviewedCall) -> dict[str, Any]:
    verdict = call.verdict
    row = found.ledger.get(call.key)
    return {
        "place": found.place(call),
        "call": call.key,
        "tool": call.tool,
        "args": parse_arguments(call.arguments),
        "arguments": call.arguments,
        "proposed": {"tool": call.proposed_tool, "arguments": call.proposed},
        "revision": call.revision,
        "fingerprint": call.fingerprint,
        "answer": call.state.value,
        "risk": verdict.risk.value,
        "flags": dict(verdict.flags),
        "summary": summary_of(call),
        "allowed_decisions": [item.value for item in verdict.decisions],
        "reason_required": verdict.reason,
        "rules": list(verdict.rules),
        "faults": list(verdict.faults),
        "policy": verdict.policy,
        "approvals": [
            {"group": threshold.group, "have": have, "need": threshold.approve, "reject": threshold.reject}
            for threshold, have in standing(call, found.people)
        ],
        "description": found.descriptions.get(call.tool),
        "state": None if row is None else row.state.value,
        "result": None if row is None else row.result,
        "decisions": [
            {
                "by": item.by,
                "at": item.at.isoformat(),
                "type": item.type.value,
                "revision": item.revision,
                "message": item.message or None,
                "tool": item.tool,
                "arguments": item.arguments,
            }
            for item in call.decisions
        ],
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
