"""What one version of a plan has that another has not."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from clearance.apps.research.plan import Plan, Step
from clearance.toolcall import canonical


@dataclass(frozen=True)
class Change:
    """One thing that differs, such as `params.min_aa`; None stands for what is not there."""

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name}: {_shown(self.old)} → {_shown(self.new)}"


@dataclass(frozen=True)
class StepChange:
    """A step that both versions have, and what differs in it."""

    id: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class PlanDiff:
    """The difference of two versions. `totals` are cost, processor seconds and risk, where they differ."""

    old_sha256: str
    new_sha256: str
    added: tuple[Step, ...]
    removed: tuple[Step, ...]
    changed: tuple[StepChange, ...]
    totals: tuple[Change, ...]
    others: tuple[Change, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing differs but who made the version, when and on whose wish."""
        return not (self.added or self.removed or self.changed or self.totals or self.others)

    def lines(self) -> list[str]:
        """Return the difference for people, a line each."""
        said = [f"+ {step.id}: {step.rationale}" for step in self.added]
        said += [f"- {step.id}" for step in self.removed]
        said += [f"~ {step.id}: {change}" for step in self.changed for change in step.changes]
        said += [line for change in (*self.totals, *self.others) for line in _lines(change)]
        return said or ["Nothing differs."]

    def document(self) -> dict[str, Any]:
        """Return the difference as JSON; added and removed steps by id."""
        document = asdict(self)
        document["added"] = [step.id for step in self.added]
        document["removed"] = [step.id for step in self.removed]
        return document


def diff(old: Plan, new: Plan) -> PlanDiff:
    """Return what changed from one version to the other. Steps are the same where their ids are."""
    before, after = _by_id(old.steps), _by_id(new.steps)
    both = [step_id for step_id in before if step_id in after]
    changed = [StepChange(each, _step_changes(before[each], after[each])) for each in both]
    return PlanDiff(
        old_sha256=old.sha256,
        new_sha256=new.sha256,
        added=tuple(step for step in new.steps if step.id not in before),
        removed=tuple(step for step in old.steps if step.id not in after),
        changed=tuple(change for change in changed if change.changes),
        totals=_changes(_totals(old), _totals(new)),
        others=_changes(_others(old, both), _others(new, both)),
    )


def _lines(change: Change) -> list[str]:
    """Return a change for people; of texts in a list only those that came or went."""
    if not (isinstance(change.old, list) and isinstance(change.new, list)):
        return [f"~ {change}"]
    came = [f"+ {change.name}: {_shown(each)}" for each in change.new if each not in change.old]
    went = [f"- {change.name}: {_shown(each)}" for each in change.old if each not in change.new]
    return [*came, *went] or [f"~ {change}"]


def _step_changes(old: Step, new: Step) -> tuple[Change, ...]:
    return _changes(_facts(old), _facts(new))


def _facts(step: Step) -> dict[str, Any]:
    """Return what a person compares in a step, by name."""
    facts = {
        "method": step.method,
        "template": step.template.sha256,
        "executor": step.executor,
        "needs": list(step.needs),
        "cost": step.estimate.cost,
        "cpu_s": str(step.estimate.cpu_s),
        "mem_mb": step.estimate.mem_mb,
        "risk": step.risk.level,
        "effects": sorted(step.risk.effects),
        "timeout_s": step.timeout_s,
        "retries": step.retries,
    }
    facts |= {f"params.{name}": value for name, value in step.params.items()}
    return facts | {f"inputs.{name}": value for name, value in step.inputs.items()}


def _totals(plan: Plan) -> dict[str, Any]:
    total = plan.total
    return {"total cost": str(total.cost), "total cpu_s": str(total.cpu_s), "risk": plan.risk}


def _others(plan: Plan, shared: Collection[str]) -> dict[str, Any]:
    """Return what a person compares beside the steps, by name."""
    facts: dict[str, Any] = {
        "subject": plan.subject.symbol,
        "objective": plan.objective,
        "order of steps": [step.id for step in plan.steps if step.id in shared],
        "budget.max_cost": f"{plan.budget.max_cost} {plan.budget.currency}",
        "budget.cpu_hours": str(plan.budget.cpu_hours),
        "evidence": sorted(each.ref for each in plan.evidence),
        "warnings": list(plan.warnings),
    }
    return facts | {f"input {each.id}": each.sha256 for each in plan.inputs}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    names = dict.fromkeys([*old, *new])
    return tuple(
        Change(name, old.get(name), new.get(name))
        for name in names
        if canonical(old.get(name)) != canonical(new.get(name))
    )


def _by_id(steps: Iterable[Step]) -> dict[str, Step]:
    return {step.id: step for step in steps}


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else canonical(value)
