"""Pairs of PCR primers on one sequence.

`primers.json`: {"sequence": {"id", "length"}, "conditions": {"sodium_mm", "magnesium_mm", "dntp_mm",
"primer_nm"}, "pairs": [{"forward": primer, "reverse": primer, "product": {"start", "end", "length"},
"tm_difference" (1 digit), "penalty" (2 digits, smaller is better)}], best first, "considered": {"forward",
"reverse"}}, where primer is {"start", "end", "strand", "sequence" (5' to 3'), "tm" (1 digit), "gc"
(percent, 1 digit)}.

Melting temperatures: nearest neighbours and salt after SantaLucia (1998), magnesium as sodium after von
Ahsen (2001), `primer_nm` being the concentration of both strands together, as Primer3 does it. A primer
ends in G or C with at most three of them among its last five bases, has no run of five, no four bases at
its 3' end that pair with itself or its partner, no ambiguous base, and its last 15 bases stand nowhere
else in the sequence. Whether they stand elsewhere in the genome is not looked at.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from clearance.apps.research.methods.produced import Produced, counted, json_bytes
from clearance.apps.research.methods.sequences import read_dna, reverse_complement
from clearance.errors import InvalidInputError

_RUN = re.compile(r"A{5}|C{5}|G{5}|T{5}")
_UNIQUE = 15
_SELF_PAIRING = 4
# The best of each side are paired: enough for every product that a long sequence has room for.
_MOST_OF_A_SIDE = 400
# Two pairs of a list differ by so many bases in at least one primer; otherwise all would be the same place.
_APART = 20


@dataclass(frozen=True)
class _Primer:
    start: int
    end: int
    strand: str
    sequence: str
    tm: float
    gc: float
    penalty: float

    def document(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "end": self.end,
            "strand": self.strand,
            "sequence": self.sequence,
            "tm": round(self.tm, 1),
            "gc": round(self.gc, 1),
        }


@dataclass(frozen=True)
class _Pair:
    forward: _Primer
    reverse: _Primer
    penalty: float

    @property
    def length(self) -> int:
        return self.reverse.end - self.forward.start + 1

    def document(self) -> dict[str, Any]:
        return {
            "forward": self.forward.document(),
            "reverse": self.reverse.document(),
            "product": {"start": self.forward.start, "end": self.reverse.end, "length": self.length},
            "tm_difference": round(abs(self.forward.tm - self.reverse.tm), 1),
            "penalty": round(self.penalty, 2),
        }


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the best `pairs` pairs whose product has the size wanted and holds the target, if any."""
    record = read_dna(inputs["sequence"], name="sequence")
    letters = record.letters
    _check(params, length=len(letters))
    forward = _best(_candidates(letters, strand="+", params=params))
    reverse = _best(_candidates(reverse_complement(letters), strand="-", params=params))
    pairs = _chosen(_paired(forward, reverse, params=params), most=params["pairs"])
    document = {
        "sequence": {"id": record.id, "length": len(letters)},
        "conditions": {name: params[name] for name in ("sodium_mm", "magnesium_mm", "dntp_mm", "primer_nm")},
        "pairs": [pair.document() for pair in pairs],
        "considered": {"forward": len(forward), "reverse": len(reverse)},
    }
    warnings = ["Whether the primers bind elsewhere in the genome was not looked at."]
    if not pairs:
        warnings.append("No pair fits these limits. Widen the product size or the melting temperatures.")
    best = f"; the best gives {pairs[0].length} bases" if pairs else ""
    return Produced(
        f"{counted(len(pairs), 'primer pair')}{best}.",
        {"primers.json": json_bytes(document)},
        {"pairs": len(pairs), "product_length": pairs[0].length if pairs else None},
        tuple(warnings),
    )


def _check(params: Mapping[str, Any], *, length: int) -> None:
    for low, high in (("product_min", "product_max"), ("tm_min", "tm_max"), ("length_min", "length_max")):
        if params[low] > params[high]:
            raise InvalidInputError(f"{low}: it must not be more than {high}. Correct one of them.")
    start, end = params.get("target_start"), params.get("target_end")
    if (start is None) != (end is None):
        raise InvalidInputError("target_start, target_end: give both or none.")
    if start is not None and end is not None and not start <= end <= length:
        raise InvalidInputError(f"target_start, target_end: they must lie in the sequence, 1 to {length}.")
    if length < params["product_min"]:
        raise InvalidInputError(
            f"sequence: its {length} bases are fewer than product_min. Give a longer sequence or allow less."
        )


