"""Rows of reviews, their calls and their decisions."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Text,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    type_coerce,
    update,
)

from clearance.errors import NotFoundError
from clearance.policy import DecisionType, Effect, Escalation, Risk, Threshold, Verdict
from clearance.review import Answer, Counted, Decision, Review, ReviewedCall, ReviewKind, ReviewStatus
from clearance.store import times
from clearance.store.runs import BELOW, insert_new
from clearance.store.tables import decisions, reviewed_calls, reviews, runs

_RISKS = tuple(Risk)
# In the statement itself: only then both databases see that their index fits.
_WAITS = literal(ReviewStatus.PENDING.value, literal_execute=True)

# Made once: see `store.runs`.
_REVIEWS = select(reviews, runs.c.program).join(runs, runs.c.id == reviews.c.run_id)
_REVIEW = _REVIEWS.where(reviews.c.id == bindparam("review"))
_THREAD = select(reviews.c.thread_id).where(reviews.c.id == bindparam("review"))
# A verdict is kept as canonical text: where nothing is secret, it says so in these letters.
_HAS_SECRETS = exists().where(
    reviewed_calls.c.review_id == reviews.c.id,
    type_coerce(reviewed_calls.c.verdict, Text).not_like('%"secret":[]%'),
)
_PENDING = _REVIEWS.where(
    reviews.c.thread_id == bindparam("thread"),
    reviews.c.status == ReviewStatus.PENDING.value,
    reviews.c.kind != ReviewKind.OUTCOME.value,
)
_OF_MESSAGE = _REVIEWS.where(
    reviews.c.run_id == bindparam("run"),
    reviews.c.message == bindparam("number"),
    reviews.c.kind != ReviewKind.OUTCOME.value,
).order_by(reviews.c.round)
_OVERDUE = (
    select(reviews.c.id, reviews.c.thread_id)
    .where(reviews.c.status == ReviewStatus.PENDING.value, reviews.c.deadline <= bindparam("now"))
    .order_by(reviews.c.deadline)
    .limit(bindparam("most"))
)
_SAVE = (
    update(reviews)
    .where(
        reviews.c.id == bindparam("review"),
        reviews.c.status == bindparam("before_status"),
        reviews.c.version == bindparam("before_version"),
    )
    .returning(reviews.c.id)
)
_SAVE_CALL = update(reviewed_calls).where(
    reviewed_calls.c.review_id == bindparam("review"), reviewed_calls.c.key == bindparam("call")
)
_DECISIONS = (
    select(decisions)
    .where(decisions.c.review_id.in_(bindparam("ids", expanding=True)))
    .order_by(decisions.c.at, decisions.c.id)
)
_CALLS = (
    select(reviewed_calls)
    .where(reviewed_calls.c.review_id.in_(bindparam("ids", expanding=True)))
    .order_by(reviewed_calls.c.place)
)
_CALL = _CALLS.where(reviewed_calls.c.key == bindparam("key"))
_DECISIONS_ON = _DECISIONS.where(decisions.c.key == bindparam("key"))


def insert_review(tx: Connection, review: Review) -> bool:
    """Keep a new review with its calls; False when its id exists."""
    values = {
        "id": review.id,
        "run_id": review.run_id,
        "thread_id": review.thread_id,
        "kind": review.kind.value,
        "message": review.message,
        "round": review.round,
        "status": review.status.value,
        "version": review.version,
        "requester": review.requester,
        "asked_at": review.asked_at,
        "deadline": review.deadline,
        "ended_at": review.ended_at,
        "risk": _RISKS.index(review.risk),
        "reason": review.reason,
    }
    if not insert_new(tx, reviews.c.id, values):
        return False
    tx.execute(
        insert(reviewed_calls),
        [
            {"review_id": review.id, "place": place, **_call_values(call)}
            for place, call in enumerate(review.calls)
        ],
    )
    said = [_decision_values(item) for call in review.calls for item in call.decisions]
    if said:
        tx.execute(insert(decisions), [{"review_id": review.id, **values} for values in said])
    times.keep(tx, review)
    return True


def save(tx: Connection, before: Review, after: Review) -> bool:
    """Store what became of a review; False when it is no longer as `before` (then nothing is stored)."""
    found = {
        "review": before.id,
        "before_status": ReviewStatus.PENDING.value,
        "before_version": before.version,
    }
    changed = {
        "status": after.status.value,
        "version": after.version,
        "deadline": after.deadline,
        "ended_at": after.ended_at,
        "risk": _RISKS.index(after.risk),
        "reason": after.reason,
    }
    if tx.execute(_SAVE, {**found, **changed}).first() is None:
        return False
    for old, new in zip(before.calls, after.calls, strict=True):
        if new != old:
            tx.execute(_SAVE_CALL, {"review": after.id, "call": new.key, **_call_values(new)})
        for decision in new.decisions[len(old.decisions) :]:
            tx.execute(insert(decisions), {"review_id": after.id, **_decision_values(decision)})
    times.keep(tx, after)
    return True


def mark_call(tx: Connection, review_id: str, key: str, *, state: Answer) -> None:
    """Change the state of one call of a review that is settled: it no longer counts, or ended otherwise."""
    tx.execute(_SAVE_CALL, {"review": review_id, "call": key, "state": state.value})


def review(tx: Connection, review_id: str) -> Review:
    """Return a review; `NotFoundError` when there is none."""
    found = _load(tx, _REVIEW, review=review_id)
    if not found:
        raise NotFoundError(f"There is no review {review_id}.")
    return found[0]


def by_id(tx: Connection, ids: Sequence[str]) -> list[Review]:
    """Return those of the reviews that are there, in the order of their ids here."""
    found = {each.id: each for each in _load(tx, _REVIEWS.where(reviews.c.id.in_(ids)))} if ids else {}
    return [found[each] for each in ids if each in found]


def thread_of(tx: Connection, review_id: str) -> str:
    """Return the thread of a review; `NotFoundError` when there is none."""
    thread_id: str | None = tx.execute(_THREAD, {"review": review_id}).scalar()
    if thread_id is None:
        raise NotFoundError(f"There is no review {review_id}.")
    return thread_id


def pending(tx: Connection, thread_id: str) -> Review | None:
    """Return the review that the thread waits for. Reviews of uncertain outcomes block nothing."""
    found = _load(tx, _PENDING, thread=thread_id)
    return found[0] if found else None


def of_message(tx: Connection, run_id: str, message: int, *, call: str | None = None) -> list[Review]:
    """Return every round that was asked about one AI message of a run, oldest first.

    With `call`, the key of one call, the reviews come without their other calls: a plan has a hundred.
    """
    rows = tx.execute(_OF_MESSAGE, {"run": run_id, "number": message}).mappings().all()
    return _with_calls(tx, rows, key=call)


def of_call(tx: Connection, key: str, *, kind: ReviewKind | None = None) -> list[Review]:
    """Return every review that a call stands in, oldest first."""
    ids = select(reviewed_calls.c.review_id).where(reviewed_calls.c.key == key)
    query = _REVIEWS.where(reviews.c.id.in_(ids)).order_by(reviews.c.asked_at, reviews.c.round)
    if kind is not None:
        query = query.where(reviews.c.kind == kind.value)
    return _load(tx, query)


def secret_of_runs(tx: Connection, ids: Sequence[str]) -> list[Review]:
    """Return every review of these runs in which something is secret."""
    return _load(tx, _REVIEWS.where(reviews.c.run_id.in_(ids), _HAS_SECRETS)) if ids else []


def secret_of_thread(tx: Connection, thread_id: str) -> list[Review]:
    """Return every review of a thread in which something is secret."""
    return _load(tx, _REVIEWS.where(reviews.c.thread_id == thread_id, _HAS_SECRETS))


def of_thread(tx: Connection, thread_id: str, *, limit: int = 50) -> list[Review]:
    """Return the newest reviews of a thread, newest first."""
    query = _REVIEWS.where(reviews.c.thread_id == thread_id)
    return _load(tx, query.order_by(reviews.c.asked_at.desc(), reviews.c.id).limit(limit))


def of_run(tx: Connection, run_id: str, *, limit: int = 50) -> list[Review]:
    """Return the newest reviews of a run, newest first."""
    query = _REVIEWS.where(reviews.c.run_id == run_id)
    return _load(tx, query.order_by(reviews.c.asked_at.desc(), reviews.c.id).limit(limit))


def is_first(tx: Connection, found: Review) -> bool:
    """Whether no other review of its thread, or of an agent inside it, was asked before this one."""
    outermost = found.thread_id.partition(BELOW)[0]
    inside = reviews.c.thread_id.startswith(outermost + BELOW, autoescape=True)
    earlier = (
        select(reviews.c.id)
        .where(or_(reviews.c.thread_id == outermost, inside), reviews.c.id != found.id)
        .where(reviews.c.asked_at <= found.asked_at)
        .limit(1)
    )
    return tx.execute(earlier).first() is None


def waiting_count(tx: Connection, *, most: int | None = None, asked_by: Collection[str] | None = None) -> int:
    """Return how many reviews wait; with `most`, so many at most, at a cost that does not grow further.

    `asked_by` are those whose requests count; None: everybody's.
    """
    waiting = select(reviews.c.id).where(reviews.c.status == _WAITS)
    if asked_by is not None:
        waiting = waiting.where(reviews.c.requester.in_(sorted(asked_by)))
    count: int = tx.execute(select(func.count()).select_from(waiting.limit(most).subquery())).scalar_one()
    return count


def ids_like(tx: Connection, text: str, *, limit: int) -> list[str]:
    """Return ids that begin with the text, or end with it after a slash; newest first."""
    named = or_(
        reviews.c.id.startswith(text, autoescape=True), reviews.c.id.endswith(f"/{text}", autoescape=True)
    )
    query = select(reviews.c.id).where(named).order_by(reviews.c.asked_at.desc(), reviews.c.id).limit(limit)
    # LIKE takes capital and small letters for the same on SQLite.
    found = tx.execute(query).scalars()
    return [each for each in found if each.startswith(text) or each.endswith(f"/{text}")]


def due(tx: Connection, *, now: datetime, limit: int) -> list[tuple[str, str]]:
    """Return (review, thread) of pending reviews whose deadline is over."""
    return [(row.id, row.thread_id) for row in tx.execute(_OVERDUE, {"now": now, "most": limit})]


def _load(tx: Connection, query: Select[Any], **values: object) -> list[Review]:
    return _with_calls(tx, tx.execute(query, values).mappings().all())


def _with_calls(tx: Connection, rows: Sequence[RowMapping], *, key: str | None = None) -> list[Review]:
    ids = [row["id"] for row in rows]
    if not ids:
        return []
    one = {} if key is None else {"key": key}
    said: dict[tuple[str, str], list[Decision]] = {}
    for item in tx.execute(_DECISIONS_ON if one else _DECISIONS, {"ids": ids, **one}).mappings():
        said.setdefault((item["review_id"], item["key"]), []).append(_decision(item))
    called: dict[str, list[ReviewedCall]] = {}
    for item in tx.execute(_CALL if one else _CALLS, {"ids": ids, **one}).mappings():
        found = said.get((item["review_id"], item["key"]), [])
        called.setdefault(item["review_id"], []).append(_call(item, found))
    return [_review(row, called.get(row["id"], [])) for row in rows]


def _review(row: RowMapping, found: Sequence[ReviewedCall]) -> Review:
    values = {name: value for name, value in row.items() if name != "risk"}
    return Review(
        **{
            **values,
            "kind": ReviewKind(row["kind"]),
            "status": ReviewStatus(row["status"]),
            "calls": tuple(found),
        }
    )


def _call_values(call: ReviewedCall) -> dict[str, Any]:
    return {
        "key": call.key,
        "tool_call_id": call.tool_call_id,
        "proposed_tool": call.proposed_tool,
        "proposed": call.proposed,
        "tool": call.tool,
        "arguments": call.arguments,
        "schema_hash": call.schema_hash,
        "salt": call.salt,
        "fingerprint": call.fingerprint,
        "revision": call.revision,
        "state": call.state.value,
        "verdict": verdict_to_json(call.verdict),
        "since": call.since,
    }


def _call(row: RowMapping, found: Sequence[Decision]) -> ReviewedCall:
    values = {name: value for name, value in row.items() if name not in ("review_id", "place")}
    values |= {"state": Answer(row["state"]), "verdict": verdict_from_json(row["verdict"])}
    return ReviewedCall(**values, decisions=tuple(found))


def _decision_values(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "key": decision.call,
        "revision": decision.revision,
        "type": decision.type.value,
        "person": decision.by,
        "at": decision.at,
        "message": decision.message,
        "tool": decision.tool,
        "arguments": decision.arguments,
        "standing": decision.standing,
        "counted": [[each.group, each.need, each.through] for each in decision.counted],
    }


def _decision(row: RowMapping) -> Decision:
    return Decision(
        call=row["key"],
        type=DecisionType(row["type"]),
        by=row["person"],
        at=row["at"],
        revision=row["revision"],
        message=row["message"] or "",
        tool=row["tool"],
        arguments=row["arguments"],
        id=row["id"],
        standing=row["standing"],
        counted=tuple(Counted(*each) for each in row["counted"] or ()),
    )


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values."""
    return {
        "effect": verdict.effect.value,
        "risk": verdict.risk.value,
        "decisions": [item.value for item in verdict.decisions],
        "who": [[t.approve, t.reject, t.group, _times(t.also)] for t in verdict.who],
        "rules": list(verdict.rules),
        "policy": verdict.policy,
        "expire": None if verdict.expire is None else verdict.expire.total_seconds(),
        "reason": verdict.reason,
        "flags": dict(verdict.flags),
        "faults": list(verdict.faults),
        "self_approval": verdict.self_approval,
        "summaries": list(verdict.summaries),
        "secret": list(verdict.secret),
        "remind": [each.total_seconds() for each in verdict.remind],
        "escalate": _times(verdict.escalate),
    }


