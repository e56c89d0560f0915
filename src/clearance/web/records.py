"""Records: what the API answers with, as its document describes it, and exact JSON to send it in.

The records themselves are made by `clearance.reading`, for every door alike; here they have types.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from clearance.outcome import CallState
from clearance.people import Kind, Mode, Role
from clearance.policy import DecisionType, Risk
from clearance.review import Answer, ReviewKind, ReviewStatus
from clearance.run import RunState


class Record(BaseModel):
    """Something that is answered: these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class AsProposed(Record):
    """What was proposed first; an edit leaves it as it is."""

    tool: str
    arguments: str


class Approvals(Record):
    """One threshold: how many approvals it has and needs, and how many rejections would reject."""

    group: str | None
    have: int
    need: int
    reject: int


class DecisionMade(Record):
    """One person's answer for one call, at the revision that they saw."""

    by: str
    at: datetime
    type: DecisionType
    revision: int
    message: str | None
    tool: str | None
    arguments: str | None


class CallRecord(Record):
    """One call of a review."""

    place: int = Field(description="Its number in the review, from 1.")
    call: str = Field(description="Its key: what a decision names.")
    tool: str
    args: dict[str, Any] = Field(description="The arguments as they stand.")
    arguments: str = Field(
        description="The same as exact JSON text, for readers whose numbers are not exact."
    )
    proposed: AsProposed
    revision: int
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
    ended_at: datetime | None
    reason: str | None
    calls: list[CallRecord]
    untrusted: Untrusted


class ReviewPage(Record):
    """Reviews, and where the next page begins."""

    reviews: list[ReviewRecord]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


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
    created_at: datetime
    ended_at: datetime | None


class RunPage(Record):
    """Runs, and where the next page begins."""

    runs: list[RunRecord]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class Me(Record):
    """Whose key was shown."""

    id: str
    name: str
    kind: Kind
    role: Role
    groups: list[str]
    behind: str | None = Field(description="The person an agent acts for.")
    mode: Mode = Field(description="`separate`: nobody decides their own requests.")


def exact(
    record: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with a record as JSON: ASCII only, numbers exactly as they are, whatever their size."""
    return Response(exact_text(record), status, headers=dict(headers or {}), media_type="application/json")


def exact_text(record: Mapping[str, Any]) -> str:
    """Return a record as `exact` answers with it."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False)