def _candidates(letters: str, *, strand: str, params: Mapping[str, Any]) -> Iterator[_Primer]:
    """Yield, for each place of a 3' end, the primer whose melting temperature is nearest to the middle."""
    wanted = (params["tm_min"] + params["tm_max"]) / 2
    both = letters + "N" * _UNIQUE + reverse_complement(letters)
    places = Counter(both[at : at + _UNIQUE] for at in range(len(both) - _UNIQUE + 1))
    for end in range(params["length_min"], len(letters) + 1):
        if not _good_end(letters[max(0, end - params["length_max"]) : end], places):
            continue
        lengths = range(params["length_min"], min(params["length_max"], end) + 1)
        fitting = [each for length in lengths if _fits(each := letters[end - length : end], params)]
        # The melting temperature rises with the length, so few of them need to be worked out.
        melting = lru_cache(partial(_melting_temperature, params=params))
        at = bisect_left(fitting, wanted, key=melting)
        around = fitting[max(0, at - 1) : at + 1]
        if not around:
            continue
        sequence = min(around, key=lambda each: abs(melting(each) - wanted))
        tm, gc = melting(sequence), _gc(sequence)
        if params["tm_min"] <= tm <= params["tm_max"]:
            first, last = end - len(sequence) + 1, end
            if strand == "-":
                first, last = len(letters) - last + 1, len(letters) - first + 1
            yield _Primer(first, last, strand, sequence, tm, gc, abs(tm - wanted) + abs(gc - 50) / 10)


def _fits(sequence: str, params: Mapping[str, Any]) -> bool:
    plain = not set(sequence) - set("ACGT")
    return plain and not _RUN.search(sequence) and params["gc_min"] <= _gc(sequence) <= params["gc_max"]


def _gc(sequence: str) -> float:
    return 100 * (sequence.count("G") + sequence.count("C")) / len(sequence)


def _good_end(before: str, places: Counter[str]) -> bool:
    strong = sum(base in "GC" for base in before[-5:])
    return (
        before[-1] in "GC"
        and strong <= 3
        and not set(before[-_UNIQUE:]) - set("ACGT")
        and reverse_complement(before[-_SELF_PAIRING:]) not in before
        and places[before[-_UNIQUE:]] == 1
    )


def _melting_temperature(sequence: str, *, params: Mapping[str, Any]) -> float:
    from Bio.SeqUtils import MeltingTemp

    # Biopython has no types.
    tm: float = MeltingTemp.Tm_NN(  # type: ignore[no-untyped-call]
        sequence,
        check=False,
        nn_table=MeltingTemp.DNA_NN3,
        dnac1=params["primer_nm"] / 2,
        dnac2=params["primer_nm"] / 2,
        Na=params["sodium_mm"],
        Mg=float(params["magnesium_mm"]),
        dNTPs=float(params["dntp_mm"]),
        saltcorr=5,
    )
    return tm


def _best(candidates: Iterator[_Primer]) -> list[_Primer]:
    return sorted(candidates, key=lambda primer: (primer.penalty, primer.start))[:_MOST_OF_A_SIDE]


def _paired(forward: list[_Primer], reverse: list[_Primer], *, params: Mapping[str, Any]) -> Iterator[_Pair]:
    least, most = params["product_min"], params["product_max"]
    target = (params["target_start"], params["target_end"]) if "target_start" in params else None
    for left in forward:
        for right in reverse:
            if not (left.end < right.start and least <= right.end - left.start + 1 <= most):
                continue
            if target and not (left.end < target[0] and target[1] < right.start):
                continue
            if _ends_pair(left.sequence, right.sequence):
                continue
            yield _Pair(left, right, left.penalty + right.penalty + abs(left.tm - right.tm))


def _ends_pair(first: str, second: str) -> bool:
    """Tell whether the 3' end of one primer pairs with the other."""
    return (
        reverse_complement(first[-_SELF_PAIRING:]) in second
        or reverse_complement(second[-_SELF_PAIRING:]) in first
    )


def _chosen(pairs: Iterator[_Pair], *, most: int) -> list[_Pair]:
    chosen: list[_Pair] = []
    for pair in sorted(pairs, key=lambda pair: (pair.penalty, pair.forward.start, pair.reverse.end)):
        if len(chosen) == most:
            break
        if all(
            max(abs(pair.forward.start - c.forward.start), abs(pair.reverse.end - c.reverse.end)) >= _APART
            for c in chosen
        ):
            chosen.append(pair)
    return chosen
