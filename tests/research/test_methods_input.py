"""What is wrong with an input or a parameter is said in one sentence, before anything is computed."""

import json

import pytest

from clearance.apps.research.methods.sequences import MOST_LETTERS
from clearance.errors import InvalidInputError
from tests.research.methods_at_hand import SHIPPED, cds_of, fasta, run

P53 = (SHIPPED / "TP53.P04637.faa").read_bytes()
KRAS = (SHIPPED / "KRAS.NM_004985.5.fna").read_bytes()
HMM = (SHIPPED / "Pkinase.PF00069.17.hmm").read_bytes()

NOTHING = b'{"records": []}'

DNA_INPUTS = [
    ("orf-scan", "sequence"),
    ("gc-profile", "sequence"),
    ("codon-usage", "sequence"),
    ("restriction-map", "sequence"),
    ("translate", "sequence"),
    ("primer-design", "sequence"),
    ("variant-effect", "cds"),
    ("crispr-guide-scan", "sequence"),
]
PROTEIN_INPUTS = [
    ("protein-properties", "protein"),
    ("domain-search", "protein"),
    ("motif-scan", "sequence"),
    ("pairwise-alignment", "first"),
]

BAD_FILES = [
    pytest.param(b"", "the file is empty", id="empty"),
    pytest.param(b" \n\n", "the file is empty", id="blank"),
    pytest.param(b"ACGT", "the first line must be a title", id="no title"),
    pytest.param(b">one\n", "a sequence has no letters", id="no letters"),
    pytest.param(b">\nACGT\n", "a sequence has no name", id="no name"),
    pytest.param(b">one\nACGT\n>two\nACGT\n", "the file has 2 sequences", id="two sequences"),
    pytest.param(b">one\nACGT\n>one\nACGT\n", "two sequences have the same name", id="one name twice"),
    pytest.param(b">one\n\xff\xfe\n", "the file is not text", id="no text"),
    pytest.param(fasta("A" * (MOST_LETTERS + 1)), "more than 1,000,000 letters", id="too long"),
]


def _inputs(method: str, name: str, data: bytes) -> dict[str, bytes]:
    """Return the inputs of a method, one of them as given."""
    others = {"domain-search": {"hmm": HMM}, "pairwise-alignment": {"second": P53}}
    return {**others.get(method, {}), name: data}


