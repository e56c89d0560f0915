"""The pipeline's gates: what waits at them, what may be decided, and why a plan is not carried out."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from clearance.apps.research.plan_calls import EXECUTE
from clearance.errors import ClearanceError
from clearance.review import Answer, Review, ReviewStatus


class HITLGate(StrEnum):
    """Where a run waits for people: before anything of a plan runs, and before what reaches further."""

    S4_PLAN = "S4_plan"
    S5_EXECUTE = "S5_execute"


class HITLDecision(StrEnum):
    """What people may say at a gate."""

    APPROVE = "approve"
    REJECT = "reject"
    REVISE = "revise"


@dataclass(frozen=True)
class HITLRequest:
    """What waits at a gate. `payload_path` is the plan's file, relative to the run's folder."""

    gate: HITLGate
    run_id: str
    summary: str
    payload_path: str
    created_at: datetime
    review_id: str
    plan_sha256: str

    def document(self) -> dict[str, Any]:
        """Return it as JSON, as `meta.json` has it."""
        return {**self.__dict__, "created_at": self.created_at.isoformat()}


def gate_of(review: Review) -> HITLGate:
    """Return the gate at which a review of a plan was asked."""
    return HITLGate.S4_PLAN if review.message < EXECUTE else HITLGate.S5_EXECUTE


def version_of(review: Review) -> int:
    """Return the version of the plan that a review is about."""
    return review.message % EXECUTE


def answered(review: Review) -> Answer:
    """Return what people said to a plan: they say it to all of its steps alike."""
    states = {call.state for call in review.calls}
    for answer in (Answer.REJECTED, Answer.EXPIRED, Answer.WITHDRAWN, Answer.REVISED):
        if answer in states:
            return answer
    return Answer.APPROVED if states == {Answer.APPROVED} else Answer.REJECTED


def decided(review: Review) -> HITLDecision | None:
    """Return what people decided on a plan; None where they did not, or not yet."""
    if review.status is not ReviewStatus.SETTLED:
        return None
    return _DECISIONS.get(answered(review))


_DECISIONS = {
    Answer.APPROVED: HITLDecision.APPROVE,
    Answer.REJECTED: HITLDecision.REJECT,
    Answer.REVISED: HITLDecision.REVISE,
}


class BlockedReason(StrEnum):
    """Why nothing of a plan runs."""

    NOT_APPROVED = "not_approved"
    HASH_MISMATCH = "hash_mismatch"
    TEMPLATE_DRIFT = "template_drift"
    INPUT_DRIFT = "input_drift"
    EXPIRED = "expired"
    REVOKED = "revoked"
    BUDGET_EXCEEDED = "budget_exceeded"
    ALREADY_EXECUTED = "already_executed"


class BlockedError(ClearanceError):
    """A plan, or a step of one, that may not run as things stand. Nothing of it was started."""

    status = 409
    exit_code = 7

    def __init__(self, reason: BlockedReason, error: str) -> None:
        super().__init__(f"blocked_hitl: {reason}: {error}")
        self.reason = reason
        self.error = error

    def document(self) -> dict[str, str]:
        """Return the block as JSON, as programs are told of it."""
        return {"status": "blocked_hitl", "reason": self.reason.value, "error": self.error}
