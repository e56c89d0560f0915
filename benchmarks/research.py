"""A research run as a person has it on the command line, and what the gate adds to a hundred steps.

The processor time of a command is that of its process and of every step that it started, from the start of
Python to its end; so it holds all imports, and all looking whether the run has stopped.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Aim, Figure, Surroundings, median
from clearance.apps.research.executors.jobs import JobInput, StepJob
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.state import Stage
from tests.research.pipelines import PATIENCE, Lab

POOL = 2
TO_THE_GATE, TO_THE_REPORT, MEMORY, OVERHEAD = Aim(3.0), Aim(5.0), Aim(400.0), Aim(10.0)
RUN = "run1"


@dataclass(frozen=True)
class Command:
    """What a command took: processor seconds and megabytes at its highest. `said` is its last line."""

    cpu_s: float
    peak_mb: float
    said: str


def measure(here: Surroundings) -> list[Figure]:
    """Run BRCA1 offline up to its gate and to its report, and carry steps out with the gate and without."""
    here.tell("BRCA1, offline, from its start to its report")
    runs = [_run(here.folder()) for _ in range(here.sizes.research_runs)]
    figures = [
        Figure(
            "BRCA1 offline, start → pending", median([a.cpu_s for a, _, _ in runs]), "CPU s", aim=TO_THE_GATE
        ),
        Figure("approval → report", median([b.cpu_s for _, b, _ in runs]), "CPU s", aim=TO_THE_REPORT),
        Figure(
            f"peak memory, a worker with {POOL} steps beside it",
            max(max(a.peak_mb, b.peak_mb) + POOL * step for a, b, step in runs),
            "MB",
            aim=MEMORY,
        ),
    ]
    return figures + _overhead(here)


def _run(home: Path) -> tuple[Command, Command, float]:
    """Return what the two commands of a run took, and the megabytes of its largest step."""
    started = _command(home, "start-hitl", "--symbol", "BRCA1", "--offline")
    run_id = started.said.partition(" ")[0].removeprefix("run_id=")
    approved = _command(home, "resume", run_id, "--approve")
    if not approved.said.startswith("stage=done"):
        raise RuntimeError(f"the run did not come to its report: {approved.said}")
    usages = (home / "runs" / run_id / "steps").glob("*/usage.json")
    return started, approved, max(float(json.loads(each.read_text())["peak_mb"]) for each in usages)


def _command(home: Path, *arguments: str) -> Command:
    command = [sys.executable, "-m", "clearance", "--home", str(home), "pipeline", *arguments]
    with (home / "said").open("w+") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines() or [""]
    if process.returncode:
        raise RuntimeError(f"clearance pipeline {arguments[0]} failed: {lines[-1]}")
    kilobytes = used.ru_maxrss if sys.platform == "linux" else used.ru_maxrss / 1024
    return Command(used.ru_utime + used.ru_stime, kilobytes / 1024, lines[-1])


# --- the gate before many steps ---


def _overhead(here: Surroundings) -> list[Figure]:
    """Carry the same steps out by turns: cleared and through the gate, and by the executor alone."""
    steps, gated, alone = here.sizes.steps, [], []
    for number in range(here.sizes.research_runs):
        here.tell(f"{steps} steps with and without the gate, {number + 1} of {here.sizes.research_runs}")
        folder = here.folder()
        with Lab.open(here.database("sqlite", folder), home=folder) as lab:
            gated.append(_cleared(lab, steps))
            alone.append(_uncleared(lab, folder / "alone"))
    with_gate, without = median(gated), median(alone)
    return [
        Figure(f"{steps} cleared steps, pool of {POOL}", with_gate, "s"),
        Figure(f"the same {steps} steps by the executor alone", without, "s"),
        Figure("the gate adds", (with_gate / without - 1) * 100, "%", aim=OVERHEAD),
    ]


def _cleared(lab: Lab, count: int) -> float:
    """Return how long the steps of a cleared plan took, by the stages of their run."""
    lab.start(RUN)
    document = lab.waiting(RUN).plan.document()
    lab.research.edit(RUN, json.dumps({**document, "steps": _many(document, count)}), by="ann", wait=PATIENCE)
    lab.research.wait_for(RUN, wait=PATIENCE * 10)
    reached = {each.stage: each.at for each in lab.research.stages(RUN)}
    return (reached[Stage.ANALYST] - reached[Stage.HITL_EXECUTE_APPROVED]).total_seconds()


def _many(document: dict[str, Any], count: int) -> Sequence[dict[str, Any]]:
    [step] = [each for each in document["steps"] if each["method"] == "gc-profile"]
    return [{**step, "id": f"{step['id']}-{number}"} for number in range(count)]


def _uncleared(lab: Lab, folder: Path) -> float:
    """Return how long the executor takes for the same steps, when it is all there is."""
    plan = lab.research.store.plan(RUN, lab.research.state(RUN).plan_version)
    files = {each.id: JobInput(lab.research.file(RUN, each.uri), each.sha256) for each in plan.inputs}
    jobs = [
        StepJob(
            key=step.id,
            run_id="alone",
            plan_sha256=plan.sha256,
            step=step,
            inputs={name: files[source] for name, source in step.inputs.items()},
            folder=folder / step.id,
        )
        for step in plan.steps
    ]
    executor = LocalExecutor(pool=POOL)
    since = time.perf_counter()
    with ThreadPoolExecutor(len(jobs)) as threads:
        failed = [each.error for each in threads.map(executor.run, jobs) if each.error]
    if failed:
        raise RuntimeError(failed[0])
    return time.perf_counter() - since
