"""Uncertainty: a call was started and nobody knows whether it happened. That is said, and a person asked.

The review of an outcome stands beside whatever else the thread does, and blocks nothing.
"""

import secrets
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from clearance.asking import asked_facts
from clearance.audit import AuditKind
from clearance.fingerprint import fingerprint
from clearance.outcome import CallState
from clearance.people import SYSTEM
from clearance.policy import DecisionType, Effect, Risk, Threshold, Verdict
from clearance.review import Answer, Review, ReviewedCall, ReviewKind, ReviewStatus
from clearance.run import Run
from clearance.store import audit, callbacks, calls, policies, reviews, secret_parts
from clearance.store.calls import LedgerRow
from clearance.toolcall import ToolCall

OUTCOME_DECISIONS = (DecisionType.APPROVE, DecisionType.REJECT, DecisionType.RESPOND)


def make_uncertain(tx: Connection, row: LedgerRow, *, run: Run, actor: str, now: datetime) -> None:
    """Call a started call uncertain and ask people what became of it.

    `approve` says that it did not happen and is to be run; `respond` that it did, with this result; `reject`
    leaves it unknown for good.
    """
    call = _questioned(tx, row, run=run, now=now)
    # A call that ran without a review has no fingerprint yet, and a second attempt needs a clearance for one.
    values = {"fingerprint": call.fingerprint}
    started = (CallState.STARTED,)
    if not calls.move(tx, row.key, attempt=row.attempt, frm=started, to=CallState.UNCERTAIN, values=values):
        return
    audit.write(tx, AuditKind.CALL_UNCERTAIN, row.key, actor=actor, now=now, facts={"attempt": row.attempt})
    callbacks.due(tx, run.id, now=now)
    _ask(tx, call, run=run, attempt=row.attempt, now=now)


def ask_again(tx: Connection, row: LedgerRow, *, run: Run, now: datetime) -> None:
    """Ask once more what became of an uncertain call, because the answer to it does not stand any more."""
    _ask(tx, _questioned(tx, row, run=run, now=now), run=run, attempt=row.attempt, now=now)


def _ask(tx: Connection, call: ReviewedCall, *, run: Run, attempt: int, now: datetime) -> None:
    asked = [each for each in reviews.of_call(tx, call.key, kind=ReviewKind.OUTCOME) if each.round == attempt]
    again = f"/{len(asked) + 1}" if asked else ""
    review = Review(
        id=f"{call.key}/outcome/{attempt}{again}",
        run_id=run.id,
        thread_id=run.thread_id,
        program=run.program,
        kind=ReviewKind.OUTCOME,
        message=0,
        round=attempt,
        status=ReviewStatus.PENDING,
        version=1,
        requester=run.requester,
        asked_at=now,
        deadline=None,
        calls=(call,),
    )
    reviews.insert_review(tx, review)
    audit.write(tx, AuditKind.REVIEW_ASKED, review.id, actor=SYSTEM, now=now, facts=asked_facts(review))


def _questioned(tx: Connection, row: LedgerRow, *, run: Run, now: datetime) -> ReviewedCall:
    """Return the call as people are asked about its outcome: its own rule decides who may answer."""
    asked = [found.call(row.key) for found in reviews.of_call(tx, row.key)]
    known = [call for call in asked if call is not None and call.fingerprint == row.fingerprint]
    if known:
        verdict = replace(known[-1].verdict, decisions=OUTCOME_DECISIONS, expire=None, reason=False)
        return replace(known[-1], verdict=verdict, state=Answer.WAITING, decisions=(), since=now)
    schema = policies.tool_schema(tx, run.program, row.tool) or {}
    salt = secrets.token_hex(16)
    call = ToolCall(key=row.key, tool=row.tool, arguments=row.arguments)
    verdict = Verdict(
        effect=Effect.ALLOW,
        risk=Risk.MEDIUM,
        decisions=OUTCOME_DECISIONS,
        who=(Threshold(),),
        rules=(),
        policy=policies.active_version(tx, run.program) or "",
        secret=secret_parts.of_call(tx, run.program, row.tool, row.arguments),
    )
    return ReviewedCall(
        key=row.key,
        tool_call_id="",
        proposed_tool=row.tool,
        proposed=row.arguments,
        tool=row.tool,
        arguments=row.arguments,
        schema_hash=policies.keep_schema(tx, schema),
        salt=salt,
        fingerprint=fingerprint(call, run=run.id, schema=schema, salt=salt),
        verdict=verdict,
        since=now,
    )
