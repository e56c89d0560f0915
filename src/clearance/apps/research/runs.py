"""Research runs as people use them: started, looked at, decided at their gates; the same from every door."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearance import turns
from clearance.apps.research.analyst import Analyst, AskFirst, StepDone
from clearance.apps.research.cancelling import ended_with_its_run
from clearance.apps.research.enforcement import check_cleared, questions_of
from clearance.apps.research.executors.jobs import Executor
from clearance.apps.research.findings import Findings
from clearance.apps.research.hitl import (
    BlockedError,
    BlockedReason,
    HITLDecision,
    HITLGate,
    gate_of,
    version_of,
)
from clearance.apps.research.pipeline import Pipeline, Reporter
from clearance.apps.research.plan import Plan, read_plan
from clearance.apps.research.plan_answers import about_the_plan, check_revision
from clearance.apps.research.plan_calls import PROGRAM, default_policy
from clearance.apps.research.plan_diff import PlanDiff, diff
from clearance.apps.research.planning import EDITED, MAX_REVISIONS, Planning
from clearance.apps.research.research_request import ResearchRequest, check_request, read_request
from clearance.apps.research.run_store import RunStore
from clearance.apps.research.state import PipelineState
from clearance.errors import (
    ConflictError,
    Fault,
    InvalidInputError,
    InvalidReviewDecisionError,
    NotFoundError,
    ReviewConflictError,
    RunUnfinishedError,
    ThreadClosedError,
)
from clearance.execution import AskAgain
from clearance.once import Once, look
from clearance.policy import DecisionType, Risk
from clearance.program import Finished, Parked, Program
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.run import Run, RunState
from clearance.store import reviews, run_files, runs
from clearance.store.run_files import RunStage
from clearance.workspace import Clearance

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

POLL = 0.05


@dataclass(frozen=True)
class Waiting:
    """What a run waits for at a gate, and what changed since the plan that this person decided on last.

    `since` is the version of that plan; it and `diff` are None where there is none to compare with.
    """

    gate: HITLGate
    review: Review
    plan: Plan
    diff: PlanDiff | None
    since: int | None = None


class ResearchRuns:
    """The pipelines of a workspace. With a worker in this process they are advanced here, too."""

    def __init__(
        self,
        workspace: Clearance,
        *,
        executors: Mapping[str, Executor],
        reporter: Callable[[Clearance, RunStore], Reporter],
        model_named: "Callable[[str], BaseChatModel]",
        on_stage: Callable[[PipelineState, str], None] = lambda _state, _line: None,
    ) -> None:
        self._workspace = workspace
        self.store = RunStore(workspace.database, workspace.home)
        self._planning = Planning(model_named)
        analyst = Analyst(self.store, workspace.execution, executors)
        self._executors = executors
        self._pipeline = Pipeline(
            store=self.store,
            findings=Findings(
                self.store,
                workspace.home,
                clock=self.store.now,
                workflow_template=getattr(executors.get("argo"), "workflow_template", None),
            ),
            planning=self._planning,
            analyst=analyst,
            reporter=reporter(workspace, self.store),
            gate=workspace.gate,
            ledger=workspace.ledger,
            on_stage=on_stage,
        )
        program = Program(
            name=PROGRAM,
            tools=analyst.tools,
            policy=default_policy(),
            segment=self._segment,
            stopped=self.store.write_meta,
            takes_messages=False,
        )
        workspace.register(program)

    def start(self, request: ResearchRequest, *, run_id: str, by: str, once: Once[Run] | None = None) -> Run:
        """Start a run; a worker takes it from there. Raises `InvalidInputError` for what could never run,
        and `Repeated` for a request that was done before."""
        check_request(request)
        if request.replay is not None and self.store.state(request.replay) is None:
            raise NotFoundError(f"There is no run {request.replay} whose record could be used.")
        if request.executor not in self._executors:
            raise InvalidInputError(
                "This executor cannot be used.",
                faults=[Fault("/executor", f"{request.executor} is not set up here")],
            )
        ledger = self._workspace.ledger
        return turns.start(ledger, run_id, request.text, run_id=run_id, program=PROGRAM, by=by, once=once)

    def run(self, run_id: str) -> Run:
        """Return a run of the pipeline; `NotFoundError` when there is none of that id.

        Raises `ThreadClosedError` for one whose values retention has removed.
        """
        with self._workspace.database.read() as tx:
            found = runs.run(tx, run_id)
        if found.program != PROGRAM:
            raise NotFoundError(f"There is no research run {run_id}.")
        if found.redacted_at is not None:
            raise ThreadClosedError(run_id, found.redacted_at)
        return found

    def request(self, run_id: str) -> ResearchRequest:
        """Return what a run was asked to do."""
        return read_request(self.run(run_id).input)

    def state(self, run_id: str) -> PipelineState:
        """Return how far a run is."""
        request = self.request(run_id)
        return self.store.state(run_id) or PipelineState(run_id, request.subject)

    def waiting(self, run_id: str, *, seen_by: str | None = None) -> Waiting | None:
        """Return what a run waits for; None when it waits for nobody.

        The difference is to the version that `seen_by` decided on last, else to the one before.
        """
        self.run(run_id)
        with self._workspace.database.read() as tx:
            review = reviews.pending(tx, run_id)
            earlier = reviews.of_thread(tx, run_id)
        if review is None:
            return None
        plan = self.store.plan(run_id, version_of(review))
        before = _seen(earlier, plan, by=seen_by)
        changed = None if before is None else diff(self.store.plan(run_id, before), plan)
        return Waiting(gate_of(review), review, plan, changed, before)

    def decide(
        self,
        run_id: str,
        decision: HITLDecision,
        *,
        by: str,
        message: str = "",
        changes: Mapping[str, Any] | None = None,
        plan_sha256: str | None = None,
        review_id: str | None = None,
        version: int | None = None,
        fresh_for: Risk | None = None,
        once: Once[Review] | None = None,
    ) -> Review:
        """Take a person's decision on the plan that a run waits with.

        `plan_sha256` is that of the plan which they saw; it may be left out only while there is one version.
        `review_id` is the question that they answer; at S5_execute it must be named, because there a late
        repetition of the answer at S4_plan could not be told from a new one. `version` is that of the review
        that they saw, where their door says it; `fresh_for` is what `gate.decide` takes.
        Raises `ReviewConflictError` for another plan, `ConflictError` when the run waits for nobody, and
        `Repeated` for a request that was done before.
        """
        with self._workspace.database.read() as tx:
            look(self._workspace.database, tx, once)
        waiting = self._waiting(run_id, plan_sha256, review_id=review_id)
        if decision is HITLDecision.REJECT and not message.strip():
            raise InvalidReviewDecisionError(
                "Rejecting a plan needs a reason.", faults=[Fault("/message", "is missing")]
            )
        item: dict[str, Any] = {"type": decision.value, "message": message}
        if decision is HITLDecision.REVISE:
            if waiting.plan.version > MAX_REVISIONS:
                raise InvalidReviewDecisionError(
                    f"This plan cannot be answered with revise now: its {MAX_REVISIONS} rounds are over. "
                    "Approve or reject it.",
                    faults=[Fault("/decision", "is no longer allowed")],
                )
            check_revision(message, changes or {}, planner=self.request(run_id).planner)
            item["changes"] = dict(changes or {})
        review = waiting.review
        seen = review.version if version is None else version
        gate = self._workspace.gate
        try:
            return gate.decide(review.id, [item], by=by, version=seen, fresh_for=fresh_for, once=once)
        except InvalidReviewDecisionError as error:
            raise about_the_plan(error) from None

    def edit(
        self,
        run_id: str,
        edited: bytes | str,
        *,
        by: str,
        plan_sha256: str | None = None,
        fresh_for: Risk | None = None,
        wait: float,
    ) -> Review:
        """Make the next version of a plan as a person edited it, and approve that version as them.

        Raises `PlanError` with every fault of the edit; then nothing has changed.
        """
        waiting = self._waiting(run_id, plan_sha256, review_id=None)
        if waiting.gate is HITLGate.S5_EXECUTE:
            raise ConflictError("At S5_execute a plan cannot be edited any more. Approve it, or reject it.")
        wanted = read_plan(edited)
        made = self._planning.edited(
            waiting.plan, wanted, by=by, request=self._pipeline.findings.plan_request(run_id)
        )
        changes = {EDITED: wanted.document()}
        item = {"type": DecisionType.REVISE.value, "message": f"edited by {by}", "changes": changes}
        review = waiting.review
        gate = self._workspace.gate
        settled = gate.decide(review.id, [item], by=by, version=review.version, fresh_for=fresh_for)
        if settled.status is ReviewStatus.PENDING:
            return settled
        return self._approve_own(run_id, made, by=by, fresh_for=fresh_for, wait=wait)

    def wait_for(self, run_id: str, *, wait: float) -> PipelineState:
        """Return the state of a run as soon as it waits for people or has ended.

        Raises `RunUnfinishedError` when the time is over; the run goes on.
        """
        until = time.monotonic() + wait
        while True:
            if self.has_stopped(run_id):
                return self.state(run_id)
            if time.monotonic() >= until:
                raise RunUnfinishedError(run_id)
            time.sleep(POLL)

    def carry_out(self, run: Run, state: PipelineState) -> "list[StepDone] | AskAgain | AskFirst":
        """Carry the plan of a run out from here; `BlockedError` unless people cleared it."""
        analyst = self._pipeline.analyst
        if state.plan_version == 0:
            raise BlockedError(BlockedReason.NOT_APPROVED, f"Run {run.id} has no plan yet.")
        plan = analyst.read_cleared(run.id, version=state.plan_version, sha256=state.plan_sha256)
        questions = questions_of(plan, state)
        with self._workspace.database.read() as tx:
            check_cleared(tx, run, questions)
        return analyst.execute_plan_steps(run, plan, questions, fence=None)

    def cancel(self, run_id: str, *, by: str, reason: str, once: Once[Run] | None = None) -> Run:
        """End a run early; steps that run now are ended, here at once, elsewhere soon."""
        self.run(run_id)
        cancelled = turns.cancel(self._workspace.ledger, run_id, by=by, reason=reason, once=once)
        for executor in self._executors.values():
            executor.cancel(run_id)
        return cancelled

    def newest(self, *, limit: int) -> list[Run]:
        """Return the newest runs, newest first."""
        with self._workspace.database.read() as tx:
            return runs.list_runs(tx, states=(), program=PROGRAM, limit=limit)

    def find(self, name: str) -> str:
        """Return the id of the run that a name means: the whole id, or a beginning that no other has.

        Raises `NotFoundError`, and `InvalidInputError` when several begin so.
        """
        with self._workspace.database.read() as tx:
            found = runs.ids_like(tx, name, program=PROGRAM, limit=3)
        if name in found:
            return name
        if len(found) > 1:
            raise InvalidInputError(f"{name} could be {' or '.join(found)}. Write more of it.")
        if not found:
            raise NotFoundError(f"There is no research run {name}. See: clearance pipeline list")
        return found[0]

    def stages(self, run_id: str, *, after: int = 0) -> list[RunStage]:
        """Return the stages that a run has come to, behind number `after`."""
        with self._workspace.database.read() as tx:
            return run_files.stages_of(tx, run_id, after=after)

    def has_stopped(self, run_id: str) -> bool:
        """Whether a run waits for people, or has ended; what it did until then is all kept."""
        run = self.run(run_id)
        with self._workspace.database.read() as tx:
            thread = runs.thread(tx, run_id)
        at_rest = thread is not None and thread.owner is None and thread.wanted <= thread.done
        return not run.is_open or (run.state is RunState.WAITING and at_rest)

    def file(self, run_id: str, name: str) -> Path:
        """Return where a file of a run lies."""
        self.run(run_id)
        return self.store.path(run_id, name)

    def rebuild(self, run_id: str) -> None:
        """Make what is lost of a run's folder again."""
        self.run(run_id)
        self.store.rebuild(run_id)

    def _segment(self, run: Run, fence: int) -> Finished | Parked:
        with ended_with_its_run(self._workspace.database, run.id, self._executors.values()):
            return self._pipeline.segment(run, fence)

    def _waiting(self, run_id: str, plan_sha256: str | None, *, review_id: str | None) -> Waiting:
        waiting = self.waiting(run_id)
        if waiting is None:
            run = self.run(run_id)
            raise ConflictError(f"Run {run_id} waits for no decision: it is {run.state}.")
        named = review_id is not None or waiting.gate is HITLGate.S4_PLAN
        if not named or review_id not in (None, waiting.review.id):
            raise ReviewConflictError(
                f"Run {run_id} waits at {waiting.gate} with review {waiting.review.id}. Read what it asks, "
                "and name that review with your decision.",
                waiting.review,
            )
        if plan_sha256 is None and waiting.plan.version > 1:
            raise ReviewConflictError(
                f"The plan of run {run_id} has {waiting.plan.version} versions. Say which one you saw: its "
                "plan_sha256.",
                waiting.review,
            )
        if plan_sha256 not in (None, waiting.plan.sha256):
            raise ReviewConflictError(
                f"Run {run_id} waits with another plan than the one you saw: version "
                f"{waiting.plan.version}, {waiting.plan.sha256}. Read it first.",
                waiting.review,
            )
        return waiting

    def _approve_own(
        self, run_id: str, made: Plan, *, by: str, fresh_for: Risk | None, wait: float
    ) -> Review:
        """Approve the version that this person has just made, once it is asked about, and no other."""
        until = time.monotonic() + wait
        while True:
            waiting = self.waiting(run_id)
            if waiting is not None and waiting.plan.version == made.version:
                break
            if not self.run(run_id).is_open or time.monotonic() >= until:
                raise RunUnfinishedError(run_id)
            time.sleep(POLL)
        if waiting.plan.sha256 != made.sha256:
            raise ReviewConflictError("The plan that is asked about is not the one you made.", waiting.review)
        review = waiting.review
        item = {"type": DecisionType.APPROVE.value}
        gate = self._workspace.gate
        return gate.decide(review.id, [item], by=by, version=review.version, fresh_for=fresh_for)


def _seen(earlier: list[Review], plan: Plan, *, by: str | None) -> int | None:
    """Return the version that this person decided on last, else the one before; None for a first version."""
    decided = [
        version_of(review)
        for review in earlier
        if review.kind is ReviewKind.PLAN
        for call in review.calls
        for item in call.decisions
        if item.by == by and version_of(review) < plan.version
    ]
    return max(decided, default=plan.version - 1) or None
