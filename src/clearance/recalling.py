"""Using standing rules: a call that people cleared in advance is cleared as soon as it is asked about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.people import SYSTEM, Person, refusal
from clearance.policy import Verdict
from clearance.review import Answer, Decision, ReviewedCall, ReviewKind, counted
from clearance.run import Run
from clearance.schema import with_defaults
from clearance.standing import StandingRule, is_carried, may_stand, speaks_for, spoken
from clearance.store import audit, people, standing
from clearance.toolcall import Tool, parse_arguments


def recalled(
    tx: Connection,
    found: Sequence[ReviewedCall],
    *,
    run: Run,
    kind: ReviewKind,
    tools: Mapping[str, Tool],
    now: datetime,
    new_id: Callable[[], str],
) -> list[ReviewedCall]:
    """Return calls that nobody was asked about before, approved where a standing rule speaks for them.

    Each that is uses up one use of its rule, in the transaction in which it is asked about. The decisions on
    it are those of the people behind the rule, and count only as theirs on this call would.
    """
    eligible = {call.tool for call in found if may_stand(call.verdict, kind=kind) is None}
    if not eligible:
        return list(found)
    rules = standing.active(tx, program=run.program, requester=run.requester, tools=eligible)
    if not rules or people.barred(tx, run.requester) is not None:
        return list(found)
    left = {rule.id: rule for rule in rules}
    answered: list[ReviewedCall] = []
    for call in found:
        arguments = with_defaults(tools[call.tool].schema, parse_arguments(call.arguments))
        for rule in left.values():
            if not speaks_for(rule, call, arguments=arguments, thread_id=run.thread_id, kind=kind, now=now):
                continue
            carried = _carried(tx, rule, call, run=run, now=now, new_id=new_id)
            if carried is not None:
                left[rule.id] = _used(tx, rule, carried, now=now)
                call = carried
                break
        answered.append(call)
    return answered


def _carried(
    tx: Connection,
    rule: StandingRule,
    call: ReviewedCall,
    *,
    run: Run,
    now: datetime,
    new_id: Callable[[], str],
) -> ReviewedCall | None:
    """Return the call approved by the people behind the rule; None where they are not enough today."""
    known = entitled(tx, [each.by for each in rule.approvals], requester=run.requester, verdict=call.verdict)
    said = spoken(rule, call, now=now, new_id=new_id)
    if not is_carried(said, known):
        return None
    decisions = tuple(_counted(said, item, known) for item in said.decisions if item.by in known)
    return replace(said, decisions=decisions, state=Answer.APPROVED)


def _counted(call: ReviewedCall, said: Decision, known: Mapping[str, Person]) -> Decision:
    return replace(said, counted=counted(call, said, by=known[said.by]))


def entitled(tx: Connection, names: Sequence[str], *, requester: str, verdict: Verdict) -> dict[str, Person]:
    """Return those of the people who may decide what `requester` asks for under this verdict."""
    known = people.by_id(tx, list(names))
    party = people.party(tx, requester, known=known)
    mode = people.mode(tx)
    return {
        name: person
        for name, person in known.items()
        if refusal(person, requester=party, mode=mode, own=verdict.self_approval) is None
    }


def _used(tx: Connection, rule: StandingRule, call: ReviewedCall, *, now: datetime) -> StandingRule:
    left = standing.use(tx, rule)
    if left is None:
        raise LookupError(f"standing rule {rule.id} was locked and has no use left")
    facts = {"call": call.key, "fingerprint": call.fingerprint, "uses_left": left}
    audit.write(tx, AuditKind.STANDING_RULE_USED, rule.id, actor=SYSTEM, now=now, facts=facts)
    return replace(rule, uses_left=left)
