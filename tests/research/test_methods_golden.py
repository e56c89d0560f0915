"""Each method against another program or a publication, on shipped data.

EMBOSS is 6.6.0 and HMMER 3.3.2 (both from Debian), Primer3 that of primer3-py 2.4.0, scikit-bio 0.7.4. None
but HMMER, whose code PyHMMER holds, shares code with what is tested.
"""

import json

import pytest

from tests.research.methods_at_hand import cds_of, fasta, run

EGFR = "EGFR.NM_005228.3.fna"
KRAS = "KRAS.NM_004985.5.fna"
BRAF = "BRAF.NM_004333.6.fna"
BRCA2 = "BRCA2.NM_000059.3.fna"


def test_orf_scan_finds_what_getorf_finds_in_egfr() -> None:
    # EMBOSS: getorf -find 1 -minsize 300, which ends before the stop codon; lower position first here.
    orfs = run("orf-scan", sequence=EGFR).of("orfs.json")["orfs"]
    without_stop = {
        (orf["strand"], orf["start"], orf["end"] - 3)
        if orf["strand"] == "+"
        else (orf["strand"], orf["start"] + 3 * orf["complete"], orf["end"])
        for orf in orfs
    }
    assert without_stop == {
        ("+", 247, 3876),
        ("-", 2908, 3210),
        ("-", 2488, 2856),
        ("-", 1639, 2109),
        ("-", 621, 1049),
        ("-", 1, 387),
    }


def test_orf_scan_finds_what_getorf_finds_in_kras() -> None:
    # EMBOSS: getorf -find 1 -minsize 300.
    longest = run("orf-scan", sequence=KRAS).of("orfs.json")["longest"]
    assert (longest["start"], longest["end"] - 3, longest["length_aa"]) == (191, 754, 188)


def test_gc_profile_counts_as_infoseq_and_compseq_do() -> None:
    # EMBOSS: infoseq -pgc, compseq -word 1 and -word 2.
    profile = run("gc-profile", sequence=EGFR).of("gc-profile.json")
    assert profile["gc"] == 0.5126
    assert profile["counts"] == {"A": 1493, "C": 1516, "G": 1363, "T": 1244, "other": 0}
    assert profile["cpg"]["observed"] == 195


def test_codon_usage_is_that_of_cusp() -> None:
    # EMBOSS: cusp on bases 247 to 3879.
    usage = run("codon-usage", sequence=cds_of(EGFR)).of("codon-usage.json")
    rows = {row["codon"]: (row["fraction"], row["per_thousand"], row["count"]) for row in usage["usage"]}
    assert [usage[name] for name in ("gc", "gc1", "gc2", "gc3")] == [0.5398, 0.5310, 0.4244, 0.6639]
    assert rows["GCC"] == (0.444, 26.424, 32)
    assert rows["TGC"] == (0.733, 36.334, 44)
    assert rows["ATA"] == (0.203, 11.561, 14)
    assert rows["AAA"][1:] == (24.773, 30)


def test_restriction_map_cuts_where_fuzznuc_finds_the_sites() -> None:
    # EMBOSS: fuzznuc -pattern GAATTC / AAGCTT / CTGCAG, and the cuts G^AATTC, A^AGCTT and CTGCA^G.
    enzymes = {
        enzyme["name"]: enzyme["cuts"]
        for enzyme in run("restriction-map", sequence=EGFR).of("restriction-map.json")["enzymes"]
    }
    assert enzymes["EcoRI"] == [539, 2377, 3145, 4517, 5160]
    assert enzymes["HindIII"] == [4265, 4983]
    assert enzymes["PstI"] == [556 + 4, 956 + 4, 2293 + 4, 3638 + 4]


def test_translate_gives_the_protein_with_the_checksum_of_uniprot() -> None:
    # UniProt P00533, line SQ: 1210 AA; D8A2A50B4EFB6ED2 CRC64.
    made = run("translate", sequence=cds_of(EGFR)).of("translation.json")["protein"]
    assert (made["length"], made["crc64"]) == (1210, "D8A2A50B4EFB6ED2")
    assert made["starts_with_met"]
    assert made["ends_at_stop"]


def test_protein_properties_of_p53_are_those_of_other_programs() -> None:
    # EMBOSS pepstats: 43653.18 Da, 35410 reduced and 36035 with cystines. peptides 0.5.0 (after Peptides of
    # R): hydropathy -0.7562, instability 73.5931. pI: 6.33, as ProtParam of ExPASy gives it for P04637.
    properties = run("protein-properties", protein="TP53.P04637.faa").of("protein-properties.json")
    assert properties["molecular_weight"] == pytest.approx(43653.18, abs=1.0)
    assert properties["extinction"] == {"reduced": 35410, "cystines": 36035}
    assert properties["gravy"] == -0.756
    assert properties["instability_index"] == 73.59
    assert properties["isoelectric_point"] == 6.33