def verdict_from_json(value: dict[str, Any]) -> Verdict:
    """Return the verdict that `verdict_to_json` wrote."""
    return Verdict(
        effect=Effect(value["effect"]),
        risk=Risk(value["risk"]),
        decisions=tuple(DecisionType(item) for item in value["decisions"]),
        who=tuple(_threshold(*item) for item in value["who"]),
        rules=tuple(value["rules"]),
        policy=value["policy"],
        expire=None if value["expire"] is None else timedelta(seconds=value["expire"]),
        reason=value["reason"],
        flags=value["flags"],
        faults=tuple(value["faults"]),
        self_approval=value.get("self_approval"),
        summaries=tuple(value.get("summaries", ())),
        remind=tuple(timedelta(seconds=each) for each in value.get("remind", ())),
        escalate=_escalations(value.get("escalate", ())),
        secret=tuple(value.get("secret", ())),
    )


def _times(escalations: Sequence[Escalation]) -> list[list[Any]]:
    return [[each.after.total_seconds(), each.to] for each in escalations]


def _escalations(value: Sequence[Sequence[Any]]) -> tuple[Escalation, ...]:
    return tuple(Escalation(timedelta(seconds=seconds), to) for seconds, to in value)


def _threshold(approve: int, reject: int, group: str | None, also: Sequence[Any] = ()) -> Threshold:
    return Threshold(approve, reject, group, _escalations(also))
