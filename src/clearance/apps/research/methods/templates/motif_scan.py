"""Where a motif stands: a PROSITE pattern or IUPAC letters.

`motifs.json`: {"sequence": {"id", "length"}, "alphabet", "pattern", "hits": [{"start", "end", "strand",
"match"}] by start and strand, "count"}. Hits may overlap; at one start the longest is given. `match` is
read 5' to 3' on its own strand; proteins have strand "+" only.

A pattern is as PROSITE writes them: elements between "-", each a letter, x for any, [ABC] for one of,
{ABC} for none of, with (n) or (n,m) for repetition; "<" ties it to the start, ">" to the end. Letters
without "-" (GAATTC) are read one by one. In DNA, a letter stands for what IUPAC says (N for any). An
ambiguous letter of the sequence never matches anything but x.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clearance.apps.research.methods.produced import Produced, counted, json_bytes
from clearance.apps.research.methods.sequences import (
    AMINO_ACIDS,
    BASES,
    read_dna,
    read_protein,
    reverse_complement,
)
from clearance.errors import InvalidInputError

_ELEMENT = re.compile(r"(?:([A-Za-z])|\[([A-Z]+)\]|\{([A-Z]+)\})(?:\((\d{1,2})(?:,(\d{1,2}))?\))?")
# Each element of variable length multiplies the ways to match; with three there are at most a million.
_MOST_VARIABLE = 3


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return where `pattern` matches `sequence`, which is a protein or DNA as `alphabet` says."""
    protein = params["alphabet"] == "protein"
    record = (read_protein if protein else read_dna)(inputs["sequence"], name="sequence")
    expression = _expression(params["pattern"], protein=protein)
    strands = {"+": record.letters} if protein else {
        "+": record.letters,
        "-": reverse_complement(record.letters),
    }  # fmt: skip
    hits = [hit for strand, letters in strands.items() for hit in _hits(expression, letters, strand=strand)]
    hits.sort(key=lambda hit: (hit["start"], hit["strand"], hit["end"]))
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "alphabet": params["alphabet"],
        "pattern": params["pattern"],
        "hits": hits,
        "count": len(hits),
    }
    return Produced(
        f"{counted(len(hits), 'match', 'matches')} of {params['pattern']}.",
        {"motifs.json": json_bytes(document)},
        {"matches": len(hits)},
    )


def _hits(expression: re.Pattern[str], letters: str, *, strand: str) -> Iterator[dict[str, Any]]:
    whole = len(letters)
    for found in expression.finditer(letters):
        start, end = found.span(1)
        yield {
            "start": start + 1 if strand == "+" else whole - end + 1,
            "end": end if strand == "+" else whole - start,
            "strand": strand,
            "match": found[1],
        }


def _expression(pattern: str, *, protein: bool) -> re.Pattern[str]:
    """Return the regular expression of a pattern; the look-ahead lets hits overlap."""
    body = pattern.strip().removesuffix(".")
    first, last = body.startswith("<"), body.endswith(">")
    body = body.removeprefix("<").removesuffix(">")
    elements = [part for piece in body.split("-") for part in _elements(piece)]
    variable = sum(element[4] is not None for element in elements)
    if variable > _MOST_VARIABLE:
        raise InvalidInputError(
            f"pattern: {variable} elements have a variable length; at most {_MOST_VARIABLE} may."
        )
    parts = "".join(_part(element, protein=protein) for element in elements)
    return re.compile(f"{'^' if first else ''}(?=({parts}){'$' if last else ''})")


def _elements(piece: str) -> Iterator[tuple[str | None, ...]]:
    at = 0
    while match := _ELEMENT.match(piece, at):
        yield match.groups()
        at = match.end()
    if at < len(piece) or not piece:
        raise InvalidInputError(
            "pattern: it cannot be read. Write elements between '-', such as N-{P}-[ST]-{P} or G-x(2,4)-K."
        )


def _part(element: tuple[str | None, ...], *, protein: bool) -> str:
    letter, one_of, none_of, least, most = element
    every = AMINO_ACIDS if protein else "ACGT"
    if letter in ("x", "X") and (protein or letter == "x"):
        allowed = "."
    else:
        named = _letters(letter or one_of or none_of or "", protein=protein)
        chosen = sorted(set(every) - named if none_of else named)
        if not chosen:
            raise InvalidInputError("pattern: an element excludes every letter. Correct it.")
        allowed = f"[{''.join(chosen)}]"
    if most is not None and int(most) < int(least or 0):
        raise InvalidInputError("pattern: a repetition (n,m) must have n up to m. Correct it.")
    return allowed + ("" if least is None else f"{{{least},{most}}}" if most else f"{{{least}}}")


def _letters(letters: str, *, protein: bool) -> set[str]:
    if protein:
        wrong = sorted(set(letters) - set(AMINO_ACIDS))
        named = set(letters)
    else:
        letters = letters.upper().replace("U", "T")
        wrong = sorted(set(letters) - set(BASES))
        named = {base for letter in letters if letter in BASES for base in BASES[letter]}
    if wrong:
        raise InvalidInputError(f"pattern: {', '.join(wrong)} stands for nothing here. Correct the pattern.")
    return named
