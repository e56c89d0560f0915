"""The breaker: an agent that proposes too many calls in a minute, or the same one too often, is parked.

Then nothing that it proposes is taken, and nothing of it starts, until an operator lets it go on. It watches
agents with keys of their own; what a person's chat does is bounded by its steps.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.errors import AgentParkedError, ConflictError, ForbiddenError, NotFoundError
from clearance.people import SYSTEM, Kind, Role, has_role
from clearance.store import audit, calls, parking, people
from clearance.store.database import Database
from clearance.store.parking import Parked
from clearance.toolcall import ToolCall, canonical, parse_arguments

WITHIN = timedelta(minutes=1)


@dataclass(frozen=True)
class Limits:
    """How many calls an agent may propose in a minute, and how many that are the same; 0: any number."""

    calls: int = 0
    same: int = 0


NO_LIMITS = Limits()


def check_going(tx: Connection, agent: str) -> None:
    """Raise `AgentParkedError` where the agent is parked."""
    found = parking.parked(tx, agent)
    if found is not None:
        raise AgentParkedError(found.agent, found.reason)


def watch(
    tx: Connection, proposed: Sequence[ToolCall], limits: Limits, *, requester: str, now: datetime
) -> Parked | None:
    """Count the calls that a requester proposes; return why it is parked, by this or from before.

    The caller commits what was counted, and refuses what was proposed.
    """
    found = parking.parked(tx, requester)
    if found is not None or not (limits.calls or limits.same):
        return found
    person = people.by_id(tx, [requester]).get(requester)
    if person is None or person.kind is not Kind.AGENT:
        return None
    known = calls.rows(tx, {call.key for call in proposed})
    digests = {call.key: _digest(call) for call in proposed if call.key not in known}
    reason = _too_much(parking.note(tx, requester, digests, now=now, since=now - WITHIN), limits)
    if reason is None:
        return None
    found = Parked(requester, reason, now)
    if parking.park(tx, found):
        audit.write(tx, AuditKind.AGENT_PARKED, requester, actor=SYSTEM, now=now, facts={"reason": reason})
    return found


def forget(database: Database) -> None:
    """Remove what was noted of calls longer ago than it counts: a digest of arguments may be guessed back."""
    with database.read() as tx:
        until = database.now(tx) - WITHIN
        left = parking.some(tx, until=until)
    if left:
        with database.write() as tx:
            parking.forget(tx, until=until)


def resume(database: Database, agent: str, *, by: str) -> None:
    """Let a parked agent go on, as an operator.

    Raises `ForbiddenError`, `NotFoundError`, and `ConflictError` when it is not parked.
    """
    with database.write() as tx:
        person = people.person(tx, by)
        if person.kind is Kind.AGENT or person.disabled or not has_role(person, Role.OPERATOR):
            raise ForbiddenError("Only an operator lets an agent go on.")
        if people.person(tx, agent).kind is not Kind.AGENT:
            raise NotFoundError(f"There is no agent {agent}.")
        if not parking.release(tx, agent):
            raise ConflictError(f"The agent {agent} is not parked.")
        audit.write(tx, AuditKind.AGENT_RESUMED, agent, actor=by, now=database.now(tx))


def _too_much(found: dict[str, int], limits: Limits) -> str | None:
    total, most = sum(found.values()), max(found.values(), default=0)
    if limits.same and most > limits.same:
        return f"it proposed the same call more than {limits.same} times in a minute"
    if limits.calls and total > limits.calls:
        return f"it proposed more than {limits.calls} calls in a minute"
    return None


def _digest(call: ToolCall) -> str:
    said = canonical({"tool": call.tool, "arguments": parse_arguments(call.arguments)})
    return hashlib.sha256(said.encode()).hexdigest()
