"""Jobs: one step to be carried out, and what came of it; the same for every executor."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clearance.apps.research.plan import Step


@dataclass(frozen=True)
class JobInput:
    """A file that a step reads: where it lies, and the sha256 (hex) that it must have."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class StepJob:
    """One step of a cleared plan. `key` is the same for every try at it; `folder` is the step's own.

    `plan_sha256` names the plan that people cleared. Everything that the step may read is in `inputs`.
    """

    key: str
    run_id: str
    plan_sha256: str
    step: Step
    inputs: Mapping[str, JobInput]
    folder: Path


@dataclass(frozen=True)
class StepOutput:
    """A file that a step gave."""

    name: str
    kind: str
    media_type: str
    sha256: str
    content: bytes


@dataclass(frozen=True)
class StepResult:
    """What came of a step. `error` is None when it is complete; then `outputs` are its files.

    `summary` is what the step says of itself (`summary.json`). Used: processor seconds and wall seconds as
    decimal texts, memory in megabytes at its highest; `tries` counts how often it was started.
    """

    outputs: tuple[StepOutput, ...] = ()
    summary: Mapping[str, Any] | None = None
    error: str | None = None
    cpu_s: str = "0"
    wall_s: str = "0"
    peak_mb: int = 0
    tries: int = 1


class Executor(Protocol):
    """Carries steps out. A job that was carried out before is not carried out again: its result is given."""

    def run(self, job: StepJob) -> StepResult:
        """Carry a step out to its end. What goes wrong with the step is in its result; it is not raised.

        Raises `CallUncertainError` when nobody can know whether the step was carried out.
        """
        ...

    def find(self, job: StepJob) -> StepResult | None:
        """Return the result of a job that was carried out to its end, else None. Starts nothing."""
        ...

    def cancel(self, run_id: str) -> None:
        """End what runs of a run now; its steps then have an error."""
        ...
