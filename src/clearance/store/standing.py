"""Rows of standing rules and of who approved of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, insert, select, update

from clearance.audit import AuditKind
from clearance.errors import NotFoundError
from clearance.expression import Cel
from clearance.people import SYSTEM
from clearance.policy import Risk
from clearance.standing import Approval, StandingRule, StandingState
from clearance.store import audit
from clearance.store.runs import insert_ignoring
from clearance.store.tables import standing_approvals as approvals
from clearance.store.tables import standing_rules as rules

_OPEN = (StandingState.DRAFTED.value, StandingState.ACTIVE.value)
_IS_OPEN = rules.c.state.in_(_OPEN)
_NEWEST = (rules.c.created_at.desc(), rules.c.id)


def keep(tx: Connection, rule: StandingRule) -> None:
    """Keep a new rule; its approvals are kept one by one."""
    tx.execute(
        insert(rules),
        {
            "id": rule.id,
            "program": rule.program,
            "tool": rule.tool,
            "schema_hash": rule.schema_hash,
            "equal": dict(rule.equal),
            "free": list(rule.free),
            "when": None if rule.when is None else rule.when.text,
            "requester": rule.requester,
            "thread_id": rule.thread_id,
            "risk": rule.risk.value,
            "uses": rule.uses,
            "uses_left": rule.uses_left,
            "expires_at": rule.expires_at,
            "state": rule.state.value,
            "author": rule.author,
            "review_id": rule.review_id,
            "call": rule.call,
            "created_at": rule.created_at,
        },
    )


def approve(tx: Connection, rule_id: str, approval: Approval) -> bool:
    """Keep a person's approval; False when they have approved before."""
    row = {"rule_id": rule_id, "person": approval.by, "at": approval.at}
    kept = insert_ignoring(tx, approvals).values(row).returning(approvals.c.person)
    return tx.execute(kept).first() is not None


def rule(tx: Connection, rule_id: str, *, lock: bool = False) -> StandingRule:
    """Return a rule, locked until the transaction ends where that is wanted. Raises `NotFoundError`."""
    query = select(rules).where(rules.c.id == rule_id)
    found = _load(tx, query.with_for_update() if lock else query)
    if not found:
        raise NotFoundError(f"There is no standing rule {rule_id}.")
    return found[0]


def active(tx: Connection, *, program: str, requester: str, tools: Collection[str]) -> list[StandingRule]:
    """Return the active rules for these tools, locked in one order for all: the one that ends first first."""
    query = select(rules).where(
        rules.c.program == program,
        rules.c.requester == requester,
        rules.c.tool.in_(tools),
        _IS_OPEN,
        rules.c.state == StandingState.ACTIVE.value,
    )
    found = _load(tx, query.order_by(rules.c.id).with_for_update())
    return sorted(found, key=lambda each: (each.expires_at, each.id))


def page(
    tx: Connection, *, every: bool, limit: int, requesters: Collection[str] | None = None
) -> list[StandingRule]:
    """Return the newest rules, newest first: those that are open, or all; of all or some requesters."""
    query = select(rules).order_by(*_NEWEST).limit(limit)
    if requesters is not None:
        query = query.where(rules.c.requester.in_(sorted(requesters)))
    return _load(tx, query if every else query.where(_IS_OPEN))


def due(tx: Connection, *, now: datetime, limit: int) -> list[str]:
    """Return the ids of open rules whose time is over."""
    query = select(rules.c.id).where(_IS_OPEN, rules.c.expires_at <= now).order_by(rules.c.expires_at)
    return list(tx.execute(query.limit(limit)).scalars())


def move(tx: Connection, rule_id: str, *, frm: Sequence[StandingState], to: StandingState) -> bool:
    """Give a rule another state; False when it is in none of those any more."""
    return _changed(tx, rule_id, frm=frm, state=to.value)


def use(tx: Connection, found: StandingRule) -> int | None:
    """Use up one of a rule's uses; return how many are left, None where it has none any more."""
    left = found.uses_left - 1
    state = StandingState.ACTIVE if left else StandingState.USED
    done = _changed(tx, found.id, frm=(StandingState.ACTIVE,), uses_left=left, state=state.value)
    return left if done and left >= 0 else None


def forget(tx: Connection, reviews: Select[tuple[str]], *, now: datetime) -> None:
    """Remove the values of the rules that were made from these reviews; none of them is used any more."""
    mine = rules.c.review_id.in_(reviews)
    expired = StandingState.EXPIRED.value
    ended = update(rules).where(mine, _IS_OPEN).values(state=expired).returning(rules.c.id)
    for rule_id in tx.execute(ended).scalars().all():
        audit.write(tx, AuditKind.STANDING_RULE_EXPIRED, rule_id, actor=SYSTEM, now=now)
    tx.execute(update(rules).where(mine).values(equal={}, free=[], when=None))


def revoked(tx: Connection, ids: Collection[str]) -> bool:
    """Whether any of these rules was revoked."""
    query = select(rules.c.id).where(rules.c.id.in_(ids), rules.c.state == StandingState.REVOKED.value)
    return tx.execute(query).first() is not None


def _changed(tx: Connection, rule_id: str, *, frm: Sequence[StandingState], **values: Any) -> bool:
    change = (
        update(rules)
        .where(rules.c.id == rule_id, rules.c.state.in_([each.value for each in frm]))
        .values(**values)
        .returning(rules.c.id)
    )
    return tx.execute(change).first() is not None


def _load(tx: Connection, query: Select[Any]) -> list[StandingRule]:
    rows = tx.execute(query).mappings().all()
    said: dict[str, list[Approval]] = {}
    if rows:
        found = select(approvals).where(approvals.c.rule_id.in_([row["id"] for row in rows]))
        for item in tx.execute(found.order_by(approvals.c.at, approvals.c.person)).mappings():
            said.setdefault(item["rule_id"], []).append(Approval(item["person"], item["at"]))
    return [
        StandingRule(
            **{
                **row,
                "free": tuple(row["free"]),
                "when": None if row["when"] is None else Cel(row["when"]),
                "risk": Risk(row["risk"]),
                "state": StandingState(row["state"]),
                "approvals": tuple(said.get(row["id"], ())),
            }
        )
        for row in rows
    ]
