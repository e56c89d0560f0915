"""Two sequences, aligned from end to end or at their best matching parts.

`alignment.json`: {"first": {"id", "length", "start", "end"}, "second": the same, "mode", "matrix",
"gap_open", "gap_extend", "score" (exact in halves), "columns", "identical", "positive" (pairs that score
above 0), "gaps", "identity" (identical over columns, 4 digits), "rows": [first, middle, second]}. The
middle row has "|" for identical, ":" for positive, "." for other pairs, and a blank at a gap. `start` and
`end` are the aligned part; all are 0 and the rows empty when a local alignment finds nothing. Gaps at the
ends cost nothing in mode "global", as is usual for sequences of different lengths. A gap of n costs
gap_open + (n - 1) × gap_extend.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import Record, read_dna, read_protein
from clearance.errors import InvalidInputError

# The traceback takes about one byte a cell.
MOST_CELLS = 150_000_000


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the best alignment of `first` and `second`; of equally good ones always the same."""
    protein = params["alphabet"] == "protein"
    read = read_protein if protein else read_dna
    first, second = (read(inputs[name], name=name) for name in ("first", "second"))
    if len(first.letters) * len(second.letters) > MOST_CELLS:
        raise InvalidInputError("first, second: they are too long to be aligned. Give parts of them.")
    matrix = params["matrix"] if protein else "NUC.4.4"
    aligner = _aligner(matrix, params)
    _check_letters(aligner.substitution_matrix, first, second)
    score = float(aligner.score(first.letters, second.letters))
    # A local alignment of sequences without any positive pair is empty, and Biopython then has none to give.
    rows, ends = ("", ""), ((0, 0), (0, 0))
    if score > 0 or params["mode"] == "global":
        best = aligner.align(first.letters, second.letters)[0]
        rows = (str(best[0]), str(best[1]))
        ends = _ends(best)
    middle = "".join(_mark(a, b, aligner.substitution_matrix) for a, b in zip(*rows, strict=True))
    document = {
        **{
            name: {"id": record.id, "length": len(record.letters), "start": start, "end": end}
            for name, record, (start, end) in zip(("first", "second"), (first, second), ends, strict=True)
        },
        **{name: params[name] for name in ("mode", "gap_open", "gap_extend")},
        "matrix": matrix,
        "score": score,
        **_counts(rows, middle),
        "rows": [rows[0], middle, rows[1]],
    }
    return Produced(
        f"Score {score:g}; {document['identical']} of {document['columns']} columns are identical.",
        {"alignment.json": json_bytes(document)},
        {name: document[name] for name in ("score", "identical", "columns", "gaps", "identity")},
    )


def _aligner(matrix: str, params: Mapping[str, Any]) -> Any:
    from Bio.Align import PairwiseAligner, substitution_matrices

    # Biopython has no types.
    aligner: Any = PairwiseAligner()  # type: ignore[no-untyped-call]
    aligner.mode = params["mode"]
    aligner.substitution_matrix = substitution_matrices.load(matrix)  # type: ignore[no-untyped-call]
    aligner.open_gap_score = -float(Decimal(params["gap_open"]))
    aligner.extend_gap_score = -float(Decimal(params["gap_extend"]))
    if params["mode"] == "global":
        aligner.end_gap_score = 0.0
    return aligner


def _check_letters(matrix: Any, *records: Record) -> None:
    for record in records:
        missing = sorted(set(record.letters) - set(matrix.alphabet))
        if missing:
            raise InvalidInputError(f"The matrix has no score for {', '.join(missing)}. Give other letters.")


def _ends(best: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    (first, second) = best.coordinates
    return (int(first[0]) + 1, int(first[-1])), (int(second[0]) + 1, int(second[-1]))


def _mark(a: str, b: str, matrix: Any) -> str:
    if "-" in (a, b):
        return " "
    if a == b:
        return "|"
    return ":" if matrix[a, b] > 0 else "."


def _counts(rows: tuple[str, str], middle: str) -> dict[str, Any]:
    identical, columns = middle.count("|"), len(middle)
    return {
        "columns": columns,
        "identical": identical,
        "positive": identical + middle.count(":"),
        "gaps": rows[0].count("-") + rows[1].count("-"),
        "identity": round(identical / columns, 4) if columns else 0.0,
    }
