"""Making standing rules: drafted from a call, approved by as many as the call needs, and revoked.

A rule is in use from the moment at which the people behind it would have been enough for the call that it was
made from: whoever drafts it is one of them.
"""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError
from clearance.expression import Cel
from clearance.once import Once
from clearance.once import claim as claim_once
from clearance.once import keep as keep_once
from clearance.people import SYSTEM, Kind, Person, Role, counts_for, has_role, refusal
from clearance.policy import Verdict
from clearance.recalling import entitled
from clearance.review import Review, ReviewedCall
from clearance.schema import with_defaults
from clearance.standing import (
    Approval,
    StandingRule,
    StandingState,
    Terms,
    check_terms,
    equal_arguments,
    is_carried,
    may_stand,
    spoken,
)
from clearance.store import audit, people, policies, reviews, standing
from clearance.store.database import Database
from clearance.toolcall import parse_arguments

SWEEP_LIMIT = 100
_OPEN = (StandingState.DRAFTED, StandingState.ACTIVE)


def draft(
    database: Database,
    review_id: str,
    terms: Terms,
    *,
    by: str,
    rule_id: str,
    call: str | None = None,
    once: Once[StandingRule] | None = None,
) -> StandingRule:
    """Remember a call of a review, as one of the people who may decide it; return the rule as it then is.

    `call` is its key; it may be left out where the review has one. The rule is active where one person is
    enough for the call, else drafted. Raises `NotFoundError`, `ForbiddenError`, and `InvalidInputError` for
    terms, or a call, that cannot be remembered; `Repeated` for a request that was done before.
    """
    with database.write() as tx:
        claim_once(database, tx, once)
        review = reviews.review(tx, review_id)
        found = _named(review, call)
        person = people.person(tx, by)
        _check_entitled(tx, person, found.verdict, requester=review.requester)
        why_not = may_stand(found.verdict, kind=review.kind)
        if why_not is not None:
            raise InvalidInputError(why_not)
        now = database.now(tx)
        made = _drafted(tx, review, found, terms, by=by, rule_id=rule_id, now=now)
        standing.keep(tx, made)
        facts = {"review": review.id, "call": found.key, "tool": found.tool, "uses": made.uses}
        facts |= {"expires_at": made.expires_at.isoformat(), "fingerprint": found.fingerprint}
        audit.write(tx, AuditKind.STANDING_RULE_DRAFTED, made.id, actor=by, now=now, facts=facts)
        drafted = _approved(tx, made, found, by=by, now=now)
        keep_once(tx, once, drafted)
        return drafted


def approve(database: Database, rule_id: str, *, by: str) -> StandingRule:
    """Approve of a drafted rule; it is active once enough people have. Approving again changes nothing.

    Raises `ConflictError` when it is no draft any more, `ForbiddenError` for who may not decide such a call.
    """
    with database.write() as tx:
        rule = standing.rule(tx, rule_id, lock=True)
        person = people.person(tx, by)
        found = _named(reviews.review(tx, rule.review_id), rule.call)
        _check_entitled(tx, person, found.verdict, requester=rule.requester)
        now = database.now(tx)
        if rule.state is not StandingState.DRAFTED or now >= rule.expires_at:
            raise ConflictError(f"Standing rule {rule.id} is no draft: it is {_word(rule, now=now)}.")
        return _approved(tx, rule, found, by=by, now=now)


def revoke(database: Database, rule_id: str, *, by: str) -> StandingRule:
    """Take a rule out of use, as its author or an operator; return it.

    What it cleared, and has not started, is asked about again. Raises `ConflictError` when it was revoked or
    has expired already, `ForbiddenError`, `NotFoundError`.
    """
    with database.write() as tx:
        rule = standing.rule(tx, rule_id, lock=True)
        person = people.person(tx, by)
        if person.kind is Kind.AGENT or (by != rule.author and not has_role(person, Role.OPERATOR)):
            raise ForbiddenError("Only who drafted this standing rule, or an operator, can revoke it.")
        if not standing.move(tx, rule.id, frm=(*_OPEN, StandingState.USED), to=StandingState.REVOKED):
            raise ConflictError(f"Standing rule {rule.id} is {rule.state} already.")
        now = database.now(tx)
        audit.write(tx, AuditKind.STANDING_RULE_REVOKED, rule.id, actor=by, now=now)
        return replace(rule, state=StandingState.REVOKED)


