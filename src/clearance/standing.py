"""Standing rules: "approve, and remember": calls like one that people cleared need not be asked about again.

They are no policy: they stand in for the people who approved of them, so often and until then, for calls of
low or medium risk that the policy holds. Each use is those people's decision on that call, and is judged as
such: by the thresholds of the call at hand, and by whether they may still decide.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from clearance.errors import Fault, InvalidInputError
from clearance.expression import Cel, read
from clearance.people import Person
from clearance.policy import DecisionType, Effect, Risk, Verdict
from clearance.review import Answer, Decision, ReviewedCall, ReviewKind, tally
from clearance.toolcall import canonical

MOST_USES = 1000
LONGEST = timedelta(days=31)
CEILINGS = (Risk.LOW, Risk.MEDIUM)
"""The risks of calls that a standing rule may let run; others are always asked about."""

_RISKS = tuple(Risk)


class StandingState(StrEnum):
    """`drafted` still needs people's approval; `active` is used; each of the others is final."""

    DRAFTED = "drafted"
    ACTIVE = "active"
    USED = "used"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Approval:
    """That a person approved of a standing rule."""

    by: str
    at: datetime


@dataclass(frozen=True)
class Terms:
    """What somebody wants remembered, besides the call itself.

    `free` names the arguments that may have any value; all others must be what they were. `when` is a
    condition in CEL over `args` and `tool`. `thread_only`: only in the thread of the call.
    """

    uses: int
    lasts: timedelta
    free: tuple[str, ...] = ()
    when: str | None = None
    thread_only: bool = False


@dataclass(frozen=True)
class StandingRule:
    """One standing rule. `equal` has the canonical JSON of each argument that must be what it was.

    `requester` is whose calls it is for; without `thread_id` in every thread of the program. `risk` is the
    highest that a call may have. `call` is the one that it was made from, in the review `review_id`.
    """

    id: str
    program: str
    tool: str
    schema_hash: str
    equal: Mapping[str, str]
    free: tuple[str, ...]
    when: Cel | None
    requester: str
    thread_id: str | None
    risk: Risk
    uses: int
    uses_left: int
    expires_at: datetime
    state: StandingState
    author: str
    review_id: str
    call: str
    created_at: datetime
    approvals: tuple[Approval, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it is in use, or may still come into use."""
        return self.state in (StandingState.DRAFTED, StandingState.ACTIVE)


def may_stand(verdict: Verdict, *, kind: ReviewKind) -> str | None:
    """Return why a standing rule can never speak for a call of this verdict, or None where one can."""
    if kind is not ReviewKind.CALLS:
        return "Only calls are remembered; a plan, or what became of a call, is decided each time."
    if verdict.effect is not Effect.HOLD or verdict.faults:
        return "Only a call that a rule of the policy holds, without any doubt, is remembered."
    if verdict.risk not in CEILINGS:
        return f"A call of {verdict.risk} risk is decided each time."
    if DecisionType.APPROVE not in verdict.decisions:
        return "The policy does not let this call be approved as it is."
    return None


def check_terms(terms: Terms, *, arguments: Mapping[str, Any], secret: bool) -> None:
    """Raise `InvalidInputError` with everything that is wrong with the terms for a call's arguments."""
    faults = [
        Fault("/any", f"{name!r} is no argument of the call") for name in terms.free if name not in arguments
    ]
    if not 1 <= terms.uses <= MOST_USES:
        faults.append(Fault("/uses", f"is from 1 to {MOST_USES}"))
    if not timedelta(0) < terms.lasts <= LONGEST:
        faults.append(Fault("/for", f"is a time of at most {LONGEST.days} days, such as 8h"))
    if terms.when is not None:
        faults += [Fault("/when", said) for said in _condition_faults(terms.when)]
    if secret:
        faults.append(Fault("", "the call has secret arguments, which a standing rule would keep"))
    if faults:
        raise InvalidInputError("This cannot be remembered.", faults=faults)


def _condition_faults(text: str) -> list[str]:
    # Loaded here: it brings a library that whoever has no such condition does not need.
    from clearance.cel import flaws

    found = [f"from character {flaw.offset + 1}: {flaw.message}" for flaw in flaws(Cel(text))]
    return found or [f"{name!r} is not known here" for name in sorted(read(text).names - {"args", "tool"})]


def equal_arguments(arguments: Mapping[str, Any], *, free: Sequence[str]) -> dict[str, str]:
    """Return the canonical JSON of each argument that is not free."""
    return {name: canonical(value) for name, value in arguments.items() if name not in free}


def speaks_for(
    rule: StandingRule,
    call: ReviewedCall,
    *,
    arguments: Mapping[str, Any],
    thread_id: str,
    kind: ReviewKind,
    now: datetime,
) -> bool:
    """Whether an active rule of the call's own program and requester is about this very call.

    `arguments` have the schema's defaults written out. An argument that the rule does not know, a condition
    that gives no answer, or a tool that changed: it is not.
    """
    return (
        rule.state is StandingState.ACTIVE
        and rule.uses_left > 0
        and now < rule.expires_at
        and rule.thread_id in (None, thread_id)
        and (rule.tool, rule.schema_hash) == (call.tool, call.schema_hash)
        and may_stand(call.verdict, kind=kind) is None
        and _RISKS.index(call.verdict.risk) <= _RISKS.index(rule.risk)
        and arguments.keys() <= {*rule.equal, *rule.free}
        and equal_arguments(arguments, free=rule.free) == dict(rule.equal)
        and (rule.when is None or _holds(rule.when, rule.tool, arguments))
    )


def _holds(when: Cel, tool: str, arguments: Mapping[str, Any]) -> bool:
    from clearance.cel import UnansweredError, answer

    try:
        return answer(when, tool, arguments=arguments, origin=None)
    except UnansweredError:
        return False


def spoken(
    rule: StandingRule, call: ReviewedCall, *, now: datetime, new_id: Callable[[], str]
) -> ReviewedCall:
    """Return the call with what the people behind a rule say to it: that they approve, each of them."""
    said = tuple(
        Decision(
            call=call.key,
            type=DecisionType.APPROVE,
            by=each.by,
            # One after the other, so that they are read in the order in which they were given.
            at=now + timedelta(microseconds=place),
            revision=call.revision,
            id=new_id(),
            standing=rule.id,
        )
        for place, each in enumerate(rule.approvals)
    )
    return replace(call, decisions=said)


def is_carried(call: ReviewedCall, people: Mapping[str, Person]) -> bool:
    """Whether those of the people who may decide are enough for the call by themselves."""
    return tally(call, people) is Answer.APPROVED
