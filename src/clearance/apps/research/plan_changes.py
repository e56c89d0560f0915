"""A person's own version of a plan: the parameters of a form, or a whole plan that was edited in a file."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from clearance.apps.research.errors import PlanError
from clearance.apps.research.estimates import estimate, size_of, sizes, timeout
from clearance.apps.research.methods.cards import Card
from clearance.apps.research.plan import Author, Plan, Step, Template
from clearance.apps.research.plan_checks import check_plan
from clearance.apps.research.plan_diff import diff
from clearance.errors import InvalidInputError


def edit_params(
    plan: Plan,
    params: Mapping[str, Mapping[str, Any]],
    *,
    by: str,
    cards: Mapping[str, Card],
    references: Collection[str],
) -> Plan:
    """Return the next version with other parameters, by step id, as a form gives them.

    Raises `PlanError` for an unknown step, parameters that break the card's schema, or when nothing changes.
    """
    unknown = sorted(set(params) - {step.id for step in plan.steps})
    if unknown:
        raise PlanError(f"The plan has no step {', '.join(unknown)}.")
    steps = tuple(replace(step, params={**step.params, **params.get(step.id, {})}) for step in plan.steps)
    return edit_plan(plan, replace(plan, steps=steps), by=by, cards=cards, references=references)


def edit_plan(
    plan: Plan, edited: Plan, *, by: str, cards: Mapping[str, Card], references: Collection[str]
) -> Plan:
    """Return the next version as a person edited it (`read_plan` reads a file), through every check.

    Version, parent and author are set here, and so are templates, estimates and timeouts: nobody types those.
    What the plan is about and its inputs stay; steps, parameters, budget, objective and evidence may change.
    Raises `PlanError` for anything that does not hold, or when nothing changes.
    """
    for name in ("plan_id", "run_id", "subject"):
        if getattr(plan, name) != getattr(edited, name):
            raise PlanError(f"{name} cannot be edited: it says what the plan belongs to.")
    if not set(edited.inputs) <= set(plan.inputs):
        raise PlanError("Inputs cannot be edited: they are what the run found. Start a run for other inputs.")
    if not {each.workflow_template for each in edited.steps} <= {
        each.workflow_template for each in plan.steps
    }:
        raise PlanError("workflow_template cannot be edited: it is what the cluster had. Start a new run.")
    changed = replace(
        edited,
        version=plan.version + 1,
        parent_sha256=plan.sha256,
        created_by=Author(kind="human", name=by),
        warnings=plan.warnings,
        left_out=plan.left_out,
        steps=_measured(edited, cards),
        wishes=None,
    )
    check_plan(changed, cards=cards, references=references)
    if diff(plan, changed).empty:
        raise PlanError("The edit changes nothing. Approve the plan as it is, or change something.")
    return changed


def _measured(plan: Plan, cards: Mapping[str, Card]) -> tuple[Step, ...]:
    """Return the steps with today's templates and the estimates for their inputs.

    A step that cannot be measured stays as it is: the checks say what is wrong with it.
    """
    known = sizes(plan.inputs, plan.steps)
    steps = []
    for step in plan.steps:
        card = cards.get(step.method)
        if card is not None:
            expected = estimate(card, size_of(step.inputs, known))
            step = replace(
                step,
                template=Template(card.template.name, card.template.sha256, card.version),
                params=_completed(card, step.params),
                estimate=expected,
                timeout_s=timeout(expected),
            )
        steps.append(step)
    return tuple(steps)


def _completed(card: Card, params: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return card.check_params(params)
    except InvalidInputError:
        return params
