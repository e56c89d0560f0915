"""The analyst: carries out the steps of a cleared plan, and nothing else.

What people approved is read again from the database's own bytes, and every hash is computed anew, before
anything runs; each step then takes its clearance in `execution`. A flag in the state lets nothing run.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any

from clearance.apps.research.estimates import estimate
from clearance.apps.research.executors.jobs import Executor, JobInput, StepJob, StepResult
from clearance.apps.research.hitl import BlockedError, BlockedReason
from clearance.apps.research.methods.cards import card, template_sha256
from clearance.apps.research.plan import Plan, Step, read_plan
from clearance.apps.research.plan_calls import (
    EXECUTE,
    PlanQuestion,
    arguments_of,
    calls_of,
    reaches_further,
    tools_of,
)
from clearance.apps.research.run_store import NewFile, RunStore, plan_file
from clearance.errors import NotFoundError
from clearance.execution import AskAgain, Execution
from clearance.outcome import CallState, Outcome
from clearance.results import Result
from clearance.run import Run
from clearance.toolcall import Tool, canonical

SIZED_TOO_HIGH = Decimal("1.2")
"""How much more than its approved estimate a step may turn out to cost before people are asked again."""


@dataclass(frozen=True)
class Questions:
    """Which question cleared each step: those of S4_plan, and by step id those of S5_execute."""

    plan: PlanQuestion
    execute: Mapping[str, PlanQuestion]

    def of(self, step: Step) -> PlanQuestion:
        """Return the question whose clearance a step takes."""
        return self.execute.get(step.id, self.plan)


@dataclass(frozen=True)
class StepDone:
    """How a step ended: `done`, `failed`, `skipped` or `uncertain`, with what it said or why."""

    step: Step
    state: str
    said: Mapping[str, Any]


@dataclass(frozen=True)
class AskFirst:
    """Steps that turn out to cost more than people were told; nothing of them was started."""

    steps: tuple[str, ...]
    reason: str


class Analyst:
    """Carries out the plans of one workspace. `executors` are by the name that a step gives."""

    def __init__(self, store: RunStore, execution: Execution, executors: Mapping[str, Executor]) -> None:
        self._store = store
        self._execution = execution
        self._executors = executors

    @property
    def tools(self) -> dict[str, Tool]:
        """The methods as tools: what a clearance of the pipeline lets run."""
        return tools_of(self.submit_template_tool, self._verify_call)

    def read_cleared(self, run_id: str, *, version: int, sha256: str) -> Plan:
        """Return the plan whose bytes have this hash; `BlockedError` when they have another."""
        plan = self._plan_of(run_id, version, sha256=sha256)
        self._check_drift(run_id, plan)
        return plan

    def execute_plan_steps(
        self, run: Run, plan: Plan, questions: Questions, *, fence: int | None
    ) -> list[StepDone] | AskAgain | AskFirst:
        """Carry the plan out, as far as it comes; `AskAgain` when a clearance does not stand any more.

        `AskFirst` before steps that would cost more than was approved, and were not confirmed.

        Steps that do not need one another run side by side. What needs a failed step is skipped, and
        everything else is kept. Raises `BlockedError` before anything runs, `FenceLostError`, `StoreError`.
        """
        self._store.rebuild(run.id)
        done: dict[str, StepDone] = {}
        order = TopologicalSorter({step.id: step.needs for step in plan.steps})
        order.prepare()
        by_id = {step.id: step for step in plan.steps}
        while order.is_active():
            ready = [by_id[step_id] for step_id in sorted(order.get_ready(), key=list(by_id).index)]
            lacking = {step.id: lost for step in ready if (lost := _lost(step, done))}
            may_run = [step for step in ready if step.id not in lacking]
            first = self._costs_more(run.id, plan, may_run, questions, spent=_spent(done))
            if first is not None:
                return first
            outcomes = self._execute(run, plan, may_run, questions, fence=fence)
            if isinstance(outcomes, AskAgain):
                return outcomes
            done |= {step.id: _ended(step, outcomes[step.id]) for step in may_run}
            done |= {name: StepDone(by_id[name], "skipped", {"error": why}) for name, why in lacking.items()}
            order.done(*(step.id for step in ready))
        return [done[step.id] for step in plan.steps]

    def _execute(
        self, run: Run, plan: Plan, steps: Sequence[Step], questions: Questions, *, fence: int | None
    ) -> dict[str, Outcome] | AskAgain:
        outcomes: dict[str, Outcome] = {}
        for question, mine in _by_question(steps, questions):
            asked = replace(question, steps=tuple(mine))
            calls = calls_of(plan, asked, run_id=run.id)
            found = self._execution.execute(
                run, calls, message=question.number, tools=self.tools, fence=fence
            )
            for step, outcome in zip(mine, found, strict=True):
                if isinstance(outcome, AskAgain):
                    return outcome
                outcomes[step.id] = outcome
        return outcomes

    def _costs_more(
        self,
        run_id: str,
        plan: Plan,
        steps: Sequence[Step],
        questions: Questions,
        *,
        spent: Decimal,
    ) -> AskFirst | None:
        """Return what people must confirm, now that the real sizes of the inputs are known."""
        asked = [step for step in steps if step.id not in questions.execute]
        files = {each.name: each.size for each in self._store.files(run_id)}
        sized = {step.id: estimate(card(step.method), _size(plan, step, files)) for step in asked}
        larger = tuple(
            step.id
            for step in asked
            if Decimal(sized[step.id].cpu_s) > Decimal(step.estimate.cpu_s) * SIZED_TOO_HIGH
        )
        if larger:
            return AskFirst(larger, f"{', '.join(larger)} would take more than was approved.")
        limit = Decimal(plan.budget.cpu_hours) * 3600
        wanted = spent + sum((Decimal(each.cpu_s) for each in sized.values()), Decimal(0))
        if asked and wanted > limit:
            rest = tuple(step.id for step in asked)
            return AskFirst(rest, f"{wanted} CPU s would be used, of {limit} in the budget.")
        return None

    def submit_template_tool(self, arguments: dict[str, Any], key: str) -> object:
        """Carry out one step. `execution` calls it, once, after it has used the step's clearance up."""
        job, executor = self._job(arguments, key)
        return self._kept(job, executor.run(job))

    def _verify_call(self, arguments: dict[str, Any], key: str) -> object:
        """Return the result of a step that was started, and whose process died; None when it did not end."""
        job, executor = self._job(arguments, key)
        found = executor.find(job)
        return None if found is None else self._kept(job, found)

    def _job(self, arguments: Mapping[str, Any], key: str) -> tuple[StepJob, Executor]:
        run_id = key.split("/", 1)[0]
        number = int(key.split("/")[1])
        plan = self._plan_of(run_id, number % EXECUTE, sha256=arguments["plan_sha256"])
        step = next(each for each in plan.steps if each.id == arguments["step"])
        _check_is_planned(plan, step, arguments, number=number)
        if template_sha256(step.template.name) != step.template.sha256:
            raise BlockedError(
                BlockedReason.TEMPLATE_DRIFT, f"{step.template.name} changed since the approval."
            )
        inputs = {name: self._input(run_id, plan, source) for name, source in step.inputs.items()}
        folder = self._store.folder(run_id) / "steps" / step.id
        job = StepJob(key, run_id, plan.sha256, step, inputs=inputs, folder=folder)
        return job, self._executors[step.executor]

    def _input(self, run_id: str, plan: Plan, source: str) -> JobInput:
        name, seen = _file_of(plan, source)
        content = self._store.read(run_id, name)
        sha256 = hashlib.sha256(content).hexdigest()
        if seen not in (None, sha256):
            raise BlockedError(BlockedReason.INPUT_DRIFT, f"{name} is not what people saw.")
        return JobInput(self._store.laid_out(run_id, name, content), sha256)

    def _plan_of(self, run_id: str, version: int, *, sha256: str) -> Plan:
        try:
            content = self._store.read(run_id, plan_file(version))
        except NotFoundError as error:
            raise BlockedError(BlockedReason.HASH_MISMATCH, str(error)) from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise BlockedError(
                BlockedReason.HASH_MISMATCH,
                f"{plan_file(version)} is not the plan that people saw; start a new run.",
            )
        return _plan_in(content)

    def _kept(self, job: StepJob, result: StepResult) -> Result:
        """Keep the files of a step, and return what its call is told to have given."""
        made = [
            NewFile(step_file(job.step.id, each.name), each.content, each.media_type)
            for each in result.outputs
        ]
        files = self._store.put_all(job.run_id, made, fence=None) if made else []
        said = {
            "step": job.step.id,
            "headline": (result.summary or {}).get("headline", ""),
            "outputs": [{"name": each.name, "sha256": each.sha256, "size": each.size} for each in files],
            "cpu_s": result.cpu_s,
            "wall_s": result.wall_s,
            "peak_mb": result.peak_mb,
            "tries": result.tries,
        }
        if result.error is not None:
            return Result(ok=False, text=json.dumps({**said, "error": result.error}))
        return Result(ok=True, text=json.dumps(said))

    def _check_drift(self, run_id: str, plan: Plan) -> None:
        for step in plan.steps:
            if template_sha256(step.template.name) != step.template.sha256:
                raise BlockedError(
                    BlockedReason.TEMPLATE_DRIFT,
                    f"The template {step.template.name} changed since the plan was made; start a new run.",
                )
        for each in plan.inputs:
            self._input(run_id, plan, each.id)


