"""Reviews: one question to people, about one or more tool calls, and what their decisions add up to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from clearance.people import Person, counts_for
from clearance.policy import DecisionType, Risk, Threshold, Verdict


class ReviewKind(StrEnum):
    """What the question is: may these calls run; what became of an uncertain one; is this plan good."""

    CALLS = "calls"
    OUTCOME = "outcome"
    PLAN = "plan"


class ReviewStatus(StrEnum):
    """`pending` waits; each of the others is final."""

    PENDING = "pending"
    SETTLED = "settled"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    INVALIDATED = "invalidated"


class Answer(StrEnum):
    """What the decisions on one call add up to.

    `revised`: its plan goes back to be made anew. `invalidated`: it no longer counts, and is asked again.
    """

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    RESPONDED = "responded"
    REVISED = "revised"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    INVALIDATED = "invalidated"


@dataclass(frozen=True)
class Counted:
    """A threshold that a decision counted for when it was taken: of which group, and how many it needs.

    `through` is the group that stood in for it since the question was escalated; None: its own, or anybody.
    """

    group: str | None
    need: int
    through: str | None = None


@dataclass(frozen=True)
class Decision:
    """One person's answer for one tool call, at the revision that they saw.

    `message` is the reason or comment, or for `respond` the result; an edit carries `tool` and `arguments`
    (JSON text). `counted` are the thresholds that it counted for. `standing` is the standing rule through
    which the person said it in advance.
    """

    call: str
    type: DecisionType
    by: str
    at: datetime
    revision: int = 1
    message: str = ""
    tool: str | None = None
    arguments: str | None = None
    id: str = ""
    counted: tuple[Counted, ...] = ()
    standing: str | None = None


@dataclass(frozen=True)
class ReviewedCall:
    """One call of a review: as it was proposed, as it now stands, and what people said to it.

    `since` is when people were asked about the present revision; escalations are counted from it.
    """

    key: str
    tool_call_id: str
    proposed_tool: str
    proposed: str
    tool: str
    arguments: str
    schema_hash: str
    salt: str
    fingerprint: str
    verdict: Verdict
    revision: int = 1
    state: Answer = Answer.WAITING
    decisions: tuple[Decision, ...] = ()
    since: datetime | None = None

    def elapsed(self, now: datetime) -> timedelta:
        """Return for how long people have been asked about this revision; nothing, where it is not known."""
        return timedelta(0) if self.since is None else now - self.since

    @property
    def edited(self) -> bool:
        """Whether what stands differs from what was proposed."""
        return self.revision > 1


@dataclass(frozen=True)
class Review:
    """One question to people. `message` is the number of the AI message within the run, from 1."""

    id: str
    run_id: str
    thread_id: str
    program: str
    kind: ReviewKind
    message: int
    round: int
    status: ReviewStatus
    version: int
    requester: str
    asked_at: datetime
    deadline: datetime | None
    calls: tuple[ReviewedCall, ...]
    ended_at: datetime | None = None
    reason: str | None = None

    @property
    def waiting(self) -> tuple[ReviewedCall, ...]:
        """The calls that still need decisions."""
        return tuple(call for call in self.calls if call.state is Answer.WAITING)

    @property
    def risk(self) -> Risk:
        """The highest risk among the calls."""
        return max((call.verdict.risk for call in self.calls), key=tuple(Risk).index)

    @property
    def operators_only(self) -> bool:
        """Whether only operators decide: what became of calls that no rule says anything about."""
        ruled = any(call.verdict.rules for call in self.calls)
        return self.kind is ReviewKind.OUTCOME and not ruled

    def call(self, key: str) -> ReviewedCall | None:
        """The call with this key, if the review has it."""
        return next((call for call in self.calls if call.key == key), None)


def tally(call: ReviewedCall, people: Mapping[str, Person]) -> Answer:
    """Return what the decisions on the call's present revision add up to.

    A function of the set of decisions alone, whatever their order: the last answer of each person counts,
    as long as that person is known and not disabled. Whom an escalation lets decide too is judged by the
    instant of their decision, so that time alone changes nothing. Any threshold's rejections reject; a
    person's own result, or sending a plan back, needs as many who said so; approval needs every threshold.
    An edit approves its own revision.
    """
    said = latest(call)
    for wanted, answer in _REFUSALS.items():
        voices = _voices(call, said, people, wanted)
        if any(_count(voices, threshold) >= threshold.reject for threshold in call.verdict.who):
            return answer
    approvals = _voices(call, said, people, *_APPROVALS)
    if all(_count(approvals, threshold) >= threshold.approve for threshold in call.verdict.who):
        return Answer.APPROVED
    return Answer.WAITING


def standing(call: ReviewedCall, people: Mapping[str, Person]) -> tuple[tuple[Threshold, int], ...]:
    """Return for each threshold how many approvals count for it so far."""
    approvals = _voices(call, latest(call), people, *_APPROVALS)
    return tuple((threshold, _count(approvals, threshold)) for threshold in call.verdict.who)


def counted(call: ReviewedCall, decision: Decision, *, by: Person) -> tuple[Counted, ...]:
    """Return the thresholds that a decision on the call's present revision counts for."""
    elapsed = call.elapsed(decision.at)
    found = []
    for threshold in call.verdict.who:
        if counts_for(by, threshold, elapsed=elapsed):
            own = threshold.group is None or threshold.group in by.groups
            open_to = [each.to for each in threshold.also if elapsed >= each.after and each.to in by.groups]
            need = threshold.approve if decision.type in _APPROVALS else threshold.reject
            found.append(Counted(threshold.group, need, through=None if own else open_to[0]))
    return tuple(found)


