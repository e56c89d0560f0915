"""The rules: what fits the objective and can run is planned, the rest is left out with the reason."""

from dataclasses import replace
from decimal import Decimal

import pytest

from clearance.apps.research.errors import PlanError
from clearance.apps.research.knowledge import NoMethodError
from clearance.apps.research.plan import Budget, Plan, Wishes
from clearance.apps.research.plan_checks import plan_faults
from clearance.apps.research.plan_request import OVERVIEW
from clearance.apps.research.planner import plan_by_rules, revise_by_rules
from tests.research.documented import PROTEIN
from tests.research.plans import CARDS, plan, request, step_ids

GENES = ["BRCA1", "TP53", "EGFR", "KRAS", "BRCA2", "BRAF", "ATM", "PTEN", "VHL"]


def _reasons(value: Plan) -> dict[str, str]:
    return {each.method: each.reason for each in value.left_out}


@pytest.mark.parametrize("symbol", GENES)
def test_every_shipped_gene_gets_a_plan_without_faults(symbol: str) -> None:
    made = request(symbol)
    value = plan_by_rules(made)
    assert plan_faults(value, cards=CARDS, references=made.references) == ()
    assert value.objective == OVERVIEW
    assert set(step_ids(value)) | set(_reasons(value)) == set(CARDS)


def test_the_same_request_gives_the_same_plan() -> None:
    assert plan_by_rules(request()).sha256 == plan_by_rules(request()).sha256


def test_different_objectives_give_different_plans() -> None:
    objectives = ["primers for PCR", "CRISPR guides", "restriction cloning", "domains and families", ""]
    made = [step_ids(plan("EGFR", objective)) for objective in objectives]
    assert len({tuple(steps) for steps in made}) == len(objectives)
    assert made[0][0] == "primer-design"
    assert "crispr-guide-scan" in made[1]


def test_an_objective_without_a_word_in_common_gets_an_overview_and_says_so() -> None:
    value = plan("KRAS", "xyzzy")
    assert step_ids(value) == step_ids(plan("KRAS"))
    assert any("No method has a word in common" in warning for warning in value.warnings)


def test_what_makes_an_input_is_planned_before_what_uses_it() -> None:
    value = plan("KRAS", "What does c.35G>A do to the protein? A variant.")
    assert step_ids(value).index("orf-scan") < step_ids(value).index("variant-effect")
    steps = {step.id: step for step in value.steps}
    assert steps["variant-effect"].inputs["cds"] == "orf-scan/cds.fna"
    assert steps["variant-effect"].needs == ("orf-scan",)
    assert steps["variant-effect"].params["variants"] == ["c.35G>A"]


def test_the_effect_of_variants_is_left_out_where_none_is_named() -> None:
    value = plan("KRAS", "variant effect and codon usage")
    assert "only a person can name" in _reasons(value)["variant-effect"]


def test_methods_whose_inputs_are_absent_are_left_out_with_the_reason() -> None:
    reasons = _reasons(plan("TP53"))
    assert "dna" in reasons["gc-profile"]
    assert "msa" in reasons["msa-conservation"]
    assert "bibliography" in reasons["literature-cooccurrence"]


def test_a_part_is_not_passed_off_as_the_whole() -> None:
    value = plan("BRCA1", "variant effect of c.181T>G, and its coding sequence")
    assert "variant-effect" not in step_ids(value)
    assert "cds" in _reasons(value)["variant-effect"]
    assert any(warning.startswith("Of a part only (exon 11 only") for warning in value.warnings)


def test_not_even_a_person_gets_an_analysis_of_a_part_as_of_the_whole() -> None:
    wishes = Wishes(params={"variant-effect": {"variants": ["c.181T>G"]}})
    with pytest.raises(PlanError, match="variant-effect is required and cannot be planned"):
        plan_by_rules(request("BRCA1"), wishes=wishes)


def test_a_whole_record_is_taken_before_a_part() -> None:
    made = request("KRAS", "GC content")
    mrna = next(each for each in made.inputs if each.id == "mrna")
    part = replace(mrna, id="part", partial=True, note="its first half")
    value = plan_by_rules(replace(made, inputs=(part, *made.inputs)))
    assert {step.inputs["sequence"] for step in value.steps if step.id == "gc-profile"} == {"mrna"}


def test_an_older_version_than_manes_is_said_in_the_plan() -> None:
    assert "mrna is NM_005228.3; MANE Select v1.5 has NM_005228.5." in plan("EGFR").warnings


def test_the_evidence_is_the_runs_literature_and_absent_literature_is_said() -> None:
    assert [each.ref for each in plan("BRCA1").evidence] == ["PMID:7545954", "PMID:30209399"]
    assert plan("KRAS").evidence == ()
    assert "No literature on KRAS was found; nothing can be cited." in plan("KRAS").warnings


def test_only_inputs_that_a_step_uses_are_in_the_plan() -> None:
    value = plan("BRCA1", "CRISPR guides")
    used = {reference for step in value.steps for reference in step.inputs.values()}
    assert {each.id for each in value.inputs} <= used


def test_terms_of_the_objective_are_looked_for_in_the_literature() -> None:
    value = plan("BRCA1", "literature co-occurrence with ovarian cancer")
    step = next(step for step in value.steps if step.id == "literature-cooccurrence")
    assert step.params["terms"][0] == "BRCA1"
    assert {"ovarian", "cancer"} <= set(step.params["terms"])


