"""What goes over the wire about research runs: bodies that are taken, and records that are answered."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from clearance.apps.research.research_request import MAX_FASTA, MAX_OBJECTIVE, ResearchRequest
from clearance.apps.research.state import Stage
from clearance.run import RunState
from clearance.web.bodies import Words
from clearance.web.records import Record


class Started(BaseModel):
    """What a run is to find out."""

    model_config = ConfigDict(extra="forbid")

    symbol: Words = Field(
        default="", max_length=100, description="The gene's symbol, such as BRCA1; needed without `fasta`."
    )
    objective: Words = Field(default="", max_length=MAX_OBJECTIVE, description="What you want to know.")
    organism: Words = Field(default="human", max_length=100)
    fasta: Words | None = Field(
        default=None, max_length=MAX_FASTA, description="Your own sequence, as FASTA."
    )
    fasta_kind: str | None = Field(
        default=None,
        max_length=100,
        description="What `fasta` holds: `dna` or `protein`. Null: its letters say.",
    )
    offline: bool = Field(default=False, strict=True, description="Ask no service.")
    replay: Words | None = Field(
        default=None, max_length=200, description="A run: use only what that one was answered."
    )
    executor: str = Field(default="local", max_length=100, description="`local` or `argo`.")
    planner: Words = Field(default="rules", max_length=200, description="`rules`, or a chat model.")

    @property
    def request(self) -> ResearchRequest:
        """The same as the pipeline takes it."""
        return ResearchRequest(**self.model_dump())


class Choice(StrEnum):
    """What people may say at a gate."""

    APPROVE = "approve"
    EDIT = "edit"
    REVISE = "revise"
    REJECT = "reject"


class Resumed(BaseModel):
    """What one person decides on the plan that a run waits with."""

    model_config = ConfigDict(extra="forbid")

    decision: Choice
    plan_sha256: str | None = Field(
        default=None,
        max_length=100,
        description="The plan that was seen. Needed once there are two versions.",
    )
    review_id: str | None = Field(
        default=None,
        max_length=1000,
        description="The question that is answered. Needed at `S5_execute`.",
    )
    message: Words = Field(default="", max_length=10_000, description="Why; a rejection needs it.")
    changes: dict[str, Any] | None = Field(
        default=None, description="For `revise`: `exclude`, `require`, `max_cost`, `params`."
    )
    plan: dict[str, Any] | None = Field(default=None, description="For `edit`: the plan to carry out.")


class StageRecord(Record):
    """One step of a run's way."""

    n: int = Field(description="Its number, from 1.")
    stage: Stage
    at: datetime
    line: str = Field(description="What it gave, in a sentence.")


class ArtifactRecord(Record):
    """One file of a run. Files never change."""

    name: str
    media_type: str
    sha256: str
    size: int
    at: datetime


class ShortPipelineRecord(Record):
    """A research run, as a list tells of it."""

    run_id: str
    gene_symbol: str
    objective: str
    state: RunState
    stage: Stage
    requester: str
    created_at: datetime
    ended_at: datetime | None
    reason: str | None


class PipelineRecord(ShortPipelineRecord):
    """A research run: where it is, what it waits for, and what it has."""

    planner_summary: str
    plan_artifact_path: str
    plan_version: int = Field(description="0: there is no plan yet.")
    plan_sha256: str
    analyst_summary: str
    report_artifact_path: str
    interrupted: bool = Field(description="Whether it waits for people.")
    gate: str | None
    review_id: str | None
    expires_at: datetime | None
    stages: list[StageRecord]
    files: list[ArtifactRecord]


class PipelinePage(Record):
    """Research runs, and where the next page begins."""

    runs: list[ShortPipelineRecord]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.")


class PlanRecord(Record):
    """A version of a plan."""

    run_id: str
    version: int
    plan_sha256: str
    plan: dict[str, Any] = Field(description="The plan as `research_plan.v1` has it.")


class PlanDiffRecord(Record):
    """What changed in the plan since the version that this person decided on last."""

    run_id: str
    version: int
    plan_sha256: str
    diff: dict[str, Any] | None = Field(description="Null: it is the first version.")
    lines: list[str] = Field(description="The same for people.")


class Artifacts(Record):
    """The files of a run, by name."""

    run_id: str
    files: list[ArtifactRecord]