def test_global_alignment_of_proteins_is_that_of_needle() -> None:
    # EMBOSS: needle -gapopen 10 -gapextend 0.5 (EBLOSUM62): score 30.0, identity 42/1423, gaps 1243.
    made = run("pairwise-alignment", first="EGFR.P00533.faa", second="TP53.P04637.faa").of("alignment.json")
    assert [made[name] for name in ("score", "identical", "columns", "gaps")] == [30.0, 42, 1423, 1243]


def test_local_alignment_of_proteins_is_that_of_water() -> None:
    # EMBOSS: water -gapopen 10 -gapextend 0.5 (EBLOSUM62): score 46.5.
    made = run("pairwise-alignment", {"mode": "local"}, first="EGFR.P00533.faa", second="TP53.P04637.faa").of(
        "alignment.json"
    )
    assert made["score"] == 46.5


def test_conservation_is_that_of_scikit_bio() -> None:
    # scikit-bio: 2 × TabularMSA.conservation("inverse_shannon_uncertainty", gap_mode="ignore"), with the
    # ambiguous letters as gaps: mean 1.434805, and 2.0, 1.619053 and 1.450089 in columns 1, 100 and 1504.
    made = run("msa-conservation", alignment="brca1_exon11_55mammals.fasta").of("conservation.json")
    assert (made["rows"], made["columns"], made["mean_bits"]) == (55, 3009, 1.4348)
    assert [made["bits"][at] for at in (0, 99, 1503)] == [2.0, 1.619, 1.45]


def test_domain_search_finds_what_hmmsearch_finds() -> None:
    # HMMER: hmmsearch: 8.4e-46, 142.5 bits; 1-254 of the model at 712-964, envelope 712-968.
    made = run("domain-search", protein="EGFR.P00533.faa", hmm="Pkinase.PF00069.17.hmm").of("domains.json")
    (domain,) = made["domains"]
    assert (made["evalue"], made["score"]) == ("8.4e-46", 142.5)
    assert (domain["start"], domain["end"]) == (712, 968)
    assert (domain["aligned_start"], domain["aligned_end"]) == (712, 964)
    assert (domain["model_start"], domain["model_end"], domain["i_evalue"]) == (1, 254, "1.2e-45")


def test_primers_melt_where_primer3_says() -> None:
    # primer3-py: calc_tm(mv_conc=50, dv_conc=1.5, dntp_conc=0.6, dna_conc=50, both methods "santalucia").
    pair = run("primer-design", sequence=EGFR).of("primers.json")["pairs"][0]
    melting = {pair[side]["sequence"]: pair[side]["tm"] for side in ("forward", "reverse")}
    assert melting == {
        "CCACAACAGGGCATTTTACAGG": pytest.approx(60.03, abs=0.1),
        "AAAAGGTGGGCTCCTAACTAGC": pytest.approx(60.03, abs=0.1),
    }


# Named in the literature and in ClinVar by these protein changes.
PUBLISHED = [
    (KRAS, "c.35G>A", "p.Gly12Asp", "missense_variant"),
    (KRAS, "c.34G>T", "p.Gly12Cys", "missense_variant"),
    (BRAF, "c.1799T>A", "p.Val600Glu", "missense_variant"),
    (BRAF, "c.1798_1799delinsAA", "p.Val600Lys", "missense_variant"),
    (EGFR, "c.2573T>G", "p.Leu858Arg", "missense_variant"),
    (EGFR, "c.2369C>T", "p.Thr790Met", "missense_variant"),
    (EGFR, "c.2235_2249del", "p.Glu746_Ala750del", "inframe_deletion"),
    (BRCA2, "c.5946del", "p.Ser1982ArgfsTer22", "frameshift_variant"),
    (BRCA2, "c.9976A>T", "p.Lys3326Ter", "stop_gained"),
]


@pytest.mark.parametrize(("gene", "variant", "protein", "consequence"), PUBLISHED)
def test_variants_have_the_effects_that_are_published(
    gene: str, variant: str, protein: str, consequence: str
) -> None:
    made = run("variant-effect", {"variants": [variant]}, cds=cds_of(gene)).of("variant-effects.json")
    assert (made["variants"][0]["protein"], made["variants"][0]["consequence"]) == (protein, consequence)


