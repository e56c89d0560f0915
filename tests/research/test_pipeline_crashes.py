"""A research run whose workers are killed: another one goes on, nothing is lost, and no step runs twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from sqlalchemy import select

from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.plan import Step
from clearance.apps.research.state import Stage
from clearance.outcome import CallState
from clearance.run import RunState
from clearance.store import runs
from clearance.store.tables import clearances
from tests.journeys import program
from tests.journeys.front import Front
from tests.journeys.invariants import check_trail
from tests.journeys.processes import PATIENCE, go_on, kill, server, stop, until, was_killed
from tests.research.pipelines import Lab
from tests.research.workers import REQUEST, Workers

pytestmark = pytest.mark.sqlite_by_day

RUN = "run1"
STAGES = [
    "started", "sequence", "literature", "method_kb", "planner", "hitl_plan_pending", "hitl_plan_approved",
    "hitl_execute_approved", "analyst", "reporter", "done",
]  # fmt: skip
FOUND = {"sequence.json", "literature.json", "plan_request.json", "method_kb.json", "plan.v1.json"}
REPORT = {"analysis.json", "report.html", "report.md", "report.json", "ro-crate-metadata.json"}


@dataclass
class Night:
    """Runs of the pipeline, their workers, and the door of the person who decides."""

    lab: Lab
    workers: Workers
    front: Front

    def begin(self, run_id: str = RUN) -> None:
        """Start a run; a worker takes it from there."""
        self.lab.research.start(REQUEST, run_id=run_id, by="ann")

    def waits(self, run_id: str = RUN) -> bool:
        """Whether a run waits for people, and no process has anything left of it."""
        run = self.lab.research.run(run_id)
        assert run.state is not RunState.FAILED, run.reason
        return self.lab.research.has_stopped(run_id) and self.lab.research.waiting(run_id) is not None

    def approve(self, run_id: str = RUN) -> None:
        """Approve the plan that waits."""
        plan = self.lab.waiting(run_id).plan
        self.lab.research.decide(run_id, HITLDecision.APPROVE, by="ann", plan_sha256=plan.sha256)

    def park(self) -> None:
        """Bring a new run to its gate, and leave no worker."""
        self.begin()
        worker = self.workers.start()
        until(self.waits, what="the plan")
        kill(worker)

    def dies_at(self, place: str) -> None:
        """Let a worker go on until it is killed there."""
        worker = self.workers.start(place)
        until(lambda: was_killed(worker), what=f"the worker to be killed at {place}")

    def steps_begin(self) -> tuple[BaseProcess, str]:
        """Approve, and return the worker, and the template whose step it is in the middle of."""
        held = self.templates()[0]
        self.workers.hold(held)
        worker = self.workers.start()
        self.approve()
        until(lambda: self.workers.processes_of(held), what="the step")
        return worker, held

    def steps_done(self) -> list[Step]:
        """Return the steps that were executed."""
        executed = self.lab.executed()
        return [step for step in self.lab.research.store.plan(RUN, 1).steps if step.method in executed]

    def templates(self) -> list[str]:
        """Return the templates of the plan's steps."""
        return [step.template.name for step in self.lab.research.store.plan(RUN, 1).steps]

    def fence(self) -> int:
        """Return how often the run's thread was claimed."""
        with self.lab.workspace.database.read() as tx:
            found = runs.thread(tx, RUN)
        assert found is not None
        return found.fence

    def is_open(self, run_id: str = RUN) -> bool:
        """Whether a run has not ended."""
        return self.lab.research.run(run_id).is_open

    def end(self, run_id: str = RUN) -> None:
        """Wait for the end of a run, and check that all of it is there, once."""
        until(lambda: not self.is_open(run_id), what="the end of the run")
        until(lambda: self.front.is_idle(run_id), what="the end of the segment")
        run, state = self.lab.research.run(run_id), self.lab.research.state(run_id)
        assert (run.state, state.stage) == (RunState.DONE, Stage.DONE), run.reason
        assert [each.stage for each in self.lab.research.stages(run_id)] == STAGES
        check_calls(self.lab, run_id)
        check_files(self.lab, run_id)


def check_calls(lab: Lab, run_id: str) -> None:
    """Check that each step was executed once, at its first attempt, by the one clearance that it had."""
    rows = lab.ledger(run_id)
    assert sorted((row.tool, row.state, row.attempt) for row in rows) == sorted(
        (step.method, CallState.EXECUTED, 1) for step in lab.research.store.plan(run_id, 1).steps
    )
    keys = [row.key for row in rows]
    with lab.workspace.database.read() as tx:
        query = select(clearances.c.key, clearances.c.status).where(clearances.c.key.in_(keys))
        minted = tx.execute(query).all()
    assert sorted(map(tuple, minted)) == sorted((key, "used") for key in keys)


def check_files(lab: Lab, run_id: str) -> None:
    """Check that every file is kept, and lies in the folder as it was kept."""
    store = lab.research.store
    names = {file.name for file in store.files(run_id)}
    steps = {f"steps/{step.id}/summary.json" for step in store.plan(run_id, 1).steps}
    assert names >= FOUND | REPORT | steps
    for name in names:
        assert (store.folder(run_id) / name).read_bytes() == store.read(run_id, name), name


def check(night: Night, *run_ids: str) -> None:
    """Check that no step was done twice, and that the trail tells all of it."""
    ended = night.workers.counted("ended")
    assert not [name for name, count in ended.items() if count > len(run_ids)], ended
    rows = [row for run_id in run_ids for row in night.lab.ledger(run_id)]
    asked = [review for run_id in run_ids for review in night.front.reviews(run_id)]
    check_trail(night.front, rows=rows, asked=asked)


