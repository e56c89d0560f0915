"""What breaks a plan beyond its schema is found, place by place."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clearance.apps.research.errors import PlanError
from clearance.apps.research.plan import Evidence, Plan
from clearance.apps.research.plan_checks import check_plan, plan_faults
from tests.research.plans import CARDS, plan, request

REFERENCES = request("BRCA1").references


def _step(number: int, **facts: Any) -> Callable[[Plan], Plan]:
    def change(value: Plan) -> Plan:
        steps = list(value.steps)
        steps[number] = replace(steps[number], **facts)
        return replace(value, steps=tuple(steps))

    return change


def _cheaper(value: Plan) -> Plan:
    return _step(0, estimate=replace(value.steps[0].estimate, cost="0.0000"))(value)


def _other_template(value: Plan) -> Plan:
    return _step(0, template=replace(value.steps[0].template, sha256="0" * 64))(value)


# The plan's steps: 0 orf-scan, 1 exon-structure, 2 codon-usage, 3 translate, 4 protein-properties, …
FAULTS: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "an id twice": (_step(1, id="orf-scan"), "/steps/1/id"),
    "an input twice": (lambda p: replace(p, inputs=(*p.inputs, p.inputs[0])), "/inputs/4/id"),
    "an unknown step": (_step(4, needs=("translate", "nothing")), "/steps/4/needs"),
    "itself": (_step(0, needs=("orf-scan",)), "/steps"),
    "a circle": (_step(3, needs=("protein-properties",)), "/steps"),
    "the wrong order": (lambda p: replace(p, steps=p.steps[::-1]), "/steps/"),
    "an unknown method": (_step(0, method="run-my-code"), "/steps/0/method"),
    "a template that drifted": (_other_template, "/steps/0/template"),
    "an input that is not there": (_step(0, inputs={"sequence": "exon12"}), "/steps/0/inputs/sequence"),
    "an output that is not made": (
        _step(4, inputs={"protein": "translate/x.faa"}),
        "/steps/4/inputs/protein",
    ),
    "an input of another kind": (_step(0, inputs={"sequence": "mammals"}), "/steps/0/inputs/sequence"),
    "a missing input": (_step(0, inputs={}), "/steps/0/inputs/sequence"),
    "an input too many": (_step(0, inputs={"sequence": "exon11", "x": "exon11"}), "/steps/0/inputs/x"),
    "a dependency unsaid": (_step(4, needs=()), "/steps/4/needs"),
    "a parameter out of range": (
        _step(0, params={"min_aa": 1, "strand": "both", "open_ends": True}),
        "/steps/0/params/min_aa",
    ),
    "an unknown parameter": (_step(0, params={"code": "x"}), "/steps/0/params/code"),
    "a default unwritten": (_step(0, params={}), "/steps/0/params"),
    "other outputs": (lambda p: _step(0, outputs=p.steps[0].outputs[:1])(p), "/steps/0/outputs"),
    "effects unsaid": (
        lambda p: _step(0, risk=replace(p.steps[0].risk, effects=()))(p),
        "/steps/0/risk/effects",
    ),
    "a cheaper estimate": (_cheaper, "/steps/0/estimate"),
    "too little money": (
        lambda p: replace(p, budget=replace(p.budget, max_cost="0.0001")),
        "/budget/max_cost",
    ),
    "too little time": (
        lambda p: replace(p, budget=replace(p.budget, cpu_hours="0.0001")),
        "/budget/cpu_hours",
    ),
    "an invented citation": (lambda p: replace(p, evidence=(Evidence("PMID:1"),)), "/evidence/0/ref"),
    "a first version with parent": (lambda p: replace(p, parent_sha256="0" * 64), "/parent_sha256"),
    "a second version without": (lambda p: replace(p, version=2), "/parent_sha256"),
    "a plan that breaks the schema": (lambda p: replace(p, steps=()), "/steps"),
}


@pytest.mark.parametrize(("breaks", "pointer"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_found_at_its_place(breaks: Callable[[Plan], Plan], pointer: str) -> None:
    found = plan_faults(breaks(plan("BRCA1")), cards=CARDS, references=REFERENCES)
    assert any(fault.pointer.startswith(pointer) for fault in found), found


def test_a_planned_plan_has_none() -> None:
    assert plan_faults(plan("BRCA1"), cards=CARDS, references=REFERENCES) == ()


def test_a_float_is_refused_in_parameters() -> None:
    card = CARDS["gc-profile"]
    loose = replace(card, params={"type": "object", "properties": {"window": {"type": "number"}}})
    value = plan("BRCA1")
    at = [step.id for step in value.steps].index("gc-profile")
    changed = _step(at, params={"window": 0.5, "more": [{"x": 1.5}]})(value)
    found = plan_faults(changed, cards={**CARDS, "gc-profile": loose}, references=REFERENCES)
    assert [fault.pointer for fault in found] == [
        f"/steps/{at}/params/window",
        f"/steps/{at}/params/more/0/x",
    ]


def test_all_faults_are_said_at_once() -> None:
    broken = _cheaper(_step(4, needs=())(plan("BRCA1")))
    with pytest.raises(PlanError) as raised:
        check_plan(broken, cards=CARDS, references=REFERENCES)
    assert {fault.pointer for fault in raised.value.faults} >= {"/steps/0/estimate", "/steps/4/needs"}
