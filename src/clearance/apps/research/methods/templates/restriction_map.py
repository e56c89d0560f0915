"""Where restriction enzymes cut, and the fragments that each of them leaves.

`restriction-map.json`: {"sequence": {"id", "length"}, "circular", "enzymes": [{"name", "site" (IUPAC),
"cuts": [position …], "fragments": [length …], longest first}] by name, "absent": [names that do not cut]}.
A cut position is the last base before the cut on the given strand: EcoRI (G^AATTC) on GAATTC at 1 cuts
after 1. Sites and cuts are those of REBASE as Biopython has them; methylation is not looked at.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import read_dna
from clearance.errors import InvalidInputError


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the cuts of the named `enzymes` in `sequence`."""
    # Biopython has no types, and makes these two when it is imported.
    from Bio.Restriction import AllEnzymes, RestrictionBatch  # type: ignore[attr-defined]
    from Bio.Seq import Seq

    record = read_dna(inputs["sequence"], name="sequence")
    known = {str(enzyme) for enzyme in AllEnzymes}
    unknown = sorted(set(params["enzymes"]) - known)
    if unknown:
        raise InvalidInputError(f"enzymes: REBASE has no enzyme {', '.join(unknown)}. Correct the names.")
    circular = bool(params["circular"])
    batch = RestrictionBatch(sorted(params["enzymes"]))
    found = batch.search(Seq(record.letters), linear=not circular)
    length = len(record.letters)
    enzymes = [
        {
            "name": str(enzyme),
            "site": str(enzyme.site),
            # Biopython gives the first base behind the cut; behind the last base of a circle is 1.
            "cuts": (cuts := sorted({(at - 2) % length + 1 for at in positions})),
            "fragments": _fragments(cuts, length=length, circular=circular),
        }
        for enzyme, positions in sorted(found.items(), key=lambda item: str(item[0]))
        if positions
    ]
    document = {
        "sequence": {"id": record.id, "length": length},
        "circular": circular,
        "enzymes": enzymes,
        "absent": sorted(str(enzyme) for enzyme, positions in found.items() if not positions),
    }
    once = [enzyme["name"] for enzyme in enzymes if len(enzyme["cuts"]) == 1]
    return Produced(
        f"{len(enzymes)} of {len(found)} enzymes cut; {len(once)} cut once.",
        {"restriction-map.json": json_bytes(document)},
        {"cutters": len(enzymes), "single_cutters": len(once), "cuts": sum(len(e["cuts"]) for e in enzymes)},
    )


def _fragments(cuts: list[int], *, length: int, circular: bool) -> list[int]:
    # On a circle the last fragment goes on over the origin.
    ends = [*cuts, cuts[0] + length] if circular else [0, *cuts, length]
    return sorted((b - a for a, b in pairwise(ends) if b > a), reverse=True)
