"""A plan for the cluster names the WorkflowTemplate that its steps run by: clearing it clears that, too."""

from dataclasses import replace

import pytest

from clearance.apps.research.errors import PlanError
from clearance.apps.research.plan import Plan, WorkflowTemplate, plan_of, read_plan
from clearance.apps.research.plan_changes import edit_plan
from clearance.apps.research.planner import plan_by_rules
from tests.research.plans import CARDS, request

TEMPLATE = WorkflowTemplate("clearance-step", "a" * 64)


def _plan(template: WorkflowTemplate | None = TEMPLATE) -> Plan:
    return plan_by_rules(request(executor="argo", workflow_template=template))


def test_every_step_names_the_template_and_the_plan_s_hash_covers_it() -> None:
    plan = _plan()
    assert {each.workflow_template for each in plan.steps} == {TEMPLATE}
    assert read_plan(plan.text) == plan
    assert _plan(replace(TEMPLATE, sha256="b" * 64)).sha256 != plan.sha256


def test_a_plan_for_this_machine_says_nothing_of_it() -> None:
    assert "workflow_template" not in plan_by_rules(request()).text


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "clearance-step"},
        {"name": "clearance-step", "sha256": "A" * 64},
        {"name": "../secrets", "sha256": "a" * 64},
        {"name": "clearance-step", "sha256": "a" * 64, "image": "x"},
        None,
    ],
)
def test_a_template_that_is_not_written_as_it_must_be_breaks_the_schema(wrong: object) -> None:
    document = _plan().document()
    document["steps"][0]["workflow_template"] = wrong
    with pytest.raises(PlanError, match="does not fit"):
        plan_of(document)


@pytest.mark.parametrize("other", [WorkflowTemplate("clearance-step", "b" * 64), None])
def test_nobody_edits_the_template_into_a_plan(other: WorkflowTemplate | None) -> None:
    plan = _plan()
    steps = tuple(replace(each, workflow_template=other) for each in plan.steps)
    with pytest.raises(PlanError, match="workflow_template cannot be edited"):
        edit_plan(plan, replace(plan, steps=steps), by="ana", cards=CARDS, references=request().references)
