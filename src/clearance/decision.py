"""Decisions: how a set of them is read, and what it makes of a review.

`read_decisions` turns what a client sent into one decision for each waiting call, or refuses it whole.
`settle` applies the set: a function of values, evaluated inside the transaction that stores its result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from clearance.deadline import deadline, earliest, is_over
from clearance.errors import (
    Fault,
    ForbiddenError,
    InvalidArgumentsError,
    InvalidReviewDecisionError,
    ReviewConflictError,
)
from clearance.people import Mode, Person, counts_for, refusal
from clearance.policy import DecisionType, Effect, own_request
from clearance.review import (
    Answer,
    Decision,
    Review,
    ReviewedCall,
    ReviewKind,
    ReviewStatus,
    counted,
    latest,
    tally,
)
from clearance.shapes import read_shapes, sent_arguments
from clearance.toolcall import argument_text

Revise = Callable[[ReviewedCall, str, str], ReviewedCall]
"""Makes the next revision of a call for (call, tool, arguments): schema checked, policy judged again.
Raises `InvalidArgumentsError`, or `InvalidReviewDecisionError` for a tool that is not known."""


def read_decisions(payload: object, review: Review, *, by: str, now: datetime) -> tuple[Decision, ...]:
    """Return one decision for each waiting call of the review, in the order in which they came.

    Each item is `{"type", "call", "message"?, "edited_action"?: {"name", "args"}}`; `args` is an object, or
    JSON text where exact numbers matter. `call` is the call's key; it may be left out only where order
    cannot matter: one call waits, or all decisions are the same and carry nothing. A plan is decided whole:
    one item without a `call` stands for all of it; `changes` says what to do otherwise when it is revised.
    Raises `InvalidReviewDecisionError` with every fault; nothing is guessed.
    """
    if not isinstance(payload, Sequence) or isinstance(payload, str | bytes):
        raise InvalidReviewDecisionError("Decisions are a list, one for each call that waits.")
    waiting = review.waiting
    items, faults = read_shapes(payload)
    if faults:
        raise InvalidReviewDecisionError("The decisions cannot be taken.", faults=faults)
    if review.kind is ReviewKind.PLAN and len(items) == 1 and items[0].get("call") is None:
        items = [{**items[0], "call": call.key} for call in waiting]
    if len(items) != len(waiting):
        raise InvalidReviewDecisionError(
            f"{len(waiting)} calls wait and {len(items)} decisions came. Send one for each: {_keys(waiting)}."
        )
    named = [item.get("call") for item in items]
    if all(name is None for name in named):
        _require_order_free(items, waiting)
        named = [call.key for call in waiting]
    faults = _name_faults(named, waiting)
    if faults:
        raise InvalidReviewDecisionError(
            f"The decisions do not match the calls that wait ({_keys(waiting)}).", faults=faults
        )
    by_key = {call.key: call for call in waiting}
    return tuple(
        _decision(item, by_key[name or ""], by=by, now=now) for item, name in zip(items, named, strict=True)
    )


def settle(
    review: Review,
    decisions: Sequence[Decision],
    *,
    by: Person,
    now: datetime,
    version: int,
    mode: Mode,
    party: str,
    people: Mapping[str, Person],
    revise: Revise,
) -> Review:
    """Return the review with these decisions of one person applied, all of them or none.

    `decisions` are what `read_decisions` gave; `version` is the one the person saw; `party` is the person
    on whose behalf it was asked; `people` are known by their ids, `by` and who decided before among them.
    Decisions that repeat what the person has said before change nothing: the review itself is returned.
    Raises `ReviewConflictError` when the review is no longer what was seen, `ForbiddenError` when the person
    may not decide it, `InvalidReviewDecisionError` for a content that the rules do not allow.
    """
    check_open(review, version=version, now=now)
    entitled = _entitled(review, by, people=people, mode=mode, party=party, now=now)
    calls = _applied(review, decisions, by=by, people=entitled, revise=revise)
    if all(_repeats(old, new) for old, new in zip(review.calls, calls, strict=True)):
        return review
    settled = all(call.state is not Answer.WAITING for call in calls)
    return replace(
        review,
        calls=tuple(calls),
        deadline=_deadline(review, calls, now=now),
        version=review.version + 1,
        status=ReviewStatus.SETTLED if settled else ReviewStatus.PENDING,
        ended_at=now if settled else None,
    )


def check_waiting(review: Review, *, now: datetime) -> None:
    """Raise `ReviewConflictError` unless the review waits and is in time."""
    if review.status is not ReviewStatus.PENDING:
        raise ReviewConflictError(f"Review {review.id} is {review.status} already. {outcome(review)}", review)
    if is_over(review.deadline, now=now):
        raise ReviewConflictError(
            f"Review {review.id} expired at {review.deadline:%Y-%m-%d %H:%M:%S} UTC.", review
        )


def check_open(review: Review, *, version: int, now: datetime) -> None:
    """Raise `ReviewConflictError` unless the review waits, is in time, and is the one that was seen."""
    check_waiting(review, now=now)
    if review.version != version:
        raise ReviewConflictError(
            f"Review {review.id} changed since you read it (version {review.version}, you saw {version}). "
            f"{outcome(review)} Read it again.",
            review,
        )


def outcome(review: Review) -> str:
    """Return who decided what so far, as a sentence."""
    said = [
        f"{item.by}: {item.type} {call.tool}"
        for call in review.calls
        for item in sorted(call.decisions, key=lambda item: item.at)
    ]
    if said:
        return "Decided: " + "; ".join(said) + "."
    return review.reason or "Nobody has decided yet."


def _applied(
    review: Review, decisions: Sequence[Decision], *, by: Person, people: Mapping[str, Person], revise: Revise
) -> list[ReviewedCall]:
    """Return the calls with the decisions on them, or raise with every fault of every decision."""
    if review.kind is ReviewKind.PLAN and len({(item.type, item.message) for item in decisions}) > 1:
        raise InvalidReviewDecisionError("A plan is decided whole: give all of it the same decision.")
    answers = {item.call: (place, item) for place, item in enumerate(decisions)}
    calls: list[ReviewedCall] = []
    faults: list[Fault] = []
    for call in review.calls:
        if call.state is not Answer.WAITING:
            calls.append(call)
            continue
        place, answer = answers[call.key]
        try:
            calls.append(_apply(call, answer, by=by, kind=review.kind, people=people, revise=revise))
        except InvalidReviewDecisionError as error:
            found = error.faults or (Fault("", str(error)),)
            faults.extend(Fault(f"/{place}{fault.pointer}", fault.message) for fault in found)
    if faults:
        raise InvalidReviewDecisionError("The decisions cannot be taken.", faults=faults)
    return _as_one(calls) if review.kind is ReviewKind.PLAN else calls


def _as_one(calls: list[ReviewedCall]) -> list[ReviewedCall]:
    """Return the steps of a plan, which stands or falls whole: a no to one of them is one to all."""
    no = next((call.state for call in calls if call.state in (Answer.REJECTED, Answer.REVISED)), None)
    return calls if no is None else [replace(call, state=no) for call in calls]


def why_not(review: Review, person: Person, *, mode: Mode, party: str, now: datetime) -> str | None:
    """Return why this person may not decide the review at `now`, or None when they may.

    `party` is the person on whose behalf it was asked.
    """
    return _refusal(review, person, mode=mode, party=party) or _counts_nowhere(person, review, now=now)


def _refusal(review: Review, person: Person, *, mode: Mode, party: str) -> str | None:
    own = own_request(call.verdict for call in review.waiting)
    return refusal(person, requester=party, mode=mode, operators_only=review.operators_only, own=own)


def _entitled(
    review: Review, by: Person, *, people: Mapping[str, Person], mode: Mode, party: str, now: datetime
) -> dict[str, Person]:
    """Return those of the people who may decide the review, or raise `ForbiddenError` when `by` may not.

    Who may not decide any more has no say, whatever they said before.
    """
    reason = why_not(review, by, mode=mode, party=party, now=now)
    if reason is not None:
        raise ForbiddenError(reason)
    return {
        name: person
        for name, person in people.items()
        if _refusal(review, person, mode=mode, party=party) is None
    }


def _counts_nowhere(person: Person, review: Review, *, now: datetime) -> str | None:
    """Say so when a person belongs to no group that any waiting call needs, or was escalated to by now."""
    who = [(call, threshold) for call in review.waiting for threshold in call.verdict.who]
    if any(counts_for(person, threshold, elapsed=call.elapsed(now)) for call, threshold in who):
        return None
    groups = sorted({threshold.group for _, threshold in who if threshold.group is not None})
    return f"{person.name} is in none of the groups that decide this: {', '.join(groups)}."


def _deadline(review: Review, calls: Sequence[ReviewedCall], *, now: datetime) -> datetime | None:
    """Return the review's deadline, brought nearer by what the rules say about calls that were edited now."""
    edited = [
        new.verdict for old, new in zip(review.calls, calls, strict=True) if new.revision > old.revision
    ]
    return earliest(review.deadline, deadline(edited, asked_at=now))


