"""Reading: one review whole, with all that a person wants to know before deciding it, and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clearance.people import Mode, Person
from clearance.policy import DecisionType
from clearance.redaction import scrubbed
from clearance.review import Decision, Review, ReviewedCall, ReviewKind, ReviewStatus, standing
from clearance.run import Run, is_one_call
from clearance.standing import StandingRule
from clearance.summary import summary
from clearance.toolcall import canonical, parse_arguments
from clearance.veil import secret_words, veiled, veiled_run

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from clearance.store.calls import LedgerRow
    from clearance.store.claims import Claim
    from clearance.store.database import Database
    from clearance.store.parking import Parked


@dataclass(frozen=True)
class Whole:
    """A review at one instant, as it is shown: secrets are masked in it.

    `descriptions` are what the makers of the tools say about them; `words` are the secret texts.
    `claim` says who is looking at it.
    """

    review: Review
    run: Run
    people: Mapping[str, Person]
    descriptions: Mapping[str, str]
    ledger: "Mapping[str, LedgerRow]"
    mode: Mode
    now: datetime
    words: frozenset[str] = field(default=frozenset(), repr=False)
    claim: "Claim | None" = None

    @property
    def removed(self) -> str | None:
        """Say since when the values are gone; None while they are there."""
        return removed(self.run.redacted_at)

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
    from clearance.store import calls, claims, people, policies, runs

    reviewed = [call for review in reviews for call in review.calls]
    deciders = {item.by for call in reviewed for item in call.decisions}
    known = people.by_id(tx, sorted(deciders)) if deciders else {}
    rows = calls.rows(tx, {call.key for call in reviewed})
    found = runs.by_id(tx, {review.run_id for review in reviews})
    programs = {review.program for review in reviews}
    told = {program: policies.tool_descriptions(tx, program) for program in programs}
    mode, now = people.mode(tx), database.now(tx)
    words = {review.id: secret_words(review) for review in reviews}
    pending = [review.id for review in reviews if review.status is ReviewStatus.PENDING]
    claimed = claims.of(tx, pending, now=now)
    return [
        Whole(
            review=veiled(review),
            run=veiled_run(found[review.run_id], words[review.id]),
            people=known,
            descriptions=told[review.program],
            ledger=_scrubbed_rows(rows, words[review.id]),
            mode=mode,
            now=now,
            words=words[review.id],
            claim=claimed.get(review.id),
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
        "claim": None
        if found.claim is None
        else {"by": found.claim.person, "until": found.claim.until.isoformat()},
        "ended_at": _time(review.ended_at),
        "reason": review.reason,
        "redacted_at": _time(found.run.redacted_at),
        "calls": [_call_record(found, call) for call in review.calls],
        "untrusted": {
            "message": said_in(found.run),
            "model_text": None if model_text is None else scrubbed(model_text, found.words),
        },
    }


def removed(at: datetime | None) -> str | None:
    """Say that retention has removed values, and when; None where it has not."""
    return None if at is None else f"removed by retention on {at:%Y-%m-%d}"


def run_record(run: Run) -> dict[str, Any]:
    """Return a run as every door gives it in JSON."""
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "program": run.program,
        "state": run.state.value,
        "requester": run.requester,
        "message": said_in(run),
        "answer": run.answer,
        "reason": run.reason,
        "redacted_at": _time(run.redacted_at),
        "created_at": run.created_at.isoformat(),
        "ended_at": _time(run.ended_at),
    }


def said_in(run: Run) -> str | None:
    """Return what was said to begin a run; of a call of an agent elsewhere, which one it is."""
    if run.input is None or not is_one_call(run.program):
        return run.input
    said = json.loads(run.input)
    return canonical({name: said[name] for name in ("key", "tool")})


def standing_record(rule: StandingRule) -> dict[str, Any]:
    """Return a standing rule as every door gives it in JSON."""
    return {
        "rule_id": rule.id,
        "state": rule.state.value,
        "program": rule.program,
        "tool": rule.tool,
        "equal": dict(rule.equal),
        "any": list(rule.free),
        "when": None if rule.when is None else rule.when.text,
        "requester": rule.requester,
        "thread_id": rule.thread_id,
        "risk": rule.risk.value,
        "uses": rule.uses,
        "uses_left": rule.uses_left,
        "expires_at": rule.expires_at.isoformat(),
        "author": rule.author,
        "approvals": [{"by": each.by, "at": each.at.isoformat()} for each in rule.approvals],
        "review_id": rule.review_id,
        "call": rule.call,
        "created_at": rule.created_at.isoformat(),
    }


def parked_record(found: "Parked") -> dict[str, Any]:
    """Return that an agent is parked, as every door gives it in JSON."""
    return {"agent": found.agent, "reason": found.reason, "since": found.at.isoformat()}


def summary_of(call: ReviewedCall) -> str | None:
    """Return what the rules say the call is, in sentences with its values; None where they say nothing."""
    arguments = parse_arguments(call.arguments)
    return " ".join(summary(each, arguments) for each in call.verdict.summaries) or None


def _scrubbed_rows(rows: "Mapping[str, LedgerRow]", words: frozenset[str]) -> "Mapping[str, LedgerRow]":
    """Return the ledger's rows with masks for the secrets that a tool repeats in its result."""
    if not words:
        return rows
    return {
        key: row if row.result is None else replace(row, result=scrubbed(row.result, words))
        for key, row in rows.items()
    }


def _call_record(found: Whole, call: ReviewedCall) -> dict[str, Any]:
    verdict = call.verdict
    gone = found.run.redacted_at is not None
    row = found.ledger.get(call.key)
    return {
        "place": found.place(call),
        "call": call.key,
        "tool": call.tool,
        "args": None if gone else parse_arguments(call.arguments),
        "arguments": None if gone else call.arguments,
        "proposed": {"tool": call.proposed_tool, "arguments": None if gone else call.proposed},
        "revision": call.revision,
        "secret": list(verdict.secret),
        "fingerprint": call.fingerprint,
        "answer": call.state.value,
        "risk": verdict.risk.value,
        "flags": dict(verdict.flags),
        "summary": None if gone else summary_of(call),
        "allowed_decisions": [item.value for item in verdict.decisions],
        "reason_required": verdict.reason,
        "rules": list(verdict.rules),
        "faults": list(verdict.faults),
        "policy": verdict.policy,
        "approvals": [
            {
                "group": threshold.group,
                "have": have,
                "need": threshold.approve,
                "reject": threshold.reject,
                "escalates": [
                    {"to": each.to, "at": (call.since + each.after).isoformat()}
                    for each in threshold.also
                    if call.since is not None
                ],
            }
            for threshold, have in standing(call, found.people)
        ],
        "description": found.descriptions.get(call.tool),
        "state": None if row is None else row.state.value,
        "result": None if row is None else row.result,
        "decisions": [_decision_record(item, words=found.words) for item in call.decisions],
    }


def _decision_record(item: Decision, *, words: frozenset[str]) -> dict[str, Any]:
    return {
        "by": item.by,
        "at": item.at.isoformat(),
        "type": item.type.value,
        "revision": item.revision,
        "message": scrubbed(item.message, words) or None,
        "tool": item.tool,
        "arguments": item.arguments,
        "standing_rule": item.standing,
        "counted": [
            {"group": each.group, "need": each.need, "through": each.through} for each in item.counted
        ],
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
