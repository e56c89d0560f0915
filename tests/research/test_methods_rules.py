"""What holds for every sequence, variant and motif, and the cases that no gene at hand has."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.apps.research.methods import hgvs
from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.sequences import read_fasta, reverse_complement
from tests.research.methods_at_hand import SHIPPED, cds_of, fasta, run

dna = st.text("ACGT", min_size=1, max_size=300)
# Codons without a stop, so that a coding sequence can be made of any of them.
codons = st.lists(
    st.sampled_from([a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]).filter(
        lambda codon: translate(codon) != "*"
    ),
    min_size=1,
    max_size=30,
)
cds = codons.map(lambda middle: "ATG" + "".join(middle) + "TAA")


def _effects(letters: str, *variants: str) -> list[dict[str, Any]]:
    made = run("variant-effect", {"variants": list(variants)}, cds=fasta(letters))
    effects: list[dict[str, Any]] = made.of("variant-effects.json")["variants"]
    return effects


@given(st.text("ACGTRYSWKMBDHVN", max_size=100))
def test_the_other_strand_of_the_other_strand_is_the_sequence(letters: str) -> None:
    assert reverse_complement(reverse_complement(letters)) == letters


@given(dna, st.integers(1, 80))
def test_fasta_reads_the_same_however_it_is_broken_into_lines(letters: str, width: int) -> None:
    lines = "\r\n".join(letters[at : at + width].lower() for at in range(0, len(letters), width))
    (record,) = read_fasta(f">one two three\r\n{lines}\r\n".encode(), name="it")
    assert (record.id, record.title, record.letters) == ("one", "two three", letters)


@given(dna)
def test_every_frame_found_starts_with_met_and_has_no_stop_inside(letters: str) -> None:
    for orf in run("orf-scan", {"min_aa": 10}, sequence=fasta(letters)).of("orfs.json")["orfs"]:
        cut = letters[orf["start"] - 1 : orf["end"]]
        protein = translate(cut if orf["strand"] == "+" else reverse_complement(cut))
        assert protein.startswith("M")
        assert len(protein.removesuffix("*")) == orf["length_aa"]
        assert protein.endswith("*") == orf["complete"]
        assert "*" not in protein[:-1]


@given(dna)
def test_both_strands_have_the_same_frames_when_they_change_places(letters: str) -> None:
    there, back = (
        sorted(
            orf["length_aa"]
            for orf in run("orf-scan", {"min_aa": 10}, sequence=fasta(each)).of("orfs.json")["orfs"]
        )
        for each in (letters, reverse_complement(letters))
    )
    assert there == back


@given(cds)
def test_the_fragments_of_a_digest_are_as_long_as_the_sequence(letters: str) -> None:
    for circular in (False, True):
        params = {"enzymes": ["AluI", "HaeIII", "MseI"], "circular": circular}
        made = run("restriction-map", params, sequence=fasta(letters)).of("restriction-map.json")
        assert all(sum(enzyme["fragments"]) == len(letters) for enzyme in made["enzymes"])


@given(cds, st.data())
def test_the_3_prime_form_of_a_variant_is_the_same_variant(letters: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(1, len(letters) - 1))
    end = data.draw(st.integers(start, min(len(letters), start + 6)))
    bases = data.draw(st.text("ACGT", min_size=1, max_size=6))
    for change in (
        hgvs.Change(hgvs.Kind.DELETION, start, end),
        hgvs.Change(hgvs.Kind.DUPLICATION, start, end),
        hgvs.Change(hgvs.Kind.INSERTION, start, start + 1, "", bases),
        hgvs.Change(hgvs.Kind.DELETION_INSERTION, start, end, "", bases),
    ):
        normal = hgvs.normalized(change, letters)
        assert hgvs.apply(normal, letters) == hgvs.apply(change, letters)
        assert hgvs.normalized(normal, letters) == normal
        assert hgvs.parse(str(normal)) == normal


@given(cds, st.data())
def test_a_variant_has_an_effect_of_the_length_that_its_sequence_has(
    letters: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(4, len(letters) - 1))
    end = data.draw(st.integers(start, min(len(letters), start + 6)))
    bases = data.draw(st.text("ACGT", min_size=1, max_size=7))
    for change in (
        hgvs.Change(hgvs.Kind.DELETION, start, end),
        hgvs.Change(hgvs.Kind.DUPLICATION, start, end),
        hgvs.Change(hgvs.Kind.INSERTION, start, start + 1, "", bases),
        hgvs.Change(hgvs.Kind.DELETION_INSERTION, start, end, "", bases),
    ):
        (effect,) = _effects(letters, str(change))
        protein, stop, _ = translate(hgvs.apply(change, letters)).partition("*")
        assert effect["length_aa"] == (len(protein) if stop else None)
        assert (effect["consequence"] == "synonymous_variant") == (protein + stop == translate(letters))


# ATG GCC AAA AAA CTG TGT GAT TAA: M A K K L C D *
SMALL = "ATGGCCAAAAAACTGTGTGATTAA"
SMALL_CASES = [
    ("c.6C>T", "p.Ala2=", "synonymous_variant", "c.6C>T"),
    ("c.18T>A", "p.Cys6Ter", "stop_gained", "c.18T>A"),
    ("c.22T>C", "p.Ter8GlnextTer?", "stop_lost", "c.22T>C"),
    ("c.2T>C", "p.Met1?", "start_lost", "c.2T>C"),
    ("c.7_9del", "p.Lys4del", "inframe_deletion", "c.10_12del"),
    ("c.7_12del", "p.Lys3_Lys4del", "inframe_deletion", "c.7_12del"),
    ("c.19_21del", "p.Asp7del", "inframe_deletion", "c.19_21del"),
    ("c.4_6dup", "p.Ala2dup", "inframe_insertion", "c.4_6dup"),
    ("c.4_9dup", "p.Ala2_Lys3dup", "inframe_insertion", "c.4_9dup"),
    ("c.6_7insGCC", "p.Ala2dup", "inframe_insertion", "c.4_6dup"),
    ("c.6_7insTGG", "p.Ala2_Lys3insTrp", "inframe_insertion", "c.6_7insTGG"),
    ("c.6_7insTGA", "p.Lys3Ter", "stop_gained", "c.6_7insTGA"),
    ("c.6_7insTGGTAA", "p.Ala2_Lys3insTrpTer", "stop_gained", "c.6_7insTGGTAA"),
    ("c.13_15delinsTGG", "p.Leu5Trp", "missense_variant", "c.13_15delinsTGG"),
    ("c.13_18delinsTGGTGG", "p.Leu5_Cys6delinsTrpTrp", "protein_altering_variant", "c.13_18delinsTGGTGG"),
    ("c.13_18delinsTGG", "p.Leu5_Cys6delinsTrp", "protein_altering_variant", "c.13_18delinsTGG"),
    ("c.13_18delCTGTGTinsTGG", "p.Leu5_Cys6delinsTrp", "protein_altering_variant", "c.13_18delinsTGG"),
    ("c.4del", "p.Ala2ProfsTer?", "frameshift_variant", "c.4del"),
    ("c.7dup", "p.Leu5ThrfsTer3", "frameshift_variant", "c.12dup"),
    ("c.16_17insAA", "p.Cys6Ter", "stop_gained", "c.16_17insAA"),
    ("c.22_24dup", "p.=", "synonymous_variant", "c.22_24dup"),
    ("c.24dup", "p.=", "synonymous_variant", "c.24dup"),
    ("c.23_24del", "p.Ter8extTer?", "stop_lost", "c.23_24del"),
    ("c.19_23del", "p.Asp7fsTer?", "frameshift_variant", "c.19_23del"),
    ("c.19_24del", "p.?", "stop_lost", "c.19_24del"),
    ("c.6_7insATG", "p.Ala2_Lys3insMet", "inframe_insertion", "c.7_8insTGA"),
]  # fmt: skip


@pytest.mark.parametrize(("variant", "protein", "consequence", "normalized"), SMALL_CASES)
def test_each_kind_of_variant_is_named_as_hgvs_names_it(
    variant: str, protein: str, consequence: str, normalized: str
) -> None:
    (effect,) = _effects(SMALL, variant)
    assert (effect["protein"], effect["consequence"], effect["normalized"]) == (
        protein,
        consequence,
        normalized,
    )


def test_a_lost_stop_by_a_frameshift_is_an_extension() -> None:
    (effect,) = _effects("ATGGCCTAA", "c.7del")
    assert (effect["protein"], effect["consequence"]) == ("p.Ter3extTer?", "stop_lost")


def test_variants_come_from_the_file_and_from_the_parameter() -> None:
    made = run(
        "variant-effect",
        {"variants": ["NM_004985.5:c.35G>A"]},
        cds=cds_of("KRAS.NM_004985.5.fna"),
        variants=b"c.34G>T\nc.34G>C\n",
    )
    effects = made.of("variant-effects.json")["variants"]
    assert [effect["protein"] for effect in effects] == ["p.Gly12Cys", "p.Gly12Arg", "p.Gly12Asp"]


@pytest.mark.parametrize(
    ("pattern", "letters", "hits"),
    [
        ("GAATTC", "GAATTCGAATTC", [(1, 6, "+"), (1, 6, "-"), (7, 12, "+"), (7, 12, "-")]),
        ("AAA", "AAAA", [(1, 3, "+"), (2, 4, "+")]),
        ("TGASTCA", "ATGACTCAT", [(2, 8, "+"), (2, 8, "-")]),
        ("<A-C", "ACAC", [(1, 2, "+")]),
        ("A-C>", "ACAC", [(3, 4, "+")]),
        ("A-x(2,3)-T", "AGGTT", [(1, 5, "+"), (1, 4, "-"), (1, 5, "-")]),
        ("A-N-T", "AYT", []),
        ("A-x-T", "AYTC", [(1, 3, "+"), (1, 3, "-")]),
        ("C-{A}-C", "CACCC", [(3, 5, "+")]),
    ],
)
def test_a_motif_in_dna_is_found_on_both_strands(
    pattern: str, letters: str, hits: list[tuple[int, int, str]]
) -> None:
    made = run("motif-scan", {"alphabet": "dna", "pattern": pattern}, sequence=fasta(letters)).of(
        "motifs.json"
    )
    assert [(hit["start"], hit["end"], hit["strand"]) for hit in made["hits"]] == hits


@given(dna)
def test_a_guide_and_its_pam_stand_where_they_are_said_to(letters: str) -> None:
    made = run("crispr-guide-scan", {"gc_min": 0, "gc_max": 100}, sequence=fasta(letters))
    for guide in made.of("guides.json")["guides"]:
        start, end = guide["start"], guide["end"]
        if guide["strand"] == "+":
            assert letters[start - 1 : end + 3] == guide["protospacer"] + guide["pam"]
            assert guide["cut_after"] == end - 3
        else:
            there = reverse_complement(letters[start - 4 : end])
            assert there == guide["protospacer"] + guide["pam"]
            assert guide["cut_after"] == start + 2


def test_primers_stand_where_they_are_said_to_and_hold_the_target() -> None:
    params = {"target_start": 1000, "target_end": 1050}
    made = run("primer-design", params, sequence="EGFR.NM_005228.3.fna").of("primers.json")
    (record,) = read_fasta((SHIPPED / "EGFR.NM_005228.3.fna").read_bytes(), name="it")
    assert len(made["pairs"]) == 3
    for pair in made["pairs"]:
        forward, reverse = pair["forward"], pair["reverse"]
        assert record.letters[forward["start"] - 1 : forward["end"]] == forward["sequence"]
        there = record.letters[reverse["start"] - 1 : reverse["end"]]
        assert reverse_complement(there) == reverse["sequence"]
        assert forward["end"] < 1000 <= 1050 < reverse["start"]
        assert 150 <= pair["product"]["length"] <= 400


def test_a_sequence_without_primers_gives_none_and_says_so() -> None:
    made = run("primer-design", sequence=fasta("AT" * 200))
    assert made.of("primers.json")["pairs"] == []
    assert any("No pair fits" in warning for warning in made.produced.warnings)


def test_a_sequence_without_a_frame_gives_no_coding_sequence() -> None:
    made = run("orf-scan", sequence=fasta("ACGT" * 20))
    assert list(made.produced.files) == ["orfs.json"]


def test_a_local_alignment_that_finds_nothing_is_empty() -> None:
    made = run("pairwise-alignment", {"mode": "local"}, first=fasta("WWW"), second=fasta("PPP"))
    assert made.of("alignment.json")["rows"] == ["", "", ""]


def test_a_reference_row_gives_each_column_its_position() -> None:
    rows = b">a\nA-CG\n>b\nATCG\n"
    made = run("msa-conservation", {"reference": "a"}, alignment=rows).of("conservation.json")
    assert made["reference"] == {"id": "a", "positions": [1, None, 2, 3]}
    assert (made["consensus"], made["occupancy"]) == ("ATCG", [1.0, 0.5, 1.0, 1.0])


def test_a_term_does_not_reach_from_the_title_into_the_abstract() -> None:
    records = [{"id": "1", "title": "On breast", "abstract": "Cancer is not named."}]
    made = run(
        "literature-cooccurrence",
        {"terms": ["breast cancer", "breast"]},
        bibliography=json.dumps({"records": records}).encode(),
    )
    assert [term["count"] for term in made.of("cooccurrence.json")["terms"]] == [0, 1]


def test_no_literature_is_said() -> None:
    made = run("literature-cooccurrence", {"terms": ["one", "two"]}, bibliography=b'{"records": []}')
    assert made.produced.warnings == ("The bibliography is empty: nothing could be counted.",)