def test_guides_stand_where_fuzznuc_finds_the_pam() -> None:
    # EMBOSS: fuzznuc -pattern 'N(21)GG' -complement on VHL: 302 on "+", 270 on "-"; the first starts at 5.
    made = run("crispr-guide-scan", {"gc_min": 0, "gc_max": 100}, sequence="VHL.NM_000551.3.fna")
    guides = made.of("guides.json")["guides"]
    forward = [guide["start"] for guide in guides if guide["strand"] == "+"]
    assert (len(forward), len(guides) - len(forward)) == (302, 270)
    assert forward[:3] == [5, 11, 14]


def test_motif_scan_finds_what_fuzzpro_finds() -> None:
    # EMBOSS: fuzzpro -pattern 'N-{P}-[ST]-{P}' (PROSITE PS00001, N-glycosylation) on P00533.
    hits = run("motif-scan", sequence="EGFR.P00533.faa").of("motifs.json")["hits"]
    assert [hit["start"] for hit in hits] == [
        128, 175, 196, 352, 361, 413, 444, 528, 568, 603, 623, 1043, 1044, 1094, 1148,
    ]  # fmt: skip


def test_exon_structure_of_beta_globin_is_the_published_one() -> None:
    # HBB, GRCh38: introns of 130 and 850 bases (Lawn, Efstratiadis, O'Connell, Maniatis, 1980), an mRNA of
    # 628, and 147 codons with the stop makes 444. The shipped table of MANE has the same ends.
    given = {
        "transcript": "NM_000518.5",
        "chromosome": "NC_000011.10",
        "strand": "-",
        "exons": [
            {"start": 5225464, "end": 5225726},
            {"start": 5226577, "end": 5226799},
            {"start": 5226930, "end": 5227071},
        ],
        "cds": {"start": 5225598, "end": 5227021},
    }
    made = run("exon-structure", exons=json.dumps(given).encode()).of("exon-map.json")
    mane = run("exon-structure", {"symbol": "HBB"}, exons="mane_v1.5_subset.tsv").of("exon-map.json")
    assert [intron["length"] for intron in made["introns"]] == [130, 850]
    assert (made["transcript_length"], made["coding_length"]) == (628, 444)
    assert [mane[name] for name in ("transcript", "start", "end", "strand", "span")] == [
        made[name] for name in ("transcript", "start", "end", "strand", "span")
    ]


def test_cooccurrence_is_what_counting_by_hand_gives() -> None:
    # Two titles; "BRCA1" is in both, the others in one: PMI log2(2 × 1 / (2 × 1)) = 0, Jaccard 1/2.
    titles = {
        "PMID:7545954": "A strong candidate for the breast and ovarian cancer susceptibility gene BRCA1",
        "PMID:30209399": "Accurate classification of BRCA1 variants with saturation genome editing",
    }
    bibliography = {"records": [{"id": name, "title": title} for name, title in titles.items()]}
    terms = ["BRCA1", "ovarian cancer", "genome-editing"]
    made = run("literature-cooccurrence", {"terms": terms}, bibliography=json.dumps(bibliography).encode())
    assert [(pair["terms"], pair["count"], pair["jaccard"], pair["pmi"]) for pair in made.of(
        "cooccurrence.json"
    )["pairs"]] == [
        (["BRCA1", "ovarian cancer"], 1, 0.5, 0.0),
        (["BRCA1", "genome-editing"], 1, 0.5, 0.0),
        (["ovarian cancer", "genome-editing"], 0, 0.0, None),
    ]  # fmt: skip


def test_a_rare_pair_has_a_high_pmi() -> None:
    # Eight records, two terms that only stand together, once each: log2(8 × 1 / (1 × 1)) = 3.
    records = [{"id": str(number), "title": "nothing"} for number in range(7)]
    records.append({"id": "7", "title": "alpha and beta"})
    made = run(
        "literature-cooccurrence",
        {"terms": ["alpha", "beta"]},
        bibliography=json.dumps({"records": records}).encode(),
    )
    assert made.of("cooccurrence.json")["pairs"][0]["pmi"] == 3.0


def test_a_short_sequence_gives_the_one_cut() -> None:
    made = run("restriction-map", {"enzymes": ["EcoRI"], "circular": False}, sequence=fasta("AAGAATTCAA"))
    (enzyme,) = made.of("restriction-map.json")["enzymes"]
    assert (enzyme["cuts"], enzyme["fragments"]) == ([3], [7, 3])