def expire(database: Database) -> int:
    """End the rules whose time is over; return how many. Harmless from several workers."""
    with database.read() as tx:
        due = standing.due(tx, now=database.now(tx), limit=SWEEP_LIMIT)
    found = 0
    for rule_id in due:
        with database.write() as tx:
            if standing.move(tx, rule_id, frm=_OPEN, to=StandingState.EXPIRED):
                found += 1
                now = database.now(tx)
                audit.write(tx, AuditKind.STANDING_RULE_EXPIRED, rule_id, actor=SYSTEM, now=now)
    return found


def _named(review: Review, key: str | None) -> ReviewedCall:
    if key is None and len(review.calls) == 1:
        return review.calls[0]
    found = review.call(key) if key is not None else None
    if found is None:
        keys = ", ".join(call.key for call in review.calls)
        raise InvalidInputError(f"Name one call of review {review.id}: {keys}.")
    return found


def _check_entitled(tx: Connection, person: Person, verdict: Verdict, *, requester: str) -> None:
    party = people.party(tx, requester, known={person.id: person})
    reason = refusal(person, requester=party, mode=people.mode(tx), own=verdict.self_approval)
    if reason is None and not any(counts_for(person, threshold) for threshold in verdict.who):
        groups = ", ".join(sorted({threshold.group or "" for threshold in verdict.who}))
        reason = f"{person.name} is in none of the groups that decide such calls: {groups}."
    if reason is not None:
        raise ForbiddenError(reason)


def _drafted(
    tx: Connection,
    review: Review,
    call: ReviewedCall,
    terms: Terms,
    *,
    by: str,
    rule_id: str,
    now: datetime,
) -> StandingRule:
    schema = policies.schema(tx, call.schema_hash) or {}
    arguments = with_defaults(schema, parse_arguments(call.arguments))
    check_terms(terms, arguments=arguments, secret=bool(call.verdict.secret))
    return StandingRule(
        id=rule_id,
        program=review.program,
        tool=call.tool,
        schema_hash=call.schema_hash,
        equal=equal_arguments(arguments, free=terms.free),
        free=tuple(sorted(set(terms.free))),
        when=None if terms.when is None else Cel(terms.when),
        requester=review.requester,
        thread_id=review.thread_id if terms.thread_only else None,
        risk=call.verdict.risk,
        uses=terms.uses,
        uses_left=terms.uses,
        expires_at=now + terms.lasts,
        state=StandingState.DRAFTED,
        author=by,
        review_id=review.id,
        call=call.key,
        created_at=now,
    )


def _approved(
    tx: Connection, rule: StandingRule, call: ReviewedCall, *, by: str, now: datetime
) -> StandingRule:
    """Note one more approval, and bring the rule into use when those that count are enough."""
    if not standing.approve(tx, rule.id, Approval(by, now)):
        return rule
    if by != rule.author:
        audit.write(tx, AuditKind.STANDING_RULE_APPROVED, rule.id, actor=by, now=now)
    after = replace(rule, approvals=(*rule.approvals, Approval(by, now)))
    if not _is_enough(tx, after, call, now=now):
        return after
    standing.move(tx, rule.id, frm=(StandingState.DRAFTED,), to=StandingState.ACTIVE)
    audit.write(tx, AuditKind.STANDING_RULE_ACTIVATED, rule.id, actor=by, now=now)
    return replace(after, state=StandingState.ACTIVE)


def _is_enough(tx: Connection, rule: StandingRule, call: ReviewedCall, *, now: datetime) -> bool:
    names = [each.by for each in rule.approvals]
    known = entitled(tx, names, requester=rule.requester, verdict=call.verdict)
    # As if the call were asked about now: whom it was escalated to then has no say here.
    fresh = replace(call, since=now)
    return is_carried(spoken(rule, fresh, now=now, new_id=str), known)


def _word(rule: StandingRule, *, now: datetime) -> str:
    return StandingState.EXPIRED if rule.is_open and now >= rule.expires_at else rule.state
