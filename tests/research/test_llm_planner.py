"""A model proposes methods and parameters; what it says goes through the checks of every plan."""

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, ToolMessage

from clearance.apps.research.errors import PlanError
from clearance.apps.research.llm_planner import plan_by_model
from clearance.apps.research.plan import Wishes
from clearance.apps.research.plan_checks import plan_faults
from tests.research.plans import CARDS, plan, request, step_ids
from tests.scripted import ScriptedModel, calls


def _proposal(*methods: str, **more: Any) -> AIMessage:
    steps = [{"method": method, "rationale": f"For {method}."} for method in methods]
    return calls(("propose_plan", {"steps": steps, **more}))


def test_a_proposal_becomes_a_plan_of_the_knowledge_bases_templates() -> None:
    model = ScriptedModel([_proposal("gc-profile", "protein-properties")])
    made = request("BRCA1", "what kind of gene is this")
    value = plan_by_model(model, made, name="scripted:one")
    assert step_ids(value) == ["gc-profile", "translate", "protein-properties"]
    assert (value.created_by.kind, value.created_by.model) == ("agent", "scripted:one")
    assert value.steps[0].rationale == "For gc-profile."
    assert value.steps[0].template.sha256 == CARDS["gc-profile"].template.sha256
    assert plan_faults(value, cards=CARDS, references=made.references) == ()


BAD: dict[str, AIMessage | str] = {
    "no call": "I would count the bases.",
    "another tool": calls(("run_code", {"code": "print(1)"})),
    "two calls": calls(("propose_plan", {"steps": []}), ("propose_plan", {"steps": []})),
    "no steps": calls(("propose_plan", {"steps": []})),
    "code": calls(
        ("propose_plan", {"steps": [{"method": "gc-profile", "rationale": "x", "code": "print(1)"}]})
    ),
    "an unknown method": _proposal("magic"),
    "a method twice": _proposal("gc-profile", "gc-profile"),
    "nothing that can run": _proposal("msa-conservation"),
    "bad parameters": calls(
        ("propose_plan", {"steps": [{"method": "orf-scan", "rationale": "x", "params": {"min_aa": 1}}]})
    ),
    "an invented citation": _proposal("gc-profile", evidence=[{"ref": "PMID:1", "claim": "It is so."}]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_fault_is_told_to_the_model_which_may_correct_it(bad: AIMessage | str) -> None:
    model = ScriptedModel([bad, bad, bad, _proposal("gc-profile")])
    value = plan_by_model(model, request(), name="scripted:one")
    assert step_ids(value) == ["gc-profile"]
    told = model.seen[-1][-1]
    assert "This cannot be used." in str(told.content)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_after_three_repairs_planning_fails(bad: AIMessage | str) -> None:
    model = ScriptedModel([bad] * 4 + [_proposal("gc-profile")])
    with pytest.raises(PlanError, match="no usable plan in 4 tries"):
        plan_by_model(model, request(), name="scripted:one")
    assert len(model.seen) == 4


def test_a_fault_says_what_is_wrong_and_where() -> None:
    model = ScriptedModel([BAD["bad parameters"], _proposal("gc-profile")])
    plan_by_model(model, request(), name="scripted:one")
    told = model.seen[1][-1]
    assert isinstance(told, ToolMessage)
    assert "/min_aa: must be at least 10" in str(told.content)


def test_a_comment_reaches_the_model_and_the_next_version() -> None:
    model = ScriptedModel([_proposal("gc-profile")])
    old = plan("KRAS")
    wishes = Wishes(comment="only the composition, please")
    value = plan_by_model(model, request(), name="scripted:one", parent=old, wishes=wishes)
    assert "only the composition, please" in str(model.seen[0][1].content)
    assert (value.version, value.parent_sha256, value.wishes) == (2, old.sha256, wishes)
    assert step_ids(value) == ["gc-profile"]


def test_what_a_person_excludes_and_requires_holds_whatever_the_model_says() -> None:
    model = ScriptedModel([_proposal("gc-profile", "codon-usage")])
    wishes = Wishes(exclude=("codon-usage",), require=("restriction-map",), max_cost="0.5")
    value = plan_by_model(model, request(), name="scripted:one", wishes=wishes)
    assert step_ids(value) == ["restriction-map", "gc-profile"]
    assert value.budget.max_cost == "0.5000"


def test_a_model_without_tools_cannot_plan() -> None:
    with pytest.raises(PlanError, match="cannot call tools"):
        plan_by_model(FakeListChatModel(responses=["x"]), request(), name="fake")
