"""Guides for Cas9 of S. pyogenes: 20 bases before NGG, on both strands.

`guides.json`: {"sequence": {"id", "length"}, "guides": [{"start", "end" (of the protospacer), "strand",
"protospacer", "pam", "cut_after", "gc" (2 digits), "seed_hits", "notes": [text …]}] by start and strand,
"found": all sites, "kept": those within the GC limits}. `cut_after` is the base before the blunt cut,
three bases from the PAM, on the given strand. `seed_hits` counts, in this sequence alone, the sites whose
12 bases at the PAM are the same (1 is the guide itself): it says nothing about the rest of the genome.
Sites with an ambiguous base are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from clearance.apps.research.methods.produced import Produced, counted, json_bytes
from clearance.apps.research.methods.sequences import read_dna, reverse_complement

_SITE = re.compile(r"(?=([ACGT]{20})([ACGT]GG))")
_SEED = 12


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the guides in `sequence` whose GC content is from `gc_min` to `gc_max` percent."""
    record = read_dna(inputs["sequence"], name="sequence")
    strands = {"+": record.letters, "-": reverse_complement(record.letters)}
    sites = [site for strand, letters in strands.items() for site in _sites(letters, strand)]
    seeds = Counter(site["protospacer"][-_SEED:] for site in sites)
    kept = [
        site | {"seed_hits": seeds[site["protospacer"][-_SEED:]]}
        for site in sorted(sites, key=lambda site: (site["start"], site["strand"]))
        if params["gc_min"] <= 100 * site["gc"] <= params["gc_max"]
    ]
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "guides": kept,
        "found": len(sites),
        "kept": len(kept),
    }
    return Produced(
        f"{counted(len(sites), 'NGG site')}; {counted(len(kept), 'guide')} within the GC limits.",
        {"guides.json": json_bytes(document)},
        {"found": len(sites), "kept": len(kept)},
        ("Off-targets outside this sequence were not searched for.",),
    )


def _sites(letters: str, strand: str) -> Iterator[dict[str, Any]]:
    whole = len(letters)
    for match in _SITE.finditer(letters):
        protospacer, pam = match.groups()
        start, cut = match.start(), match.start() + 17
        yield {
            "start": start + 1 if strand == "+" else whole - start - 19,
            "end": start + 20 if strand == "+" else whole - start,
            "strand": strand,
            "protospacer": protospacer,
            "pam": pam,
            "cut_after": cut if strand == "+" else whole - cut,
            "gc": round((protospacer.count("G") + protospacer.count("C")) / 20, 2),
            "notes": ["TTTT ends transcription from a U6 promoter"] if "TTTT" in protospacer else [],
        }