@lru_cache(maxsize=8)
def _plan_in(content: bytes) -> Plan:
    """Return the plan of these bytes. Every step of it asks, and checking a plan of a hundred takes long."""
    return read_plan(content)


def _check_is_planned(plan: Plan, step: Step, arguments: Mapping[str, Any], *, number: int) -> None:
    """Refuse a call that says anything but what its plan says, or that was cleared at the wrong gate."""
    if canonical(dict(arguments)) != canonical(arguments_of(plan, step)):
        raise BlockedError(BlockedReason.HASH_MISMATCH, f"{step.id} is not called as its plan has it.")
    if reaches_further(step) and number < EXECUTE:
        raise BlockedError(BlockedReason.NOT_APPROVED, f"{step.id} was not approved at S5_execute.")


def step_file(step_id: str, name: str) -> str:
    """Return the name of a step's output among the files of its run."""
    return f"steps/{step_id}/{name}"


def _file_of(plan: Plan, source: str) -> tuple[str, str | None]:
    """Return the name of the file that a step's input names, and the hash of it that people saw.

    It is one of the plan's inputs, or another step's output, which nobody could see yet.
    """
    known = next((each for each in plan.inputs if each.id == source), None)
    if known is not None:
        return known.uri, known.sha256
    step_id, _, output = source.partition("/")
    return step_file(step_id, output), None


