"""A person's edit is a version of its own, through the same checks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clearance.apps.research.errors import PlanError
from clearance.apps.research.plan import Evidence, Plan, Subject, read_plan
from clearance.apps.research.plan_changes import edit_params, edit_plan
from clearance.apps.research.plan_checks import plan_faults
from tests.research.plans import CARDS, plan, request, step_ids

REFERENCES = request("BRCA1").references
OPTIONS: dict[str, Any] = {"by": "ann", "cards": CARDS, "references": REFERENCES}


def test_the_parameters_of_a_form_make_the_next_version_by_that_person() -> None:
    old = plan("BRCA1")
    new = edit_params(old, {"orf-scan": {"min_aa": 30}}, **OPTIONS)
    assert (new.version, new.parent_sha256) == (2, old.sha256)
    assert (new.created_by.kind, new.created_by.name) == ("human", "ann")
    assert new.steps[0].params == {"min_aa": 30, "strand": "both", "open_ends": True}
    assert old.steps[0].params["min_aa"] == 100
    assert plan_faults(new, cards=CARDS, references=REFERENCES) == ()


def test_a_file_without_a_step_makes_a_version_without_it() -> None:
    old = plan("BRCA1")
    document = old.document()
    document["steps"] = [step for step in document["steps"] if step["id"] != "gc-profile"]
    edited = read_plan(str(document).replace("'", '"').replace("True", "true").replace("None", "null"))
    new = edit_plan(old, edited, **OPTIONS)
    assert step_ids(new) == [each for each in step_ids(old) if each != "gc-profile"]


def test_estimates_and_templates_are_measured_again_not_typed() -> None:
    old = plan("BRCA1")
    cheap = replace(
        old.steps[0],
        params={"min_aa": 30},
        estimate=replace(old.steps[0].estimate, cost="0.0000"),
        template=replace(old.steps[0].template, sha256="0" * 64),
        timeout_s=1,
    )
    new = edit_plan(old, replace(old, steps=(cheap, *old.steps[1:])), **OPTIONS)
    assert new.steps[0].estimate == old.steps[0].estimate
    assert new.steps[0].template == old.steps[0].template
    assert new.steps[0].timeout_s == old.steps[0].timeout_s


EDITS: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "nothing": (lambda p: p, "changes nothing"),
    "another run": (lambda p: replace(p, run_id="r2"), "run_id cannot be edited"),
    "another gene": (lambda p: replace(p, subject=Subject("TP53", "Homo sapiens", 9606)), "subject cannot"),
    "another input": (
        lambda p: replace(p, inputs=(replace(p.inputs[0], sha256="0" * 64), *p.inputs[1:])),
        "Inputs cannot be edited",
    ),
    "an unknown method": (
        lambda p: replace(p, steps=(replace(p.steps[0], method="magic"), *p.steps[1:])),
        "not a method of the knowledge base",
    ),
    "parameters that do not fit": (
        lambda p: replace(p, steps=(replace(p.steps[0], params={"min_aa": 1}), *p.steps[1:])),
        "min_aa: must be at least 10",
    ),
    "an invented citation": (
        lambda p: replace(p, evidence=(Evidence("PMID:1"),)),
        "not in the run's literature",
    ),
    "a budget too small": (
        lambda p: replace(p, budget=replace(p.budget, max_cost="0.0001")),
        "less than the steps cost",
    ),
}


@pytest.mark.parametrize(("change", "message"), EDITS.values(), ids=EDITS.keys())
def test_an_edit_that_does_not_hold_is_refused(change: Callable[[Plan], Plan], message: str) -> None:
    old = plan("BRCA1")
    with pytest.raises(PlanError, match=message):
        edit_plan(old, change(old), **OPTIONS)


def test_parameters_of_a_step_that_is_not_there_are_refused() -> None:
    with pytest.raises(PlanError, match="no step primer-design"):
        edit_params(plan("BRCA1"), {"primer-design": {}}, **OPTIONS)
