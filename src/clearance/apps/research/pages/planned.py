"""A plan as its page shows it: every step with its cost and risk, what changed, and its exact text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.plan import Plan, Step
from clearance.apps.research.plan_calls import reaches_further
from clearance.apps.research.plan_diff import PlanDiff, diff
from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.form.source import indented, read_source
from clearance.toolcall import canonical, parse_arguments


@dataclass(frozen=True)
class Line:
    """One line of a difference: `sign` is +, - or ~, `word` says the same."""

    sign: str
    word: str
    text: str


@dataclass(frozen=True)
class StepShown:
    """One step. `asked`: people are asked about it now; `further`: it reaches beyond the run's own folder."""

    number: int
    step: Step
    reads: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    asked: bool
    further: bool


@dataclass(frozen=True)
class PlanShown:
    """A version of a plan. `changes` are those since version `since`; None: there is none before it."""

    plan: Plan
    steps: tuple[StepShown, ...]
    text: str
    since: int | None
    changes: tuple[Line, ...]
    methods: tuple[str, ...]
    others: tuple[str, ...]


_WORDS = {"+": "added", "-": "removed", "~": "changed"}


def plan_shown(research: ResearchRuns, run_id: str, *, version: int, waiting: Waiting | None) -> PlanShown:
    """Return the plan that waits, with what changed since the one this person decided on; else the newest."""
    if waiting is not None:
        plan, since, changed = waiting.plan, waiting.since, waiting.diff
    else:
        plan = research.store.plan(run_id, version)
        since = version - 1 or None
        changed = None if since is None else diff(research.store.plan(run_id, since), plan)
    calls = waiting.review.waiting if waiting is not None else ()
    asked = {str(parse_arguments(call.arguments)["step"]) for call in calls}
    methods = tuple(dict.fromkeys(step.method for step in plan.steps))
    return PlanShown(
        plan=plan,
        steps=tuple(_step(number, step, asked=asked) for number, step in enumerate(plan.steps, start=1)),
        text=written(plan),
        since=since,
        changes=_lines(changed),
        methods=methods,
        others=tuple(card.id for card in load_cards() if card.id not in methods),
    )


def written(plan: Plan) -> str:
    """Return a plan's JSON as it is read and edited: every number and text as in its bytes, on lines."""
    return indented(read_source(plan.text))


def _step(number: int, step: Step, *, asked: set[str]) -> StepShown:
    return StepShown(
        number=number,
        step=step,
        reads=tuple(sorted(step.inputs.items())),
        params=_plain(step.params),
        asked=step.id in asked,
        further=reaches_further(step),
    )


def _plain(params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value if isinstance(value, str) else canonical(value)) for name, value in params.items()
    )


def _lines(changed: PlanDiff | None) -> tuple[Line, ...]:
    if changed is None:
        return ()
    parts = [(each[:1], each[2:]) for each in changed.lines() if each[:2] in ("+ ", "- ", "~ ")]
    return tuple(Line({"-": "−"}.get(sign, sign), _WORDS[sign], text) for sign, text in parts)