def latest(call: ReviewedCall) -> dict[str, Decision]:
    """Return each person's last decision on the present revision, by the person's id."""
    said: dict[str, Decision] = {}
    for item in sorted(call.decisions, key=lambda item: (item.at, item.id)):
        if item.revision == call.revision:
            said[item.by] = item
    return said


def response(call: ReviewedCall) -> str:
    """Return the result that a person gave in the tool's place: the latest one."""
    given = [item for item in latest(call).values() if item.type is DecisionType.RESPOND]
    return max(given, key=lambda item: (item.at, item.by)).message if given else ""


def refusal_reasons(call: ReviewedCall, *, type: DecisionType = DecisionType.REJECT) -> str:
    """Return what people wrote when they rejected the call (or said `type`), in their order."""
    said = [item for item in latest(call).values() if item.type is type and item.message]
    return " / ".join(item.message for item in sorted(said, key=lambda item: (item.at, item.by)))


def closed(review: Review, status: ReviewStatus, *, now: datetime, reason: str) -> Review:
    """Return the review closed without a settlement: every waiting call gets the matching answer."""
    answer = Answer(status.value)
    calls = tuple(
        replace(call, state=answer) if call.state is Answer.WAITING else call for call in review.calls
    )
    return replace(
        review, status=status, calls=calls, ended_at=now, reason=reason, version=review.version + 1
    )


_APPROVALS = (DecisionType.APPROVE, DecisionType.EDIT)
# In this order: a no weighs most. A result in the tool's place, or sending a plan back, needs as many.
_REFUSALS = {
    DecisionType.REJECT: Answer.REJECTED,
    DecisionType.RESPOND: Answer.RESPONDED,
    DecisionType.REVISE: Answer.REVISED,
}


def _voices(
    call: ReviewedCall, said: Mapping[str, Decision], people: Mapping[str, Person], *types: DecisionType
) -> list[tuple[Person, timedelta]]:
    """Return who said one of these, and how long after they were asked."""
    return [
        (people[by], call.elapsed(item.at))
        for by, item in said.items()
        if item.type in types and by in people and not people[by].disabled
    ]


def _count(voices: Iterable[tuple[Person, timedelta]], threshold: Threshold) -> int:
    return sum(1 for person, elapsed in voices if counts_for(person, threshold, elapsed=elapsed))
