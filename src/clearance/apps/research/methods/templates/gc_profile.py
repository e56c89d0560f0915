"""Base composition, along the sequence and as a whole.

`gc-profile.json`: {"sequence": {"id", "length"}, "counts": {"A", "C", "G", "T", "other"}, "gc": share of G
and C among A, C, G, T (4 digits), "gc_skew": (G - C) / (G + C) (4 digits), "cpg": {"observed", "expected"
(1 digit), "ratio" (3 digits) or null}, "window", "step", "points": [{"start", "end", "gc"}]}. A window
without a plain base has "gc": null.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import read_dna


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the composition of `sequence`, in windows of `window` bases every `step` bases."""
    record = read_dna(inputs["sequence"], name="sequence")
    letters = record.letters
    counts = Counter(letters)
    window = min(params["window"], len(letters))
    starts = range(0, len(letters) - window + 1, params["step"])
    gc = _gc(letters)
    plain = {base: counts[base] for base in "ACGT"}
    document = {
        "sequence": {"id": record.id, "length": len(letters)},
        "counts": plain | {"other": len(letters) - sum(plain.values())},
        "gc": gc,
        "gc_skew": _share(counts["G"] - counts["C"], counts["G"] + counts["C"]),
        "cpg": _cpg(letters, counts),
        "window": window,
        "step": params["step"],
        "points": [
            {"start": at + 1, "end": at + window, "gc": _gc(letters[at : at + window])} for at in starts
        ],
    }
    said = "unknown" if gc is None else f"{gc:.2%}"
    return Produced(
        f"GC content {said} over {len(letters)} bases.",
        {"gc-profile.json": json_bytes(document)},
        {"gc": gc, "length": len(letters)},
    )


def _gc(letters: str) -> float | None:
    strong = letters.count("G") + letters.count("C")
    return _share(strong, strong + letters.count("A") + letters.count("T"))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _cpg(letters: str, counts: Counter[str]) -> dict[str, float | None]:
    """Return CpG observed against expected (C times G over the length: Gardiner-Garden and Frommer, 1987)."""
    observed = letters.count("CG")
    expected = counts["C"] * counts["G"] / len(letters)
    return {
        "observed": observed,
        "expected": round(expected, 1),
        "ratio": round(observed / expected, 3) if expected else None,
    }