def _size(plan: Plan, step: Step, files: Mapping[str, int]) -> int:
    """Return how many bytes a step is given, by the sizes of the run's files."""
    return sum(files[_file_of(plan, source)[0]] for source in step.inputs.values())


def _by_question(steps: Sequence[Step], questions: Questions) -> Iterator[tuple[PlanQuestion, list[Step]]]:
    found: dict[int, tuple[PlanQuestion, list[Step]]] = {}
    for step in steps:
        question = questions.of(step)
        found.setdefault(question.number, (question, []))[1].append(step)
    yield from found.values()


def _spent(done: Mapping[str, StepDone]) -> Decimal:
    return sum((Decimal(str(each.said.get("cpu_s", "0"))) for each in done.values()), Decimal(0))


def _lost(step: Step, done: Mapping[str, StepDone]) -> str | None:
    """Return why a step cannot run: one that it needs gave nothing."""
    lost = [name for name in step.needs if done[name].state != "done"]
    return f"It needs {', '.join(lost)}, which gave nothing." if lost else None


def _ended(step: Step, outcome: Outcome) -> StepDone:
    try:
        said = json.loads(outcome.text)
    except ValueError:
        said = {"error": outcome.text}
    match outcome.state:
        case CallState.EXECUTED:
            return StepDone(step, "done", said)
        case CallState.UNCERTAIN:
            return StepDone(step, "uncertain", {"error": outcome.text})
        case _:
            return StepDone(step, "failed", said if isinstance(said, dict) else {"error": outcome.text})
