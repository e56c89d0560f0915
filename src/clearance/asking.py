"""Asking: which calls of one AI message need people, and the review that is put before them.

Level-triggered: it looks at what has been asked and decided about the message, and asks for what is missing.
So it can be repeated after a crash, and notices when a call, a tool or the policy changed under a review.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from clearance import outcome as words
from clearance.audit import AuditKind
from clearance.deadline import deadline
from clearance.ending import end_with_call
from clearance.fingerprint import fingerprint
from clearance.outcome import CallState
from clearance.people import SYSTEM
from clearance.policy import DecisionType, Effect, Policy, Verdict, judge
from clearance.recalling import recalled
from clearance.redaction import secrets_in
from clearance.review import Answer, Review, ReviewedCall, ReviewKind, ReviewStatus, closed
from clearance.run import Run, RunState
from clearance.schema import schema_hash, with_defaults
from clearance.settlement import answer_calls, invalidate
from clearance.store import audit, calls, people, policies, reviews, runs
from clearance.store.calls import LedgerRow
from clearance.store.origins import origin
from clearance.toolcall import Tool, ToolCall, canonical, parse_arguments

MAX_REJECTIONS_OF_A_TOOL = 3


@dataclass(frozen=True)
class Question:
    """The calls of one AI message, in its order: tools known, arguments fitting their schemas.

    `message` is the number of the AI message within the run, from 1; `fence` is that of the segment which
    asks, None where the caller drives the thread. `by_model` says that a model proposes, which is not asked
    about again for what this run has rejected; a program that calls again means another call. `kind` says
    whether the calls are the steps of one plan, which is decided whole, and never without people. `withheld`
    are decisions that nobody may take here, whatever the policy says.
    """

    run_id: str
    thread_id: str
    program: str
    message: int
    calls: tuple[ToolCall, ...]
    tools: Mapping[str, Tool]
    fence: int | None = None
    by_model: bool = True
    kind: ReviewKind = ReviewKind.CALLS
    withheld: frozenset[DecisionType] = frozenset()


def ask(
    tx: Connection, question: Question, *, policy: Policy, now: datetime, new_id: Callable[[], str]
) -> Review | None:
    """Return the review that the message waits for, made when there was none; None when nothing waits.

    A call that people were asked about before, and that is no longer what they saw, is theirs to decide even
    where the policy would let it run at once by now. About a cancelled run nobody is asked anything.
    """
    thread = runs.lock_thread(tx, question.thread_id)
    runs.check_fence(thread, question.fence)
    run = runs.run(tx, question.run_id)
    if run.state is RunState.CANCELLED:
        return None
    rounds = reviews.of_message(tx, run.id, question.message)
    ledger = _ledger(tx, question)
    to_ask: list[ReviewedCall] = []
    new: set[str] = set()
    whence = origin(tx, policy, run_id=run.id)
    for call in question.calls:
        row = ledger.get(call.key)
        settled_here = row is not None and row.state not in (CallState.HELD, CallState.CLEARED)
        if settled_here or standing_call(rounds, call, tools=question.tools) is not None:
            continue
        tool = question.tools[call.tool]
        arguments = with_defaults(tool.schema, parse_arguments(call.arguments))
        verdict = _asked(judge(policy, call.tool, arguments=arguments, origin=whence), question)
        if verdict.effect is Effect.ALLOW and people.barred(tx, run.requester) is not None:
            # For somebody who is disabled nothing starts, and here it stays in sight.
            verdict = replace(verdict, effect=Effect.HOLD)
        if verdict.effect is Effect.DENY:
            refuse(tx, call, run_id=run.id, to=CallState.BLOCKED, text=words.blocked(call.tool), now=now)
        elif verdict.effect is Effect.ALLOW and row is None:
            continue
        elif question.by_model and was_rejected(ledger.values(), call, schema=tool.schema):
            refuse(tx, call, run_id=run.id, to=CallState.REJECTED, text=words.repeated(call.tool), now=now)
        else:
            # What people were asked about before is theirs to decide, whatever they said in advance.
            new |= {call.key} if row is None else set()
            to_ask.append(_reviewed(tx, call, run=run, tool=tool, verdict=verdict, now=now))
    waiting = next((found for found in rounds if found.status is ReviewStatus.PENDING), None)
    if waiting is not None and (to_ask or _has_changed(waiting, question)):
        to_ask += _taken_over(tx, waiting, question, asked={call.key for call in to_ask}, now=now)
        waiting = None
    if to_ask:
        waiting = _next_round(
            tx, question, run, to_ask, rounds=rounds, now=now, new=frozenset(new), new_id=new_id
        )
    if waiting is not None:
        runs.set_state(tx, run.id, RunState.WAITING)
    return waiting


def _asked(verdict: Verdict, question: Question) -> Verdict:
    """Return what the policy says, as far as this question leaves it open."""
    allowed = tuple(each for each in verdict.decisions if each not in question.withheld)
    if question.kind is ReviewKind.PLAN and verdict.effect is Effect.ALLOW:
        # A plan that nobody saw is never cleared: a policy may ask for more people, not for none.
        verdict = replace(verdict, effect=Effect.HOLD)
    return replace(verdict, decisions=allowed)


def _ledger(tx: Connection, question: Question) -> dict[str, LedgerRow]:
    """Return what the ledger has of the calls, and of the whole run where its rejections count."""
    if question.by_model:
        return {row.key: row for row in calls.of_run(tx, question.run_id)}
    rows = [calls.row(tx, call.key) for call in question.calls]
    return {row.key: row for row in rows if row is not None}


def standing_call(
    rounds: Sequence[Review], call: ToolCall, *, tools: Mapping[str, Tool]
) -> ReviewedCall | None:
    """Return what people were last asked about this very call, as long as it still counts.

    The message may show the call as it was proposed, or as it was edited: the history is rewritten to what
    runs. Anything else, or a tool whose schema changed, is another call.
    """
    for review in reversed(rounds):
        found = review.call(call.key)
        if found is None or found.state is Answer.INVALIDATED or review.status is ReviewStatus.INVALIDATED:
            continue
        tool = tools.get(found.tool)
        if tool is None or schema_hash(tool.schema) != found.schema_hash:
            return None
        schema = tools[call.tool].schema
        stands = _same(call, found.tool, found.arguments, schema=schema)
        if stands or _same(call, found.proposed_tool, found.proposed, schema=schema):
            return found
        return None
    return None


def was_rejected(ledger: Iterable[LedgerRow], call: ToolCall, *, schema: Mapping[str, Any]) -> bool:
    """Whether this turn has rejected the same call before, or its tool too often to ask once more."""
    rows = [row for row in ledger if row.state is CallState.REJECTED and row.tool == call.tool]
    return len(rows) >= MAX_REJECTIONS_OF_A_TOOL or any(
        _same(call, row.tool, row.arguments, schema=schema) for row in rows
    )


def refuse(tx: Connection, call: ToolCall, *, run_id: str, to: CallState, text: str, now: datetime) -> None:
    """Give a call that nobody is asked about its final state, once."""
    row = _row(call, run_id=run_id, state=to)
    waiting = (CallState.HELD, CallState.CLEARED)
    if calls.record(tx, replace(row, result=text, ended_at=now)) or calls.move(
        tx, call.key, attempt=1, frm=waiting, to=to, values={"result": text, "ended_at": now}
    ):
        calls.void(tx, call.key)
        kind = AuditKind.CALL_BLOCKED if to is CallState.BLOCKED else AuditKind.CALL_REJECTED
        audit.write(tx, kind, call.key, actor=SYSTEM, now=now, facts={"tool": call.tool})
        end_with_call(tx, run_id, actor=SYSTEM, now=now)


def _has_changed(waiting: Review, question: Question) -> bool:
    """Whether a call of the waiting review is gone from the message, or is no longer what was asked about."""
    proposed = {call.key: call for call in question.calls}
    return any(
        call.key not in proposed or standing_call([waiting], proposed[call.key], tools=question.tools) is None
        for call in waiting.calls
    )


def _taken_over(
    tx: Connection, waiting: Review, question: Question, *, asked: set[str], now: datetime
) -> list[ReviewedCall]:
    """Invalidate a waiting review, and return those of its calls that are asked about again as they stand."""
    after = closed(waiting, ReviewStatus.INVALIDATED, now=now, reason="What was asked about changed.")
    invalidate(tx, waiting, after, now=now, by=SYSTEM)
    proposed = {call.key: call for call in question.calls}
    again: list[ReviewedCall] = []
    for call in waiting.calls:
        if call.key not in proposed:
            gone = ToolCall(key=call.key, tool=call.tool, arguments=call.arguments)
            text = words.gone(call.tool)
            refuse(tx, gone, run_id=waiting.run_id, to=CallState.BLOCKED, text=text, now=now)
        elif call.key not in asked and standing_call([waiting], proposed[call.key], tools=question.tools):
            again.append(replace(call, state=Answer.WAITING, decisions=(), since=now))
    return again


def _next_round(
    tx: Connection,
    question: Question,
    run: Run,
    to_ask: Sequence[ReviewedCall],
    *,
    rounds: Sequence[Review],
    now: datetime,
    new: frozenset[str],
    new_id: Callable[[], str],
) -> Review | None:
    """Ask people about these calls, in the order of the message; None: they said in advance what they say.

    `new` are those that nobody was asked about before.
    """
    first = [call for call in to_ask if call.key in new]
    answered = recalled(tx, first, run=run, kind=question.kind, tools=question.tools, now=now, new_id=new_id)
    to_ask = [*answered, *(call for call in to_ask if call.key not in new)]
    order = [call.key for call in question.calls]
    number = max((found.round for found in rounds), default=0) + 1
    asked = any(call.state is Answer.WAITING for call in to_ask)
    review = Review(
        id=f"{run.id}/{question.message}/{number}",
        run_id=run.id,
        thread_id=run.thread_id,
        program=run.program,
        kind=question.kind,
        message=question.message,
        round=number,
        status=ReviewStatus.PENDING if asked else ReviewStatus.SETTLED,
        version=1,
        requester=run.requester,
        asked_at=now,
        ended_at=None if asked else now,
        deadline=deadline((call.verdict for call in to_ask), asked_at=now),
        calls=tuple(sorted(to_ask, key=lambda call: order.index(call.key))),
    )
    reviews.insert_review(tx, review)
    for call in review.calls:
        _hold(tx, call, run_id=run.id)
    audit.write(
        tx, AuditKind.REVIEW_ASKED, review.id, actor=run.requester, now=now, facts=asked_facts(review)
    )
    if not asked:
        answer_calls(tx, review, now=now, by=SYSTEM, new_id=new_id)
        return None
    return review


def asked_facts(review: Review) -> dict[str, object]:
    """Return what the trail keeps of a question: which calls, by fingerprint, and why."""
    return {
        "thread": review.thread_id,
        "kind": review.kind,
        "deadline": None if review.deadline is None else review.deadline.isoformat(),
        "calls": [
            {
                "call": call.key,
                "tool": call.tool,
                "fingerprint": call.fingerprint,
                "risk": call.verdict.risk,
                "rules": list(call.verdict.rules),
                "policy": call.verdict.policy,
            }
            for call in review.calls
        ],
    }


def _reviewed(
    tx: Connection, call: ToolCall, *, run: Run, tool: Tool, verdict: Verdict, now: datetime
) -> ReviewedCall:
    salt = secrets.token_hex(16)
    return ReviewedCall(
        key=call.key,
        tool_call_id=call.tool_call_id,
        proposed_tool=call.tool,
        proposed=call.arguments,
        tool=call.tool,
        arguments=call.arguments,
        schema_hash=policies.keep_schema(tx, dict(tool.schema)),
        salt=salt,
        fingerprint=fingerprint(call, run=run.id, schema=tool.schema, salt=salt),
        verdict=verdict.hiding(secrets_in(tool.schema, parse_arguments(call.arguments))),
        since=now,
    )


def _hold(tx: Connection, call: ReviewedCall, *, run_id: str) -> None:
    plain = ToolCall(key=call.key, tool=call.tool, arguments=call.arguments)
    row = replace(_row(plain, run_id=run_id, state=CallState.HELD), fingerprint=call.fingerprint)
    if not calls.record(tx, row):
        changed = {"tool": call.tool, "arguments": call.arguments, "fingerprint": call.fingerprint}
        held = (CallState.HELD, CallState.CLEARED)
        calls.move(tx, call.key, attempt=1, frm=held, to=CallState.HELD, values=changed)
        calls.void(tx, call.key)


def _row(call: ToolCall, *, run_id: str, state: CallState) -> LedgerRow:
    return LedgerRow(
        key=call.key,
        run_id=run_id,
        tool=call.tool,
        arguments=call.arguments,
        fingerprint="",
        state=state,
        attempt=1,
        fence=0,
    )


def _same(call: ToolCall, tool: str, arguments: str, *, schema: Mapping[str, Any]) -> bool:
    """Whether these are one call, however it is written: with or without defaults, in any order of keys."""
    if call.tool != tool:
        return False
    one, other = (with_defaults(schema, parse_arguments(text)) for text in (call.arguments, arguments))
    return canonical(one) == canonical(other)