def _repeats(old: ReviewedCall, new: ReviewedCall) -> bool:
    """Whether a decision said once more what its person had said last, and changed nothing by it."""
    if old == new:
        return True
    said = new.decisions[-1]
    before = latest(old).get(said.by)
    return (
        before is not None
        and (old.state, old.revision) == (new.state, new.revision)
        and (before.type, before.message, before.counted) == (said.type, said.message, said.counted)
    )


def _apply(
    call: ReviewedCall,
    decision: Decision,
    *,
    by: Person,
    kind: ReviewKind,
    people: Mapping[str, Person],
    revise: Revise,
) -> ReviewedCall:
    allowed = call.verdict.decisions
    if decision.type not in allowed:
        raise InvalidReviewDecisionError(
            f"{call.tool} cannot be answered with {decision.type}; allowed: {', '.join(allowed)}."
        )
    if decision.type is DecisionType.REJECT and call.verdict.reason and not decision.message.strip():
        raise InvalidReviewDecisionError(f"Rejecting {call.tool} needs a reason: fill 'message'.")
    if decision.type is DecisionType.REVISE and kind is not ReviewKind.PLAN:
        raise InvalidReviewDecisionError(f"Only a plan is sent back to be revised; {call.tool} is a call.")
    if decision.type is DecisionType.EDIT:
        elapsed = call.elapsed(decision.at)
        if not any(counts_for(by, threshold, elapsed=elapsed) for threshold in call.verdict.who):
            raise InvalidReviewDecisionError(f"{by.name} is in no group that decides {call.tool}.")
        call = _edited(call, decision, revise=revise)
    # Later is later, even where the clock was set back: what a person said last is what counts.
    after = max((item.at + timedelta(microseconds=1) for item in call.decisions), default=decision.at)
    said = replace(decision, revision=call.revision, at=max(decision.at, after))
    said = replace(said, counted=counted(call, said, by=by))
    call = replace(call, decisions=(*call.decisions, said))
    return replace(call, state=tally(call, people))