def test_two_inputs_of_a_method_are_never_the_same_record() -> None:
    made = request("MINE1", "pairwise alignment", fasta=f">x\n{PROTEIN}\n".encode())
    value = plan_by_rules(replace(made, objective="pairwise alignment, domain search"))
    assert "pairwise-alignment" not in step_ids(value)
    steps = {step.id: step for step in plan("EGFR", "pairwise alignment").steps}
    assert steps["pairwise-alignment"].inputs == {"first": "protein", "second": "translate/protein.faa"}


def test_the_budget_leaves_out_what_it_does_not_reach_for() -> None:
    full = plan("KRAS")
    value = plan_by_rules(request("KRAS", budget=Budget("1", "EUR", "0.0003")))
    assert value.total.cost <= Decimal("0.0003")
    assert 0 < len(value.steps) < len(full.steps)
    assert any("does not reach" in reason for reason in _reasons(value).values())
    with pytest.raises(PlanError, match="Nothing can be planned"):
        plan_by_rules(request("KRAS", budget=Budget("1", "EUR", "0")))
    with pytest.raises(PlanError, match="CPU hours"):
        plan_by_rules(request("KRAS", budget=Budget("0.0001", "EUR", "1")))


def test_data_that_no_method_takes_stops_before_planning() -> None:
    with pytest.raises(NoMethodError):
        plan_by_rules(replace(request(), inputs=()))


def test_a_revision_is_a_new_version_on_top_of_the_old() -> None:
    old = plan("KRAS")
    new = revise_by_rules(old, request(), wishes=Wishes(comment="no codons", exclude=("codon-usage",)))
    assert (new.version, new.parent_sha256, new.plan_id) == (2, old.sha256, old.plan_id)
    assert step_ids(new) == [each for each in step_ids(old) if each != "codon-usage"]
    assert _reasons(new)["codon-usage"] == "A person excluded it."
    assert new.wishes == Wishes(comment="no codons", exclude=("codon-usage",))
    assert old.version == 1


def test_excluding_what_makes_an_input_leaves_out_what_uses_it() -> None:
    new = revise_by_rules(plan(), request(), wishes=Wishes(exclude=("orf-scan",)))
    assert not {"orf-scan", "translate", "codon-usage", "protein-properties"} & set(step_ids(new))
    assert "coding" in _reasons(new)["codon-usage"]


def test_what_is_required_is_planned_with_what_it_needs() -> None:
    new = revise_by_rules(plan(), request(), wishes=Wishes(require=("restriction-map", "primer-design")))
    assert {"restriction-map", "primer-design"} <= set(step_ids(new))
    assert set(step_ids(plan())) <= set(step_ids(new))


def test_parameters_are_set_and_the_others_kept_through_later_versions() -> None:
    second = revise_by_rules(plan(), request(), wishes=Wishes(params={"orf-scan": {"min_aa": 30}}))
    third = revise_by_rules(second, request(), wishes=Wishes(params={"orf-scan": {"strand": "+"}}))
    steps = {step.id: step for step in third.steps}
    assert steps["orf-scan"].params == {"min_aa": 30, "strand": "+", "open_ends": True}
    assert third.version == 3


def test_a_lower_cost_drops_the_least_relevant() -> None:
    new = revise_by_rules(plan(), request(), wishes=Wishes(max_cost="0.0003"))
    assert new.total.cost <= Decimal(new.budget.max_cost) == Decimal("0.0003")
    assert step_ids(new) == step_ids(plan())[: len(new.steps)]


REFUSED: dict[str, tuple[Wishes, str]] = {
    "a comment alone": (Wishes(comment="cheaper, please"), "cannot read a comment"),
    "nothing": (Wishes(), "cannot read a comment"),
    "an unknown method": (Wishes(exclude=("magic",)), "There is no method magic"),
    "an unknown method's parameters": (Wishes(params={"magic": {}}), "There is no method magic"),
    "both": (Wishes(exclude=("orf-scan",), require=("orf-scan",)), "both excluded and required"),
    "what cannot run": (Wishes(require=("msa-conservation",)), "is required and cannot be planned"),
    "bad parameters": (Wishes(params={"orf-scan": {"min_aa": 1}}), "min_aa: must be at least 10"),
    "unknown parameters": (Wishes(params={"orf-scan": {"code": "x"}}), "code"),
    "nothing new": (Wishes(exclude=("msa-conservation",)), "change nothing"),
    "no money": (Wishes(max_cost="0"), "Nothing can be planned"),
    "no amount": (Wishes(max_cost="cheap"), "max_cost must be an amount"),
    "no finite amount": (Wishes(max_cost="Infinity"), "max_cost must be an amount"),
    "a negative amount": (Wishes(max_cost="-1"), "max_cost must be an amount"),
    "required beyond the budget": (
        Wishes(require=("primer-design",), max_cost="0.0000"),
        "required and cannot be planned",
    ),
}


@pytest.mark.parametrize(("wishes", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wish_that_cannot_be_met_is_refused_with_the_reason(wishes: Wishes, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        revise_by_rules(plan(), request(), wishes=wishes)
