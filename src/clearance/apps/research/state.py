"""The state of a run: which stage it has come to, and what the earlier ones gave."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """Stages in their order; the last four are final."""

    STARTED = "started"
    SEQUENCE = "sequence"
    LITERATURE = "literature"
    METHOD_KB = "method_kb"
    PLANNER = "planner"
    HITL_PLAN_PENDING = "hitl_plan_pending"
    HITL_PLAN_APPROVED = "hitl_plan_approved"
    HITL_EXECUTE_PENDING = "hitl_execute_pending"
    HITL_EXECUTE_APPROVED = "hitl_execute_approved"
    ANALYST = "analyst"
    REPORTER = "reporter"
    DONE = "done"
    HITL_REJECTED = "hitl_rejected"
    HITL_EXPIRED = "hitl_expired"
    BLOCKED_HITL = "blocked_hitl"


PENDING = frozenset({Stage.HITL_PLAN_PENDING, Stage.HITL_EXECUTE_PENDING})
FINAL = frozenset({Stage.DONE, Stage.HITL_REJECTED, Stage.HITL_EXPIRED, Stage.BLOCKED_HITL})


@dataclass(frozen=True)
class PipelineState:
    """What a run knows of itself. Paths are names of its files; `plan_version` is 0 before the first plan.

    `approved` is for display alone: nothing runs by it. `execute_rounds` counts how often people were asked
    at S5_execute. `confirmed` names the steps that were cleared there, each with the number of its question.
    `line` says for people what the stage gave.
    """

    run_id: str
    gene_symbol: str
    stage: Stage = Stage.STARTED
    approved: bool = False
    planner_summary: str = ""
    plan_artifact_path: str = ""
    plan_sha256: str = ""
    plan_version: int = 0
    analyst_summary: str = ""
    report_artifact_path: str = ""
    execute_rounds: int = 0
    confirmed: Mapping[str, int] | None = None
    line: str = ""

    def document(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {**asdict(self), "stage": self.stage.value}


def state_of(document: Mapping[str, Any]) -> PipelineState:
    """Return the state that `document` gave."""
    return PipelineState(**{**document, "stage": Stage(document["stage"])})
