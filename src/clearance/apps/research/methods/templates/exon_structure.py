"""Exons, introns and the coding part of a transcript, from coordinates.

`exon-map.json`: {"transcript", "gene" or null, "assembly", "chromosome", "strand", "start", "end", "span",
"exons": [{"number", "start", "end", "length", "transcript_start", "transcript_end", "coding" (bases)}] in the
order of the transcript, "introns": [{"number", "start", "end", "length"}], "transcript_length" or null,
"coding_length" or null, "cds": {"start", "end"} or null, "source"}. Without exon coordinates the lists are
empty, the lengths null, and a warning says so.

Input `exons` is one of two: JSON {"transcript", "chromosome", "strand", "exons": [{"start", "end"}], "cds"?:
{"start", "end"}, "gene"?, "assembly"?, "source"?} with genomic coordinates, or a table of MANE (its summary
file), from which the MANE Select transcript of the gene `symbol` is taken: that table has no exons.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.errors import InvalidInputError


@dataclass(frozen=True)
class _Transcript:
    named: Mapping[str, Any]
    strand: str
    span: tuple[int, int]
    # In the order of the transcript.
    exons: tuple[tuple[int, int], ...]
    cds: tuple[int, int] | None


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the structure of the transcript that `exons` describes."""
    data = inputs["exons"]
    if data.lstrip().startswith(b"{"):
        transcript = _from_json(data)
    else:
        transcript = _from_mane(data, symbol=params.get("symbol"))
    exons, introns = _exons(transcript), _introns(transcript)
    length = sum(exon["length"] for exon in exons) if exons else None
    coding = sum(exon["coding"] for exon in exons) if exons and transcript.cds else None
    start, end = transcript.span
    document = {
        **transcript.named,
        "strand": transcript.strand,
        "start": start,
        "end": end,
        "span": end - start + 1,
        "exons": exons,
        "introns": introns,
        "transcript_length": length,
        "coding_length": coding,
        "cds": {"start": transcript.cds[0], "end": transcript.cds[1]} if transcript.cds else None,
    }
    warnings = () if exons else ("The source gives the ends of the transcript, not its exons.",)
    said = f"{len(exons)} exons, {length} bases" if exons else "Exons unknown"
    return Produced(
        f"{said}; the transcript spans {end - start + 1:,} bases of {document['chromosome']}.",
        {"exon-map.json": json_bytes(document)},
        {"exons": len(exons), "span": end - start + 1, "transcript_length": length, "coding_length": coding},
        warnings,
    )


def _from_json(data: bytes) -> _Transcript:
    try:
        given = json.loads(data)
        spans = [_span(exon) for exon in given["exons"]]
        cds = _span(given["cds"]) if given.get("cds") else None
        named = {"transcript": str(given["transcript"]), "chromosome": str(given["chromosome"])}
        strand = given["strand"]
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(
            'exons: this is no transcript. Give JSON {"transcript", "chromosome", "strand": "+" or "-", '
            '"exons": [{"start", "end"}]} with whole numbers, start up to end.'
        ) from None
    if strand not in ("+", "-") or not spans:
        raise InvalidInputError("exons: give the strand as '+' or '-', and at least one exon.")
    spans.sort()
    if any(left[1] + 1 >= right[0] for left, right in pairwise(spans)):
        raise InvalidInputError("exons: two exons overlap or touch. Correct the coordinates.")
    span = (spans[0][0], spans[-1][1])
    if cds and not all(any(a <= at <= b for a, b in spans) for at in cds):
        raise InvalidInputError("exons: the coding part must start and end within exons.")
    named |= {name: given.get(name) for name in ("gene", "assembly", "source")}
    return _Transcript(named, strand, span, tuple(spans if strand == "+" else spans[::-1]), cds)


def _span(part: Mapping[str, Any]) -> tuple[int, int]:
    start, end = part["start"], part["end"]
    if type(start) is not int or type(end) is not int or not 0 < start <= end:
        raise ValueError("start and end")
    return start, end


def _from_mane(data: bytes, *, symbol: str | None) -> _Transcript:
    lines = data.decode("utf-8", errors="replace").splitlines()
    names = lines[0].removeprefix("#").split("\t") if lines else []
    if not {"symbol", "MANE_status", "RefSeq_nuc", "GRCh38_chr", "chr_start", "chr_end"} <= set(names):
        raise InvalidInputError("exons: this is neither a transcript in JSON nor a table of MANE.")
    if symbol is None:
        raise InvalidInputError("symbol: name the gene that is to be taken from the table of MANE.")
    rows = (dict(zip(names, line.split("\t"), strict=False)) for line in lines[1:])
    row = next((row for row in rows if (row["symbol"], row["MANE_status"]) == (symbol, "MANE Select")), None)
    if row is None:
        raise InvalidInputError(f"symbol: the table of MANE has no gene {symbol}. Give its coordinates.")
    named = {
        "transcript": row["RefSeq_nuc"],
        "chromosome": row["GRCh38_chr"],
        "gene": symbol,
        "assembly": "GRCh38",
        "source": "MANE",
    }
    return _Transcript(named, row["chr_strand"], (int(row["chr_start"]), int(row["chr_end"])), (), None)


def _exons(transcript: _Transcript) -> list[dict[str, int]]:
    exons = []
    before = 0
    for number, (start, end) in enumerate(transcript.exons, start=1):
        length = end - start + 1
        low, high = transcript.cds or (0, -1)
        exons.append(
            {
                "number": number,
                "start": start,
                "end": end,
                "length": length,
                "transcript_start": before + 1,
                "transcript_end": before + length,
                "coding": max(0, min(end, high) - max(start, low) + 1),
            }
        )
        before += length
    return exons


def _introns(transcript: _Transcript) -> list[dict[str, int]]:
    gaps = [(min(a[1], b[1]) + 1, max(a[0], b[0]) - 1) for a, b in pairwise(transcript.exons)]
    return [
        {"number": number, "start": start, "end": end, "length": end - start + 1}
        for number, (start, end) in enumerate(gaps, start=1)
    ]