@pytest.fixture
def night(migrated_database_url: str, tmp_path: Path) -> Iterator[Night]:
    """A workspace on each database whose workers are processes of their own."""
    workers = Workers(migrated_database_url, tmp_path, context=server())
    front = Front(program.Stage(migrated_database_url, tmp_path))
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        yield Night(lab, workers, front)
        workers.end()
    front.close()


def test_a_worker_dies_in_the_middle_of_a_step_and_the_step_with_it(night: Night) -> None:
    night.park()
    worker, held = night.steps_begin()
    kill(worker)
    until(lambda: not night.workers.processes_of(held), what="the end of the step")
    night.workers.let_go(held)
    night.workers.start()
    night.end()
    assert night.workers.counted("began")[held] == 2
    assert night.workers.counted("ended")[held] == 1
    check(night, RUN)


def test_a_worker_dies_between_two_steps(night: Night) -> None:
    night.park()
    worker, held = night.steps_begin()
    until(night.lab.executed, what="another step")
    kill(worker)
    done = {step.template.name for step in night.steps_done()}
    began = night.workers.counted("began")
    night.workers.let_go(held)
    night.workers.start()
    night.end()
    assert {name: night.workers.counted("began")[name] for name in done} == {
        name: began[name] for name in done
    }
    check(night, RUN)


TO_THE_GATE = ("in-ask", "asked", "segment-ended", "in-release")
BEHIND_IT = ("in-take", "taken", "tool-ran", "in-keep", "outcome-kept", "segment-ended", "in-release")


def test_worker_after_worker_dies_at_every_place_of_a_segment_and_of_a_call(night: Night) -> None:
    night.begin()
    for place in TO_THE_GATE:
        night.dies_at(place)
    worker = night.workers.start()
    until(night.waits, what="the plan")
    kill(worker)
    assert night.lab.executed() == []
    night.approve()
    for place in BEHIND_IT:
        night.dies_at(place)
    night.workers.start()
    night.end()
    check(night, RUN)


@pytest.mark.parametrize("place", ["stage-reached", "file-kept:2"])
def test_every_worker_dies_a_little_further_on(night: Night, place: str) -> None:
    night.begin()
    deaths, worker = 0, night.workers.start(place)

    def over() -> bool:
        nonlocal deaths, worker
        if was_killed(worker):
            deaths, worker = deaths + 1, night.workers.start(place)
        if night.waits():
            night.approve()
        return not night.is_open()

    until(over, patience=2 * PATIENCE, what="the end of the run")
    night.end()
    assert deaths >= 6
    check(night, RUN)


def test_a_worker_dies_while_it_writes_the_report(night: Night) -> None:
    night.park()
    night.approve()
    night.dies_at("stage-reached:3")
    assert night.lab.research.state(RUN).stage is Stage.ANALYST
    night.dies_at("file-kept:3")
    names = {file.name for file in night.lab.research.store.files(RUN)}
    assert "proceedings.json" in names
    assert not names >= REPORT
    night.workers.start()
    night.end()
    check(night, RUN)


def test_a_plan_can_be_approved_after_the_process_that_began_it_was_killed(night: Night) -> None:
    first = night.workers.start(begin=RUN)
    until(lambda: night.front.runs(), what="the run")
    until(night.waits, what="the plan")
    kill(first)
    night.approve()
    night.workers.start()
    night.end()
    check(night, RUN)


def test_two_workers_share_the_work_and_do_none_of_it_twice(night: Night) -> None:
    both = (RUN, "run2")
    for run_id in both:
        night.workers.start()
        night.begin(run_id)
    for run_id in both:
        until(partial(night.waits, run_id), what="the plan")
        night.approve(run_id)
    for run_id in both:
        night.end(run_id)
    assert set(night.workers.counted("began").values()) == {2}
    check(night, *both)


# The locks of an SQLite file tell of a process that is dead alone: a frozen one keeps its threads.
@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_a_worker_that_is_frozen_in_a_step_is_replaced_and_changes_nothing_when_it_thaws(
    night: Night,
) -> None:
    night.park()
    first, held = night.steps_begin()
    stop(first)
    night.workers.start()
    until(lambda: night.fence() > 2, what="another worker to take over")
    night.workers.let_go(held)
    night.end()
    before = night.lab.research.stages(RUN)
    go_on(first)
    until(lambda: night.workers.counted("ended").total() == len(night.templates()))
    night.end()
    assert night.lab.research.stages(RUN) == before
    check(night, RUN)


def test_cancelling_a_run_ends_its_step_in_another_process(night: Night) -> None:
    night.park()
    _, held = night.steps_begin()
    night.lab.research.cancel(RUN, by="ann", reason="not needed any more")
    until(lambda: not night.workers.processes_of(held), what="the end of the step")
    until(lambda: night.front.is_idle(RUN), what="the end of the segment")
    assert night.lab.research.run(RUN).state is RunState.CANCELLED
    assert night.workers.counted("ended")[held] == 0
    assert not night.lab.research.store.has(RUN, "report.html")
    assert night.lab.research.state(RUN).stage is not Stage.DONE
    states = {row.state for row in night.lab.ledger()}
    assert states <= {CallState.EXECUTED, CallState.FAILED, CallState.REJECTED}
    check(night, RUN)
