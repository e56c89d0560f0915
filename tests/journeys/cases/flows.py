"""The words of the cases for pipelines, and which of them the research pipeline means.

`planner`, `check`, `gate:S4_plan`, `analyst`, `gate:S5_execute`, `reporter`: the check is the plan's, and the
second gate stands where a step reaches further. A flow with other steps is a pipeline of one's own.
"""

import re
from dataclasses import dataclass

from tests.journeys.cases.loading import CaseError, Step

STEPS = ("planner", "check", "gate:S4_plan", "analyst", "gate:S5_execute", "reporter")
SECOND_GATE = "gate:S5_execute"
_LABEL = re.compile(r"(?:(\S+) )?(S4_plan|S5_execute) rev (\d+)")


@dataclass(frozen=True)
class GateLabel:
    """A review of a case by its gate: `run2 S4_plan rev 1`. `run` is None where the case names none."""

    run: str | None
    gate: str
    revision: int


def read_label(label: str) -> GateLabel | None:
    """Return what a label says of a gate; None for one that is about something else."""
    found = _LABEL.fullmatch(label)
    return GateLabel(found[1], found[2], int(found[3])) if found is not None else None


def has_own_steps(step: Step) -> bool:
    """Whether a step is about a pipeline that is not the research pipeline."""
    if step.get("op") != "pipeline":
        return False
    again = str(step.get("what", "")).removeprefix("rerun").strip()
    asked = [*step.get("flow", []), *([again] if str(step.get("what", "")).startswith("rerun ") else [])]
    return not set(asked) <= set(STEPS) or bool({"ref", "sha"} & set(step))


def check_flow(flow: list[str]) -> None:
    """Raise `CaseError` for steps that stand in another order than the product's."""
    places = [STEPS.index(step) for step in flow]
    if places != sorted(set(places)):
        raise CaseError(f"The interpreter knows no pipeline in the order {', '.join(flow)}.")
