"""How much each column of an alignment is conserved, in bits.

`conservation.json`: {"rows", "columns", "alphabet" ("dna" or "protein"), "mean_bits" (4 digits), "bits":
[per column, 3 digits, null for a column of gaps], "occupancy": [share of rows with a residue, 3 digits],
"consensus": one letter a column ("-" where most rows have a gap, the first letter of the alphabet at a
tie), "reference": null or {"id", "positions": [position of each column in that row without gaps, or
null]}, "windows": [{"start", "end", "bits"}] without overlap, for a track}. Bits are log2 of the
alphabet's size (4 or 20) less the Shannon entropy of the residues in the column (Schneider and Stephens,
1990, without their correction for few rows); gaps and ambiguous letters are not counted. The mean is over
the columns that have bits.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import AMINO_ACIDS, BASES, Record, read_alignment
from clearance.errors import InvalidInputError


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the conservation of `alignment`, with positions in the row named `reference` if one is named."""
    rows = read_alignment(inputs["alignment"], name="alignment")
    dna = all(set(row.letters) <= {*BASES, "-"} for row in rows)
    alphabet = "ACGT" if dna else AMINO_ACIDS
    counts = [
        Counter(letter for letter in column if letter in alphabet)
        for column in zip(*(row.letters for row in rows), strict=True)
    ]
    bits = [_bits(column, most=math.log2(len(alphabet))) for column in counts]
    known = [value for value in bits if value is not None]
    if not known:
        raise InvalidInputError("alignment: no column has a residue. Give another alignment.")
    mean = round(math.fsum(known) / len(known), 4)
    document = {
        "rows": len(rows),
        "columns": len(bits),
        "alphabet": "dna" if dna else "protein",
        "mean_bits": mean,
        "bits": [None if value is None else round(value, 3) for value in bits],
        "occupancy": [round(column.total() / len(rows), 3) for column in counts],
        "consensus": "".join(_consensus(column, rows=len(rows)) for column in counts),
        "reference": _reference(rows, name=params.get("reference")),
        "windows": _windows(bits, size=params["window"]),
    }
    return Produced(
        f"{len(rows)} sequences, {len(bits)} columns; mean conservation {mean:.3f} bits.",
        {"conservation.json": json_bytes(document)},
        {"rows": len(rows), "columns": len(bits), "mean_bits": mean},
    )


def _bits(column: Counter[str], *, most: float) -> float | None:
    total = column.total()
    if not total:
        return None
    # Sorted, so that the last digit does not hang on the order of the rows.
    shares = sorted(count / total for count in column.values())
    return most + math.fsum(share * math.log2(share) for share in shares)


def _consensus(column: Counter[str], *, rows: int) -> str:
    if 2 * column.total() < rows:
        return "-"
    return min(column, key=lambda letter: (-column[letter], letter))


def _reference(rows: Sequence[Record], *, name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    row = next((row for row in rows if row.id == name), None)
    if row is None:
        raise InvalidInputError("reference: the alignment has no row of that name. Correct the name.")
    positions: list[int | None] = []
    seen = 0
    for letter in row.letters:
        seen += letter != "-"
        positions.append(seen if letter != "-" else None)
    return {"id": row.id, "positions": positions}


def _windows(bits: Sequence[float | None], *, size: int) -> list[dict[str, Any]]:
    windows = []
    for start in range(0, len(bits), size):
        known = [value for value in bits[start : start + size] if value is not None]
        mean = round(math.fsum(known) / len(known), 3) if known else None
        windows.append({"start": start + 1, "end": min(start + size, len(bits)), "bits": mean})
    return windows