@pytest.mark.parametrize(("data", "message"), BAD_FILES)
@pytest.mark.parametrize(("method", "name"), [*DNA_INPUTS, *PROTEIN_INPUTS])
def test_a_file_without_one_named_sequence_is_refused(
    method: str, name: str, data: bytes, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{name}: {message}"):
        run(method, {}, **_inputs(method, name, data))


@pytest.mark.parametrize(("method", "name"), DNA_INPUTS)
def test_a_protein_given_as_dna_is_refused(method: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"this is a protein sequence \(letter E at 2\)"):
        run(method, {}, **_inputs(method, name, P53))


@pytest.mark.parametrize(("method", "name"), DNA_INPUTS)
def test_letters_outside_the_code_are_refused_with_their_place(method: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match="'7' at position 4 is not a nucleotide code of IUPAC"):
        run(method, {}, **_inputs(method, name, fasta("ATG7CC")))


@pytest.mark.parametrize(("method", "name"), PROTEIN_INPUTS)
def test_dna_given_as_a_protein_is_refused(method: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match="this is a nucleotide sequence; translate it first"):
        run(method, {}, **_inputs(method, name, KRAS))


BAD_SEQUENCES = [
    ("codon-usage", {}, {"sequence": fasta("ATGA")}, "is not a multiple of 3"),
    ("codon-usage", {}, {"sequence": fasta("ATGTAAATG")}, "codon 2 is a stop inside"),
    ("codon-usage", {}, {"sequence": fasta("NNNNNN")}, "no codon without ambiguous bases"),
    ("translate", {}, {"sequence": fasta("TAAATG")}, "starts with a stop codon"),
    ("translate", {"frame": 3}, {"sequence": fasta("ATGC")}, "nothing can be translated"),
    ("variant-effect", {"variants": ["c.1A>G"]}, {"cds": fasta("GCCTAA")}, "a part of a coding sequence"),
    ("variant-effect", {"variants": ["c.1A>G"]}, {"cds": fasta("ATGNNNTAA")}, "letters other than A, C, G"),
    ("protein-properties", {}, {"protein": fasta("MKXB")}, "B, X have no certain mass"),
    ("protein-properties", {}, {"protein": fasta("MK*LV")}, "'\\*' at position 3"),
    ("protein-properties", {}, {"protein": fasta("*")}, "no letters but a stop"),
    ("pairwise-alignment", {}, {"first": fasta("MKU"), "second": P53}, "no score for U"),
    ("domain-search", {}, {"protein": P53, "hmm": b""}, "this is no profile HMM"),
    ("domain-search", {}, {"protein": P53, "hmm": b"no model\n"}, "this is no profile HMM"),
    ("domain-search", {}, {"protein": P53, "hmm": HMM + HMM}, "the file has 2 models"),
    ("msa-conservation", {}, {"alignment": fasta("ACGT")}, "at least two rows"),
    ("msa-conservation", {}, {"alignment": b">a\nACG\n>b\nAC\n"}, "different lengths"),
    ("msa-conservation", {}, {"alignment": b">a\nA1\n>b\nAC\n"}, "no code of IUPAC"),
    ("msa-conservation", {}, {"alignment": b">a\n--\n>b\n--\n"}, "no column has a residue"),
    ("msa-conservation", {"reference": "c"}, {"alignment": b">a\nAC\n>b\nAC\n"}, "no row of that name"),
    ("primer-design", {}, {"sequence": fasta("ACGT" * 20)}, "fewer than product_min"),
    ("exon-structure", {}, {"exons": b"{}"}, "this is no transcript"),
    ("exon-structure", {}, {"exons": b""}, "neither a transcript in JSON nor a table"),
    ("exon-structure", {}, {"exons": b">one\nACGT\n"}, "neither a transcript in JSON nor a table"),
    ("literature-cooccurrence", {"terms": ["a b", "cd"]}, {"bibliography": b"[]"}, "no list of records"),
    ("literature-cooccurrence", {"terms": ["ab", "cd"]}, {"bibliography": b"ab"}, "no list of records"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "params", "inputs", "message"), BAD_SEQUENCES)
def test_an_input_that_the_method_cannot_use_is_refused(
    method: str, params: dict[str, object], inputs: dict[str, bytes], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(method, params, **inputs)


BAD_PARAMS = [
    ("orf-scan", {"min_aa": 5}, "/min_aa: must be at least 10"),
    ("orf-scan", {"min_aa": "100"}, "/min_aa: must be integer"),
    ("orf-scan", {"strand": "-"}, "/strand: must be one of both or"),
    ("gc-profile", {"windows": 10}, "/windows: is not known"),
    ("gc-profile", {"window": 10.5}, "/window: must be integer"),
    ("codon-usage", {"count_stop": 1}, "/count_stop: must be boolean"),
    ("restriction-map", {"enzymes": []}, "/enzymes: must have at least 1"),
    ("restriction-map", {"enzymes": ["EcoRI", "EcoRI"]}, "/enzymes: must not repeat"),
    ("translate", {"frame": 0}, "/frame: must be at least 1"),
    ("protein-properties", {"window": 4}, "/window: must be one of"),
    ("pairwise-alignment", {"matrix": "BLOSUM61"}, "/matrix: must be one of"),
    ("pairwise-alignment", {"gap_open": "-1"}, "/gap_open: must match"),
    ("msa-conservation", {"window": 0}, "/window: must be at least 1"),
    ("domain-search", {"max_evalue": "1e5"}, "/max_evalue: must match"),
    ("primer-design", {"pairs": 0}, "/pairs: must be at least 1"),
    ("variant-effect", {"variants": "c.1A>G"}, "/variants: must be array"),
    ("crispr-guide-scan", {"gc_min": 101}, "/gc_min: must be at most 100"),
    ("motif-scan", {"pattern": ""}, "/pattern: must have at least 2"),
    ("exon-structure", {"symbol": "BRCA1;"}, "/symbol: must match"),
    ("literature-cooccurrence", {}, "/terms: is missing"),
    ("literature-cooccurrence", {"terms": ["one"]}, "/terms: must have at least 2"),
]


@pytest.mark.parametrize(("method", "params", "message"), BAD_PARAMS)
def test_parameters_that_break_the_cards_schema_are_refused(
    method: str, params: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"The parameters do not fit {method}. {message}"):
        run(method, params)


BAD_MEANINGS = [
    ("restriction-map", {"enzymes": ["EcoRX"]}, {"sequence": KRAS}, "no enzyme EcoRX"),
    ("primer-design", {"tm_min": 65, "tm_max": 60}, {"sequence": KRAS}, "tm_min: it must not be more than"),
    ("primer-design", {"target_start": 5}, {"sequence": KRAS}, "give both or none"),
    ("primer-design", {"target_start": 9, "target_end": 99999}, {"sequence": KRAS}, "1 to 5306"),
    ("motif-scan", {"pattern": "N-(P"}, {"sequence": P53}, "pattern: it cannot be read"),
    ("motif-scan", {"pattern": "N--P"}, {"sequence": P53}, "pattern: it cannot be read"),
    ("motif-scan", {"pattern": "[NB]-P"}, {"sequence": P53}, "B stands for nothing"),
    ("motif-scan", {"pattern": "N-x(4,2)"}, {"sequence": P53}, "must have n up to m"),
    ("motif-scan", {"pattern": "x(1,9)-" * 4 + "A"}, {"sequence": P53}, "at most 3 may"),
    ("motif-scan", {"alphabet": "dna", "pattern": "GAXTTC"}, {"sequence": KRAS}, "X stands for nothing"),
    ("motif-scan", {"alphabet": "dna", "pattern": "A-{N}"}, {"sequence": KRAS}, "excludes every letter"),
    ("exon-structure", {}, {"exons": "mane_v1.5_subset.tsv"}, "symbol: name the gene"),
    ("exon-structure", {"symbol": "NONE1"}, {"exons": "mane_v1.5_subset.tsv"}, "has no gene NONE1"),
    ("literature-cooccurrence", {"terms": ["a-b", "A b"]}, {"bibliography": NOTHING}, "same words"),
    ("literature-cooccurrence", {"terms": ["--", "ab"]}, {"bibliography": NOTHING}, "no word"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "params", "inputs", "message"), BAD_MEANINGS)
def test_parameters_that_mean_nothing_are_refused(
    method: str, params: dict[str, object], inputs: dict[str, bytes | str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(method, params, **inputs)


BAD_EXONS = [
    ({"strand": "1"}, "give the strand as"),
    ({"exons": []}, "at least one exon"),
    ({"exons": [{"start": 20, "end": 10}]}, "no transcript"),
    ({"exons": [{"start": "1", "end": 10}]}, "no transcript"),
    ({"exons": [{"start": 1, "end": 10}, {"start": 5, "end": 20}]}, "overlap"),
    ({"cds": {"start": 5, "end": 50}}, "start and end within exons"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD_EXONS)
def test_exons_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    good = {"transcript": "T", "chromosome": "1", "strand": "+", "exons": [{"start": 1, "end": 10}]}
    with pytest.raises(InvalidInputError, match=message):
        run("exon-structure", exons=json.dumps(good | wrong).encode())


BAD_VARIANTS = [
    ("c.68+1G>A", "is not in the subset"),
    ("c.-5G>A", "is not in the subset"),
    ("c.*5G>A", "is not in the subset"),
    ("p.Gly12Asp", "is not in the subset"),
    ("g.35G>A", "is not in the subset"),
    ("c.35G>U", "is not in the subset"),
    ("c.35_36inv", "is not in the subset"),
    ("", "/variants/0: must have at least 5"),
    ("c.0A>G", "positions count from 1"),
    ("c.36_35del", "positions count from 1 and go upwards"),
    ("c.35G>G", "changes one base into another"),
    ("c.35_36G>A", "changes one base into another"),
    ("c.35_37insA", "stands between two neighbours"),
    ("c.35_36ins", "must name the inserted bases"),
    ("c.35delins", "must name the inserted bases"),
    ("c.35_36delA", "not as many as its positions"),
    ("c.35A>G", "states 'A', but the sequence has 'G' there"),
    ("c.35_36delAA", "states 'AA', but the sequence has 'GT' there"),
    ("c.99999A>G", "behind the last base of the coding sequence, 567"),
]


@pytest.mark.parametrize(("variant", "message"), BAD_VARIANTS)
def test_a_variant_that_cannot_be_is_refused(variant: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run("variant-effect", {"variants": [variant]}, cds=cds_of("KRAS.NM_004985.5.fna"))


@pytest.mark.parametrize("given", [b'{"variants": "c.1A>G"}', b'{"variants": [1]}', b"{}", b"{"])
def test_a_file_that_is_no_list_of_variants_is_refused(given: bytes) -> None:
    with pytest.raises(InvalidInputError, match="give JSON"):
        run("variant-effect", cds=fasta("ATGTAA"), variants=given)


def test_without_any_variant_there_is_nothing_to_do() -> None:
    with pytest.raises(InvalidInputError, match="give 1 to 1000 variants"):
        run("variant-effect", cds=fasta("ATGTAA"))
