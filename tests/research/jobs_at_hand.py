"""Jobs for executors: steps of real templates, and steps of a program that does what a test wants."""

import hashlib
import sys
from pathlib import Path
from typing import Any

from clearance.apps.research.executors.jobs import JobInput, StepJob
from clearance.apps.research.executors.local import Limits, LocalExecutor
from clearance.apps.research.methods.cards import card
from clearance.apps.research.plan import Estimate, Output, Risk, Step, Template
from tests.research.methods_at_hand import SHIPPED

KRAS = SHIPPED / "KRAS.NM_004985.5.fna"
PROGRAM = Path(__file__).with_name("obedient_step.py")
QUICK = Limits(grace_s=0.3, look_s=0.05, disk_mb=20, file_mb=10, processes=20)


def step(method: str = "gc-profile", **changed: Any) -> Step:
    """A step of a method, as a plan has it."""
    known = card(method)
    given: dict[str, Any] = {
        "id": method,
        "method": method,
        "template": Template(method, known.template.sha256, known.version),
        "executor": "local",
        "params": known.check_params({}),
        "needs": (),
        "inputs": {"sequence": "sequence"},
        "outputs": tuple(Output(each.name, each.media_type) for each in known.outputs),
        "estimate": Estimate("0.5", 256, "0"),
        "risk": Risk("low", ("compute",)),
        "rationale": "",
        "timeout_s": 60,
        "retries": 0,
    }
    return Step(**(given | changed))


def job(folder: Path, value: Step | None = None, **changed: Any) -> StepJob:
    """A job for that step on the KRAS record, in a folder of its own."""
    value = value or step()
    given: dict[str, Any] = {
        "key": f"r1/1/{value.id}",
        "run_id": "r1",
        "plan_sha256": "a" * 64,
        "step": value,
        "inputs": {"sequence": JobInput(KRAS, hashlib.sha256(KRAS.read_bytes()).hexdigest())},
        "folder": folder / "r1" / "steps" / value.id,
    }
    return StepJob(**(given | changed))


def told(folder: Path, do: str, **changed: Any) -> StepJob:
    """A job for the obedient program: it does what `do` says."""
    of_step = ("timeout_s", "retries", "id", "workflow_template")
    given = {name: changed.pop(name) for name in of_step if name in changed}
    return job(folder, step(params={"do": do}, **given), **changed)


def obedient(*, pool: int = 2, limits: Limits = QUICK) -> LocalExecutor:
    """An executor whose steps are the obedient program."""
    return LocalExecutor(pool=pool, command=[sys.executable, "-P", str(PROGRAM)], limits=limits)
