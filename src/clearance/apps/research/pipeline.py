"""The pipeline: advances a run from stage to stage, and stops where people must decide.

    sequence → literature → method_kb → planner → hitl_plan → [hitl_execute] → analyst → reporter

Level-triggered as every program here: a segment reads how far the run is, and does what comes next. A stage
that was cut off is done again; what it had kept stays. Stopping costs rows, and no process.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, assert_never

from clearance import turns
from clearance.apps.research.analyst import Analyst, AskFirst, StepDone
from clearance.apps.research.enforcement import check_cleared, questions_of
from clearance.apps.research.findings import Findings
from clearance.apps.research.hitl import BlockedError, BlockedReason, HITLGate, answered
from clearance.apps.research.plan import Plan
from clearance.apps.research.plan_calls import (
    PROGRAM,
    PlanQuestion,
    calls_of,
    execute_question,
    plan_question,
    reaches_further,
)
from clearance.apps.research.planning import MAX_REVISIONS, Planning
from clearance.apps.research.research_request import read_request
from clearance.apps.research.run_store import RunStore, plan_file
from clearance.apps.research.state import FINAL, PipelineState, Stage
from clearance.asking import Question
from clearance.errors import ConflictError
from clearance.execution import AskAgain
from clearance.gate import Gate
from clearance.killpoints import at
from clearance.ledger import Ledger
from clearance.policy import DecisionType
from clearance.program import Finished, Parked
from clearance.review import Answer, Review, ReviewKind, ReviewStatus
from clearance.run import Run
from clearance.store import reviews, runs

ANALYSIS = "analysis.json"
_TAKEN_BACK = "The step was not needed any more."
_ASKED_AGAIN = "The step waits at S5_execute."
# A step runs as its plan has it: other arguments are another plan, and a result is what a step gives.
_NOT_FOR_A_PLAN = frozenset({DecisionType.EDIT, DecisionType.RESPOND})


class Reporter(Protocol):
    """Writes the report of a run from its records, and returns the name of its main file."""

    def write(self, run: Run, state: PipelineState, plan: Plan) -> str:
        """Write every form of the report; `ReportError` for what cannot be traced to the run's records."""
        ...


