"""Enforcement: whether a plan is cleared, asked of the store and of nothing else.

The graph stops in front of the analyst anyway. This is asked once more behind it, because a graph can be
walked round; and each step then still needs a clearance of its own.
"""

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from clearance.apps.research.analyst import AskFirst, Questions
from clearance.apps.research.hitl import BlockedError, BlockedReason
from clearance.apps.research.plan_calls import PlanQuestion, execute_question, plan_question, reaches_further
from clearance.execution import AskAgain
from clearance.review import Answer, ReviewStatus
from clearance.run import Run
from clearance.store import reviews

if TYPE_CHECKING:
    from clearance.apps.research.plan import Plan
    from clearance.apps.research.runs import ResearchRuns
    from clearance.apps.research.state import PipelineState


def questions_of(plan: "Plan", state: "PipelineState") -> Questions:
    """Return which question cleared each step of a plan."""
    mine = state.confirmed or {}
    execute = {
        step.id: execute_question(plan, (step,), round=mine[step.id])
        for step in plan.steps
        if step.id in mine
    }
    return Questions(plan_question(plan), execute)


def check_cleared(tx: Connection, run: Run, questions: Questions) -> None:
    """Raise `BlockedError` unless people approved what every question asks."""
    if not run.is_open:
        raise BlockedError(
            BlockedReason.ALREADY_EXECUTED, f"Run {run.id} has ended: {run.state}. Start a new one."
        )
    for step in questions.plan.steps:
        if reaches_further(step) and step.id not in questions.execute:
            raise BlockedError(BlockedReason.NOT_APPROVED, f"{step.id} was not asked about at S5_execute.")
    for question in (questions.plan, *questions.execute.values()):
        reason, error = _standing(tx, run, question)
        if reason is not None:
            raise BlockedError(reason, error)


def execute_plan_steps(research: "ResearchRuns", run_id: str) -> dict[str, Any]:
    """Carry a cleared plan out from outside the graph, and return what came of it.

    `{"status": "blocked_hitl", "reason", "error"}` where people have not cleared it, and then nothing has
    run; else `{"status": "done", "steps": [{"step", "state"}]}`. However often and from wherever it is
    called, a step runs at most once.
    """
    run, state = research.run(run_id), research.state(run_id)
    try:
        done = research.carry_out(run, state)
    except BlockedError as error:
        return error.document()
    if isinstance(done, AskFirst):
        return BlockedError(BlockedReason.BUDGET_EXCEEDED, done.reason).document()
    if isinstance(done, AskAgain):
        return BlockedError(BlockedReason.REVOKED, "A clearance does not stand any more.").document()
    return {"status": "done", "steps": [{"step": each.step.id, "state": each.state} for each in done]}


def _standing(tx: Connection, run: Run, question: PlanQuestion) -> tuple[BlockedReason | None, str]:
    """Return why a question is not answered with yes, if it is not."""
    asked = reviews.of_message(tx, run.id, question.number)
    if not asked:
        return BlockedReason.NOT_APPROVED, "Nobody was asked about this plan."
    last = asked[-1]
    match last.status:
        case ReviewStatus.PENDING:
            return BlockedReason.NOT_APPROVED, f"Review {last.id} waits for a decision."
        case ReviewStatus.EXPIRED:
            return BlockedReason.EXPIRED, f"Review {last.id} expired before it was decided."
        case ReviewStatus.WITHDRAWN | ReviewStatus.INVALIDATED:
            return BlockedReason.REVOKED, f"Review {last.id} was {last.status}: {last.reason}"
        case ReviewStatus.SETTLED:
            said = {call.state for call in last.calls}
            if Answer.INVALIDATED in said:
                return BlockedReason.REVOKED, f"What was decided in review {last.id} does not stand any more."
            if said != {Answer.APPROVED}:
                return BlockedReason.NOT_APPROVED, f"Review {last.id} was not approved."
            return None, ""
