"""What of each method's result stands in the report: which places of its file, and under which words.

The words have no digits: every digit of a report belongs to a fact.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from clearance.apps.research.report.facts import Way

MOST_ROWS = 12


@dataclass(frozen=True)
class Value:
    """Where one number is in a file, and what it is called; `pointer` is relative for a column of a list."""

    label: str
    pointer: str
    way: Way = Way.PLAIN


@dataclass(frozen=True)
class List:
    """A list in a file of which the first `most` items are shown; a `long` one is folded away on a screen."""

    title: str
    pointer: str
    columns: tuple[Value, ...]
    most: int = MOST_ROWS
    long: bool = False


@dataclass(frozen=True)
class Shown:
    """What is shown of a method's result file."""

    file: str
    values: tuple[Value, ...] = ()
    lists: tuple[List, ...] = ()


_START, _END, _STRAND = Value("Start", "start"), Value("End", "end"), Value("Strand", "strand")
_BASES = Value("Length, bases", "/sequence/length")
_RESIDUES = Value("Length, amino acids", "/sequence/length")

SHOWN: Mapping[str, Shown] = {
    "codon-usage": Shown(
        "codon-usage.json",
        (
            Value("Codons counted", "/codons"),
            Value("GC over all", "/gc", Way.PERCENT),
            Value("GC at the first place", "/gc1", Way.PERCENT),
            Value("GC at the second place", "/gc2", Way.PERCENT),
            Value("GC at the third place", "/gc3", Way.PERCENT),
            Value("Codons with ambiguous bases, left out", "/skipped"),
        ),
        (
            List(
                "Codons",
                "/usage",
                (
                    Value("Codon", "codon"),
                    Value("Amino acid", "amino_acid"),
                    Value("Count", "count"),
                    Value("Per thousand", "per_thousand"),
                    Value("Share of its amino acid", "fraction"),
                    Value("RSCU", "rscu"),
                ),
                most=64,
                long=True,
            ),
        ),
    ),
    "crispr-guide-scan": Shown(
        "guides.json",
        (_BASES, Value("Sites found", "/found"), Value("Guides within the GC limits", "/kept")),
        (
            List(
                "Guides",
                "/guides",
                (
                    _START,
                    _END,
                    _STRAND,
                    Value("Protospacer", "protospacer"),
                    Value("PAM", "pam"),
                    Value("Cut after", "cut_after"),
                    Value("GC", "gc", Way.PERCENT),
                    Value("Seed found here", "seed_hits"),
                ),
            ),
        ),
    ),
    "domain-search": Shown(
        "domains.json",
        (
            _RESIDUES,
            Value("Model", "/model/name"),
            Value("Accession of the model", "/model/accession"),
            Value("E-value of the whole sequence", "/evalue"),
            Value("Score of the whole sequence, bits", "/score"),
            Value("Largest E-value that counts", "/max_evalue"),
        ),
        (
            List(
                "Domains",
                "/domains",
                (
                    Value("Envelope from", "start"),
                    Value("Envelope to", "end"),
                    Value("Aligned from", "aligned_start"),
                    Value("Aligned to", "aligned_end"),
                    Value("Score, bits", "score"),
                    Value("Independent E-value", "i_evalue"),
                ),
            ),
        ),
    ),
    "exon-structure": Shown(
        "exon-map.json",
        (
            Value("Transcript", "/transcript"),
            Value("Assembly", "/assembly"),
            Value("Chromosome", "/chromosome"),
            Value("Strand", "/strand"),
            Value("Start", "/start"),
            Value("End", "/end"),
            Value("Span, bases", "/span"),
            Value("Transcript, bases", "/transcript_length"),
            Value("Coding part, bases", "/coding_length"),
            Value("Source", "/source"),
        ),
        (
            List(
                "Exons",
                "/exons",
                (
                    Value("Exon", "number"),
                    _START,
                    _END,
                    Value("Length, bases", "length"),
                    Value("Coding bases", "coding"),
                ),
                most=40,
                long=True,
            ),
        ),
    ),
    "gc-profile": Shown(
        "gc-profile.json",
        (
            _BASES,
            Value("GC content", "/gc", Way.PERCENT),
            Value("GC skew", "/gc_skew"),
            Value("A", "/counts/A"),
            Value("C", "/counts/C"),
            Value("G", "/counts/G"),
            Value("T", "/counts/T"),
            Value("Other letters", "/counts/other"),
            Value("CpG observed", "/cpg/observed"),
            Value("CpG expected", "/cpg/expected"),
            Value("CpG observed over expected", "/cpg/ratio"),
        ),
    ),
    "literature-cooccurrence": Shown(
        "cooccurrence.json",
        (Value("Records", "/records"),),
        (
            List(
                "Terms",
                "/terms",
                (
                    Value("Term", "term"),
                    Value("Records with it", "count"),
                    Value("Which", "records", Way.LIST),
                ),
            ),
            List(
                "Pairs of terms",
                "/pairs",
                (
                    Value("Terms", "terms", Way.LIST),
                    Value("Records with both", "count"),
                    Value("Jaccard", "jaccard"),
                    Value("PMI", "pmi"),
                ),
            ),
        ),
    ),
    "motif-scan": Shown(
        "motifs.json",
        (
            Value("Length", "/sequence/length"),
            Value("Pattern", "/pattern"),
            Value("Matches", "/count"),
        ),
        (List("Matches", "/hits", (_START, _END, _STRAND, Value("Match", "match"))),),
    ),
    "msa-conservation": Shown(
        "conservation.json",
        (
            Value("Sequences", "/rows"),
            Value("Columns", "/columns"),
            Value("Alphabet", "/alphabet"),
            Value("Mean conservation, bits", "/mean_bits"),
        ),
    ),
    "orf-scan": Shown(
        "orfs.json",
        (_BASES, Value("Shortest that counts, amino acids", "/min_aa")),
        (
            List(
                "Open reading frames",
                "/orfs",
                (
                    _START,
                    _END,
                    _STRAND,
                    Value("Frame", "frame"),
                    Value("Amino acids", "length_aa"),
                    Value("Complete", "complete"),
                ),
            ),
        ),
    ),
    "pairwise-alignment": Shown(
        "alignment.json",
        (
            Value("First sequence", "/first/id"),
            Value("Second sequence", "/second/id"),
            Value("Mode", "/mode"),
            Value("Matrix", "/matrix"),
            Value("Score", "/score"),
            Value("Columns", "/columns"),
            Value("Identical", "/identical"),
            Value("Identity", "/identity", Way.PERCENT),
            Value("Positive pairs", "/positive"),
            Value("Gaps", "/gaps"),
        ),
    ),
    "primer-design": Shown(
        "primers.json",
        (
            _BASES,
            Value("Forward primers considered", "/considered/forward"),
            Value("Reverse primers considered", "/considered/reverse"),
        ),
        (
            List(
                "Primer pairs, best first",
                "/pairs",
                (
                    Value("Forward", "forward/sequence"),
                    Value("Tm, °C", "forward/tm"),
                    Value("Reverse", "reverse/sequence"),
                    Value("Tm, °C", "reverse/tm"),
                    Value("Product from", "product/start"),
                    Value("Product to", "product/end"),
                    Value("Product, bases", "product/length"),
                    Value("Penalty", "penalty"),
                ),
            ),
        ),
    ),
    "protein-properties": Shown(
        "protein-properties.json",
        (
            _RESIDUES,
            Value("Molecular weight, Da", "/molecular_weight"),
            Value("Isoelectric point", "/isoelectric_point"),
            Value("Charge at neutral pH", "/charge_at_ph7"),
            Value("Mean hydropathy (GRAVY)", "/gravy"),
            Value("Instability index", "/instability_index"),
            Value("Aromaticity", "/aromaticity"),
            Value("Extinction, all cysteines reduced", "/extinction/reduced"),
            Value("Extinction, all cysteines paired", "/extinction/cystines"),
        ),
    ),
    "restriction-map": Shown(
        "restriction-map.json",
        (
            _BASES,
            Value("Circular", "/circular"),
            Value("Enzymes that do not cut", "/absent", Way.LIST),
        ),
        (
            List(
                "Enzymes that cut",
                "/enzymes",
                (
                    Value("Enzyme", "name"),
                    Value("Site", "site"),
                    Value("Cuts", "cuts", Way.COUNT),
                    Value("Cuts after", "cuts", Way.LIST),
                    Value("Fragments, bases", "fragments", Way.LIST),
                ),
                most=40,
            ),
        ),
    ),
    "translate": Shown(
        "translation.json",
        (
            Value("Protein, amino acids", "/protein/length"),
            Value("Starts with methionine", "/protein/starts_with_met"),
            Value("Ends at a stop codon", "/protein/ends_at_stop"),
            Value("Unknown amino acids", "/protein/unknown"),
            Value("Checksum as UniProt prints it", "/protein/crc64"),
        ),
    ),
    "variant-effect": Shown(
        "variant-effects.json",
        (
            Value("Coding sequence, bases", "/sequence/length"),
            Value("Protein, amino acids", "/sequence/length_aa"),
        ),
        (
            List(
                "Variants",
                "/variants",
                (
                    Value("As given", "variant"),
                    Value("Normalized", "normalized"),
                    Value("Protein", "protein"),
                    Value("Consequence", "consequence"),
                    Value("New protein, amino acids", "length_aa"),
                ),
                most=40,
            ),
        ),
    ),
}