@dataclass(frozen=True)
class Pipeline:
    """The stages of one workspace. `on_stage` hears of each stage that a run has come to."""

    store: RunStore
    findings: Findings
    planning: Planning
    analyst: Analyst
    reporter: Reporter
    gate: Gate
    ledger: Ledger
    on_stage: Callable[[PipelineState, str], None] = lambda _state, _line: None

    def segment(self, run: Run, fence: int) -> Finished | Parked:
        """Advance a run to its next stop."""
        state = self.store.state(run.id) or self._begun(run, fence=fence)
        # A process that died may have kept a file and not written it.
        self.store.rebuild(run.id)
        if state.stage is Stage.BLOCKED_HITL:
            # The process died between this stage and the end of the run.
            raise ConflictError(state.line)
        while state.stage not in FINAL:
            if not self._is_open(run.id):
                return Parked()
            try:
                after = self._next(run, state, fence=fence)
            except BlockedError as error:
                self._reach(state, Stage.BLOCKED_HITL, str(error), fence=fence)
                raise
            if after is None:
                return Parked()
            state = after
        return Finished(_answer(state))

    def _is_open(self, run_id: str) -> bool:
        """Whether a run goes on; people may have cancelled it while a stage was at work."""
        with self.ledger.database.read() as tx:
            return runs.run(tx, run_id).is_open

    def _begun(self, run: Run, *, fence: int) -> PipelineState:
        state = PipelineState(run.id, read_request(run.input).subject)
        return self._reach(state, Stage.STARTED, "", fence=fence)

    def _next(self, run: Run, state: PipelineState, *, fence: int) -> PipelineState | None:
        """Return the state after the next stage; None when people must decide first."""
        request = read_request(run.input)
        match state.stage:
            case Stage.STARTED:
                line = self.findings.sequence(run.id, request, fence=fence)
                return self._reach(state, Stage.SEQUENCE, line, fence=fence)
            case Stage.SEQUENCE:
                line = self.findings.literature(run.id, request, fence=fence)
                return self._reach(state, Stage.LITERATURE, line, fence=fence)
            case Stage.LITERATURE:
                line = self.findings.method_kb(run.id, fence=fence)
                return self._reach(state, Stage.METHOD_KB, line, fence=fence)
            case Stage.METHOD_KB:
                asked = self.findings.plan_request(run.id)
                plan = self._kept_plan(run.id, 1) or self.planning.first(asked, planner=request.planner)
                return self._planned(state, plan, fence=fence)
            case Stage.PLANNER | Stage.HITL_PLAN_PENDING:
                return self._hitl_plan(run, state, fence=fence)
            case Stage.HITL_PLAN_APPROVED | Stage.HITL_EXECUTE_PENDING:
                return self._hitl_execute(run, state, fence=fence)
            case Stage.HITL_EXECUTE_APPROVED:
                return self._analyst(run, state, fence=fence)
            case Stage.ANALYST:
                plan = self.store.plan(run.id, state.plan_version)
                path = self.reporter.write(run, state, plan)
                return self._reach(state, Stage.REPORTER, path, fence=fence, report_artifact_path=path)
            case Stage.REPORTER:
                return self._reach(state, Stage.DONE, state.report_artifact_path, fence=fence)
            case Stage.DONE | Stage.HITL_REJECTED | Stage.HITL_EXPIRED | Stage.BLOCKED_HITL:
                raise ValueError(f"run {run.id} has ended")
            case _:
                assert_never(state.stage)

    # --- the gates ---

    def _planned(self, state: PipelineState, plan: Plan, *, fence: int) -> PipelineState:
        """Keep a version of the plan. What was kept under its name cannot be another one."""
        name = plan_file(plan.version)
        self.store.put(state.run_id, name, plan.text, fence=fence)
        return self._reach(
            state,
            Stage.PLANNER,
            plan.summary,
            fence=fence,
            planner_summary=plan.summary,
            plan_artifact_path=name,
            plan_sha256=plan.sha256,
            plan_version=plan.version,
            approved=False,
            execute_rounds=0,
            confirmed=None,
        )

    def _kept_plan(self, run_id: str, version: int) -> Plan | None:
        """Return a version that was kept by a stage that was cut off; a model would make another one."""
        return self.store.plan(run_id, version) if self.store.has(run_id, plan_file(version)) else None

    def _hitl_plan(self, run: Run, state: PipelineState, *, fence: int) -> PipelineState | None:
        plan = self.analyst.read_cleared(run.id, version=state.plan_version, sha256=state.plan_sha256)
        question = plan_question(plan)
        review = self._ask(run, plan, question, gate=HITLGate.S4_PLAN, fence=fence)
        if review.status is ReviewStatus.PENDING:
            self._park(state, plan, gate=HITLGate.S4_PLAN, fence=fence)
            return None
        # Should somebody have edited this version in the folder: it is not what was decided on.
        self.store.path(run.id, plan_file(plan.version))
        match answered(review):
            case Answer.APPROVED:
                self.store.record_hitl_decision(run.id)
                return self._reach(state, Stage.HITL_PLAN_APPROVED, _who(review), fence=fence, approved=True)
            case Answer.REVISED:
                self.store.record_hitl_decision(run.id)
                request = self.findings.plan_request(run.id)
                said = read_request(run.input)
                after = self._kept_plan(run.id, plan.version + 1) or self.planning.next(
                    plan, request, review=review, planner=said.planner
                )
                return self._planned(state, after, fence=fence)
            case other:
                return self._refused(run, state, other, review, fence=fence)

    def _hitl_execute(self, run: Run, state: PipelineState, *, fence: int) -> PipelineState | None:
        """Ask once more about what reaches further than the plan alone, where there is any of it."""
        plan = self.analyst.read_cleared(run.id, version=state.plan_version, sha256=state.plan_sha256)
        if state.execute_rounds == 0:
            steps = tuple(step for step in plan.steps if reaches_further(step))
            if not steps:
                return self._reach(state, Stage.HITL_EXECUTE_APPROVED, "", fence=fence)
            state = self._reach(
                state,
                Stage.HITL_EXECUTE_PENDING,
                ", ".join(step.id for step in steps),
                fence=fence,
                execute_rounds=1,
                confirmed={step.id: 1 for step in steps},
            )
        question = self._execute_question(plan, state)
        # From here on only what is said at this gate lets these steps run.
        earlier = [call.key for call in calls_of(plan, replace(question, number=plan.version), run_id=run.id)]
        turns.take_back_cleared(self.ledger, run, by=run.requester, reason=_ASKED_AGAIN, only=earlier)
        review = self._ask(run, plan, question, gate=HITLGate.S5_EXECUTE, fence=fence)
        if review.status is ReviewStatus.PENDING:
            self._park(state, plan, gate=HITLGate.S5_EXECUTE, fence=fence)
            return None
        answer = answered(review)
        if answer is not Answer.APPROVED:
            return self._refused(run, state, answer, review, fence=fence)
        self.store.record_hitl_decision(run.id)
        return self._reach(state, Stage.HITL_EXECUTE_APPROVED, _who(review), fence=fence)

    def _execute_question(self, plan: Plan, state: PipelineState) -> PlanQuestion:
        mine = state.confirmed or {}
        steps = tuple(step for step in plan.steps if mine.get(step.id) == state.execute_rounds)
        return execute_question(plan, steps, round=state.execute_rounds)

    def _ask(self, run: Run, plan: Plan, question: PlanQuestion, *, gate: HITLGate, fence: int) -> Review:
        """Ask people about a question once, and return the review that stands for it."""
        last = gate is HITLGate.S5_EXECUTE or plan.version > MAX_REVISIONS
        asked = self.gate.ask(
            Question(
                run_id=run.id,
                thread_id=run.thread_id,
                program=PROGRAM,
                message=question.number,
                calls=calls_of(plan, question, run_id=run.id),
                tools=self.analyst.tools,
                fence=fence,
                by_model=False,
                kind=ReviewKind.PLAN,
                withheld=_NOT_FOR_A_PLAN | ({DecisionType.REVISE} if last else set()),
            )
        )
        at("asked")
        if asked is not None:
            return asked
        with self.ledger.database.read() as tx:
            rounds = reviews.of_message(tx, run.id, question.number)
        if not rounds:
            raise BlockedError(BlockedReason.NOT_APPROVED, "The policy denies every step of this plan.")
        return rounds[-1]

    def _park(self, state: PipelineState, plan: Plan, *, gate: HITLGate, fence: int) -> None:
        pending = Stage.HITL_PLAN_PENDING if gate is HITLGate.S4_PLAN else Stage.HITL_EXECUTE_PENDING
        if state.stage is not pending:
            self._reach(state, pending, plan.summary, fence=fence)
        self.store.set_hitl_pending(state.run_id)

    def _refused(
        self, run: Run, state: PipelineState, answer: Answer, review: Review, *, fence: int
    ) -> PipelineState:
        """End a run that people did not clear: nothing behind the gate runs."""
        turns.take_back_cleared(self.ledger, run, by=run.requester, reason=_TAKEN_BACK)
        if answer is Answer.EXPIRED:
            return self._reach(state, Stage.HITL_EXPIRED, "Nobody decided in time.", fence=fence)
        self.store.record_hitl_decision(run.id)
        return self._reach(state, Stage.HITL_REJECTED, _who(review), fence=fence)

    # --- behind the gates ---

    def _analyst(self, run: Run, state: PipelineState, *, fence: int) -> PipelineState:
        plan = self.analyst.read_cleared(run.id, version=state.plan_version, sha256=state.plan_sha256)
        questions = questions_of(plan, state)
        try:
            with self.ledger.database.read() as tx:
                check_cleared(tx, run, questions)
        except BlockedError:
            # Whatever the state says, people have not approved this: they are asked, or asked again.
            return self._reach(state, Stage.PLANNER, plan.summary, fence=fence, approved=False)
        done = self.analyst.execute_plan_steps(run, plan, questions, fence=fence)
        if isinstance(done, AskFirst):
            return self._confirm(state, done, fence=fence)
        if isinstance(done, AskAgain):
            # A clearance does not stand any more: the same plan is put before people once more.
            return self._reach(state, Stage.PLANNER, plan.summary, fence=fence, approved=False)
        turns.take_back_cleared(self.ledger, run, by=run.requester, reason=_TAKEN_BACK)
        if not self.store.has(run.id, ANALYSIS):
            analysis = json.dumps(_analysis(plan, done), indent=1, sort_keys=True)
            self.store.put(run.id, ANALYSIS, analysis, fence=fence)
        summary = _summary(done)
        return self._reach(state, Stage.ANALYST, summary, fence=fence, analyst_summary=summary)

    def _confirm(self, state: PipelineState, first: AskFirst, *, fence: int) -> PipelineState:
        """Go back to S5_execute with steps that cost more than people were told."""
        number = state.execute_rounds + 1
        confirmed = {**(state.confirmed or {}), **dict.fromkeys(first.steps, number)}
        return self._reach(
            state,
            Stage.HITL_EXECUTE_PENDING,
            first.reason,
            fence=fence,
            execute_rounds=number,
            confirmed=confirmed,
        )

    def _reach(
        self, state: PipelineState, stage: Stage, line: str, *, fence: int, **changes: Any
    ) -> PipelineState:
        after = self.store.reach(state, stage, fence=fence, line=line, **changes)
        at("stage-reached")
        self.on_stage(after, line)
        return after


def _who(review: Review) -> str:
    said = {(item.by, item.type.value, item.message) for call in review.calls for item in call.decisions}
    return "; ".join(f"{by}: {kind}{f' ({why})' if why else ''}" for by, kind, why in sorted(said))


def _analysis(plan: Plan, done: Sequence[StepDone]) -> Mapping[str, Any]:
    used = sum((Decimal(str(each.said.get("cpu_s", "0"))) for each in done), Decimal(0))
    return {
        "plan_sha256": plan.sha256,
        "steps": [
            {"step": each.step.id, "method": each.step.method, "state": each.state, **each.said}
            for each in done
        ],
        "cpu_s": str(used),
        "estimated_cpu_s": str(plan.total.cpu_s),
    }


def _summary(done: Sequence[StepDone]) -> str:
    counts = Counter(each.state for each in done)
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _answer(state: PipelineState) -> str:
    return json.dumps(state.document(), sort_keys=True)
