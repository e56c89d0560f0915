"""The knowledge base: what can run on the data at hand, what must run before, and what fits the objective."""

from contextlib import closing

import pytest

from clearance.apps.research.knowledge import (
    KnowledgeBase,
    NoMethodError,
    RankedCard,
    Source,
    left_out,
    rank,
)
from clearance.apps.research.methods.cards import load_cards
from clearance.errors import InvalidInputError

EVERYTHING = ("bibliography", "cds", "exons", "hmm", "mrna", "msa", "protein", "variants")


def _named(ranked: list[RankedCard], name: str) -> RankedCard:
    return next(each for each in ranked if each.card.id == name)


@pytest.mark.parametrize(
    ("objective", "first"),
    [
        ("Which protein domains does it have?", "domain-search"),
        ("Design PCR primers around the mutation hotspot", "primer-design"),
        ("knock it out with CRISPR", "crispr-guide-scan"),
        ("How conserved is it in mammals?", "msa-conservation"),
        ("digest with EcoRI for cloning", "restriction-map"),
        ("interpret the missense variant", "variant-effect"),
        ("codon bias for expression in E. coli", "codon-usage"),
        ("isoelectric point before purification", "protein-properties"),
        ("exons and introns", "exon-structure"),
        ("what the publications associate it with", "literature-cooccurrence"),
        ("glycosylation sites", "motif-scan"),
        ("open reading frames", "orf-scan"),
        ("CpG islands", "gc-profile"),
    ],
)
def test_the_objective_decides_what_comes_first(objective: str, first: str) -> None:
    assert rank(EVERYTHING, objective)[0].card.id == first


def test_words_are_found_by_their_stem() -> None:
    assert rank(EVERYTHING, "amplifying")[0].card.id == "primer-design"


def test_with_everything_at_hand_every_method_can_run() -> None:
    ranked = rank(EVERYTHING, "")
    assert {each.card.id for each in ranked} == {card.id for card in load_cards()}
    assert left_out(EVERYTHING) == []
    assert all(each.needs == () for each in ranked)


def test_an_objective_without_a_known_word_puts_what_needs_nothing_before_it_first() -> None:
    ranked = rank({"mrna"}, "xyzzy")
    assert {each.score for each in ranked} == {0.0}
    assert [len(each.needs) for each in ranked] == sorted(len(each.needs) for each in ranked)


def test_an_mrna_gives_a_coding_sequence_and_that_a_protein() -> None:
    properties = _named(rank({"mrna"}, "isoelectric point"), "protein-properties")
    assert properties.inputs == {"protein": Source("protein", "translate")}
    assert properties.needs == ("orf-scan", "translate")
    assert "The protein for its protein is made by translate." in properties.reasons


def test_what_is_at_hand_is_not_made_again() -> None:
    properties = _named(rank({"mrna", "protein"}, ""), "protein-properties")
    assert properties.inputs == {"protein": Source("protein")}
    assert properties.needs == ()


def test_two_inputs_that_are_made_share_what_they_need() -> None:
    alignment = _named(rank({"mrna"}, ""), "pairwise-alignment")
    assert alignment.needs == ("orf-scan", "translate")


def test_a_coding_sequence_is_dna_too() -> None:
    profile = _named(rank({"cds"}, ""), "gc-profile")
    assert profile.inputs == {"sequence": Source("dna")}


def test_a_part_of_a_coding_sequence_does_not_become_whole() -> None:
    reasons = {each.card.id: each.reason for each in left_out({"coding", "msa"})}
    assert set(reasons) == {"domain-search", "exon-structure", "literature-cooccurrence", "variant-effect"}
    assert reasons["variant-effect"] == "There is nothing for its cds, data of kind cds."


def test_a_part_of_a_coding_sequence_beside_an_mrna_hides_nothing() -> None:
    assert _named(rank({"coding", "mrna"}, ""), "variant-effect").needs == ("orf-scan",)


def test_a_method_with_two_inputs_needs_both() -> None:
    assert "domain-search" in {each.card.id for each in left_out({"protein"})}
    assert "domain-search" in {each.card.id for each in left_out({"hmm"})}
    assert _named(rank({"protein", "hmm"}, "kinase domain"), "domain-search").inputs == {
        "protein": Source("protein"),
        "hmm": Source("hmm"),
    }


def test_parameters_that_only_a_person_can_give_are_named() -> None:
    ranked = rank({"cds", "bibliography"}, "")
    assert _named(ranked, "literature-cooccurrence").params_needed == ("terms",)
    assert _named(ranked, "variant-effect").params_needed == ("variants",)
    assert _named(rank({"cds", "variants"}, ""), "variant-effect").params_needed == ()
    assert _named(ranked, "gc-profile").params_needed == ()


def test_a_reason_says_how_relevant_it_is() -> None:
    first = rank(EVERYTHING, "kinase domain")[0]
    assert first.reasons[0] == f"Its description fits the objective (relevance {first.score:.2f})."
    assert first.reasons[-1] == first.card.when_to_use


def test_the_same_question_has_the_same_answer() -> None:
    objective = "primers, guides and conserved domains for a variant"
    answers = {tuple((each.card.id, each.score) for each in rank(EVERYTHING, objective)) for _ in range(5)}
    assert len(answers) == 1


@pytest.mark.parametrize("kinds", [(), ("variants",), ("hmm",)])
def test_where_nothing_fits_planning_does_not_start(kinds: tuple[str, ...]) -> None:
    with pytest.raises(NoMethodError, match=r"No method fits the data at hand \(.+\)\. Give a sequence"):
        rank(kinds, "anything")


def test_a_kind_that_no_method_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="No method takes data of kind spectrum"):
        rank({"spectrum"}, "anything")


@pytest.mark.parametrize(
    "objective", ['"', "NEAR(a b)", "a AND", "*", "title:x", "' OR 1=1 --", "\x00", "^a"]
)
def test_an_objective_is_never_read_as_a_query(objective: str) -> None:
    assert len(rank(EVERYTHING, objective)) == 15


def test_a_reference_leads_to_the_methods_that_cite_it() -> None:
    with closing(KnowledgeBase(load_cards())) as base:
        assert base.citing("doi:10.1371/journal.pcbi.1002195") == ("domain-search",)
        assert base.citing("doi:10.1000/none") == ()