def _edited(call: ReviewedCall, decision: Decision, *, revise: Revise) -> ReviewedCall:
    """Return the next revision: a new proposal, which the rules of its own tool must let people clear."""
    tool = decision.tool or call.tool
    try:
        revised = revise(call, tool, decision.arguments or "")
    except InvalidArgumentsError as error:
        faults = [Fault(f"/edited_action/args{fault.pointer}", fault.message) for fault in error.faults]
        raise InvalidReviewDecisionError(str(error), faults=faults) from error
    verdict = revised.verdict
    if verdict.effect is Effect.DENY:
        raise InvalidReviewDecisionError(f"The policy denies {tool} with these arguments.")
    if not {DecisionType.APPROVE, DecisionType.EDIT} <= set(verdict.decisions):
        raise InvalidReviewDecisionError(f"The rules of {tool} do not let an edit clear it.")
    # Where other people are needed from now on, it is now that they are asked.
    since = call.since if verdict.who == call.verdict.who else decision.at
    return replace(revised, revision=call.revision + 1, state=Answer.WAITING, since=since)


def _require_order_free(items: Sequence[Mapping[str, Any]], waiting: Sequence[ReviewedCall]) -> None:
    if len(waiting) <= 1:
        return
    bare = all(not item.get("message") and not item.get("edited_action") for item in items)
    if bare and len({item["type"] for item in items}) == 1:
        return
    raise InvalidReviewDecisionError(
        f"{len(waiting)} calls wait, and the decisions differ: each must name its 'call' ({_keys(waiting)})."
    )


def _name_faults(named: Sequence[str | None], waiting: Sequence[ReviewedCall]) -> list[Fault]:
    keys = {call.key for call in waiting}
    faults = []
    for place, name in enumerate(named):
        if name is None:
            faults.append(Fault(f"/{place}/call", "is missing"))
        elif name not in keys:
            faults.append(Fault(f"/{place}/call", "names no call that waits"))
        elif named.index(name) != place:
            faults.append(Fault(f"/{place}/call", "is named twice"))
    return faults


def _decision(item: Mapping[str, Any], call: ReviewedCall, *, by: str, now: datetime) -> Decision:
    action, changes = item.get("edited_action"), item.get("changes")
    said = sent_arguments(action["args"]) if action else None
    return Decision(
        call=call.key,
        type=DecisionType(item["type"]),
        by=by,
        at=now,
        revision=call.revision,
        message=item.get("message") or "",
        tool=(action.get("name") or call.tool) if action else None,
        arguments=argument_text(dict(changes)) if changes is not None else said,
    )


def _keys(calls: Sequence[ReviewedCall]) -> str:
    return ", ".join(call.key for call in calls)


def named_calls(payload: object) -> list[str]:
    """Return the calls that a payload names, whatever else is right or wrong with it."""
    items = payload if isinstance(payload, Sequence) and not isinstance(payload, str | bytes) else []
    return [item["call"] for item in items if isinstance(item, Mapping) and isinstance(item.get("call"), str)]
