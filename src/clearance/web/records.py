"""Records: what the API answers with, as its document describes it, and exact JSON to send it in.

The records themselves are made by `clearance.reading`, for every door alike; here they have types.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from clearance.credential import Scope
from clearance.outcome import CallState
from clearance.people import Kind, Mode, Role
from clearance.policy import DecisionType, Risk
from clearance.review import Answer, ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.standing import StandingState


class Record(BaseModel):
    """Something that is answered: these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class AsProposed(Record):
    """What was proposed first; an edit leaves it as it is."""

    tool: str
    arguments: str | None


class ClaimRecord(Record):
    """Who says that they are looking at a review, and until when. It binds nobody."""

    by: str
    until: datetime


class EscalationRecord(Record):
    """A group whose members may decide too, from an instant on."""

    to: str
    at: datetime


class CountedRecord(Record):
    """A threshold that a decision counted for when it was taken."""

    group: str | None = Field(description="Of which group it wants people; null: of any.")
    need: int = Field(description="How many must say the same.")
    through: str | None = Field(description="The group that stood in for it since an escalation.")


class Approvals(Record):
    """One threshold: how many approvals it has and needs, and how many rejections would reject."""

    group: str | None
    have: int
    need: int
    reject: int
    escalates: list[EscalationRecord] = Field(description="Whose members count too, and since when.")


class DecisionMade(Record):
    """One person's answer for one call, at the revision that they saw."""

    by: str
    at: datetime
    type: DecisionType
    revision: int
    message: str | None
    tool: str | None
    arguments: str | None
    standing_rule: str | None = Field(description="The standing rule through which it was said in advance.")
    counted: list[CountedRecord] = Field(description="The thresholds that it counted for.")


class CallRecord(Record):
    """One call of a review."""

    place: int = Field(description="Its number in the review, from 1.")
    call: str = Field(description="Its key: what a decision names.")
    tool: str
    args: dict[str, Any] | None = Field(description="The arguments as they stand; null once removed.")
    arguments: str | None = Field(
        description="The same as exact JSON text, for readers whose numbers are not exact."
    )
    proposed: AsProposed
    revision: int
    secret: list[str] = Field(description="What is masked in it, as JSON pointers into the arguments.")
    fingerprint: str
    answer: Answer = Field(description="What the decisions on it add up to.")
    risk: Risk
    flags: dict[str, str] = Field(description="Arguments that are pointed out, each with the reason.")
    summary: str | None = Field(description="What the rules say the call is, with its values.")
    allowed_decisions: list[DecisionType]
    reason_required: bool
    rules: list[str]
    faults: list[str]
    policy: str
    approvals: list[Approvals]
    description: str | None = Field(description="What the maker of the tool says about it.")
    state: CallState | None = Field(description="What became of it.")
    result: str | None
    decisions: list[DecisionMade]


class Untrusted(Record):
    """Texts of people and models that nobody has checked."""

    message: str | None
    model_text: str | None


class ReviewRecord(Record):
    """One question to people."""

    review_id: str
    version: int
    status: ReviewStatus
    kind: ReviewKind
    risk: Risk
    thread_id: str
    run_id: str
    program: str
    requester: str
    asked_at: datetime
    expires_at: datetime | None
    claim: ClaimRecord | None = Field(description="Who is looking at it.")
    ended_at: datetime | None
    reason: str | None
    redacted_at: datetime | None = Field(description="When retention removed the values.")
    calls: list[CallRecord]
    untrusted: Untrusted


class ReviewPage(Record):
    """Reviews, and where the next page begins."""

    reviews: list[ReviewRecord]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class Approved(Record):
    """That somebody approved of a standing rule."""

    by: str
    at: datetime


class StandingRuleRecord(Record):
    """Calls that people let run without being asked about again."""

    rule_id: str
    state: StandingState
    program: str
    tool: str
    equal: dict[str, str] = Field(description="Arguments that must be what they were, as exact JSON text.")
    any: list[str] = Field(description="Arguments that may have any value.")
    when: str | None = Field(description="A condition in CEL that must hold besides.")
    requester: str = Field(description="Whose calls it is for.")
    thread_id: str | None = Field(description="The thread in which it is used; null: in each.")
    risk: Risk = Field(description="The highest risk that a call may have.")
    uses: int
    uses_left: int
    expires_at: datetime
    author: str
    approvals: list[Approved]
    review_id: str = Field(description="The review of the call that it was made from.")
    call: str
    created_at: datetime


class StandingRulePage(Record):
    """Standing rules, the newest first."""

    standing_rules: list[StandingRuleRecord]


class ParkedRecord(Record):
    """An agent that the breaker has parked: nothing of it runs."""

    agent: str
    reason: str
    since: datetime


class ParkedPage(Record):
    """Agents that are parked."""

    parked: list[ParkedRecord]


class ResumedRecord(Record):
    """Which agent may go on."""

    resumed: str


class RunRecord(Record):
    """One turn of work."""

    run_id: str
    thread_id: str
    program: str
    state: RunState
    requester: str
    message: str | None
    answer: str | None
    reason: str | None
    redacted_at: datetime | None = Field(description="When retention removed the values.")
    created_at: datetime
    ended_at: datetime | None


class RunPage(Record):
    """Runs, and where the next page begins."""

    runs: list[RunRecord]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class Me(Record):
    """Whose key was shown, and how far it goes."""

    id: str
    name: str
    kind: Kind
    role: Role
    groups: list[str]
    behind: str | None = Field(description="The person an agent acts for.")
    mode: Mode = Field(description="`separate`: nobody decides their own requests.")
    scopes: list[Scope] = Field(description="What may be done with this key; empty: it only reads.")


def exact(
    record: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with a record as JSON: ASCII only, numbers exactly as they are, whatever their size."""
    return Response(exact_text(record), status, headers=dict(headers or {}), media_type="application/json")


def exact_text(record: Mapping[str, Any]) -> str:
    """Return a record as `exact` answers with it."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False)
