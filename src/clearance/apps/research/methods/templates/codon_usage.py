"""How often each codon is used, against its synonyms.

`codon-usage.json`: {"sequence": {"id", "length"}, "codons": total counted, "skipped": codons with
ambiguous bases, "usage": [{"codon", "amino_acid" (one letter, "*" for stop), "count", "fraction" (of its
amino acid, 3 digits), "per_thousand" (3 digits), "rscu" (3 digits) or null} …] for all 64 by amino acid
and codon, "gc1", "gc2", "gc3", "gc": share of G and C at each place and over all (4 digits)}. RSCU after
Sharp, Tuohy and Mosurski (1986): the count over the mean of the synonymous codons' counts; null where the
amino acid is absent.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from clearance.apps.research.methods.genetic_code import CODE
from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import read_coding
from clearance.errors import InvalidInputError


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the codon usage of `sequence`; the final stop counts where `count_stop` says so."""
    record = read_coding(inputs["sequence"], name="sequence")
    found = [record.letters[at : at + 3] for at in range(0, len(record.letters), 3)]
    if not params["count_stop"] and CODE.get(found[-1]) == "*":
        found.pop()
    counts = Counter(codon for codon in found if codon in CODE)
    if not counts:
        raise InvalidInputError("sequence: it has no codon without ambiguous bases. Give another one.")
    total = counts.total()
    gc = [_gc_at(counts, place=place) for place in (0, 1, 2)]
    usage = [_usage(codon, counts) for codon in sorted(CODE, key=lambda codon: (CODE[codon], codon))]
    document: dict[str, Any] = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "codons": total,
        "skipped": len(found) - total,
        "usage": usage,
        "gc1": round(gc[0] / total, 4),
        "gc2": round(gc[1] / total, 4),
        "gc3": round(gc[2] / total, 4),
        "gc": round(sum(gc) / (3 * total), 4),
    }
    return Produced(
        f"{total} codons; {document['gc3']:.2%} end in G or C.",
        {"codon-usage.json": json_bytes(document)},
        {"codons": total, "gc3": document["gc3"]},
    )


def _usage(codon: str, counts: Counter[str]) -> dict[str, Any]:
    synonyms = [other for other in CODE if CODE[other] == CODE[codon]]
    together = sum(counts[other] for other in synonyms)
    fraction = counts[codon] / together if together else None
    return {
        "codon": codon,
        "amino_acid": CODE[codon],
        "count": counts[codon],
        "fraction": round(fraction or 0.0, 3),
        "per_thousand": round(1000 * counts[codon] / counts.total(), 3),
        "rscu": None if fraction is None else round(fraction * len(synonyms), 3),
    }


def _gc_at(counts: Counter[str], *, place: int) -> int:
    return sum(count for codon, count in counts.items() if codon[place] in "GC")
