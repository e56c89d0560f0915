"""Open reading frames: ATG to the first stop, in all six frames.

`orfs.json`: {"sequence": {"id", "length"}, "min_aa", "orfs": [orf …], "longest": orf or null}, where orf
is {"start", "end", "strand", "frame", "length_aa", "complete"}: `end` includes the stop codon; `frame` is
1, 2 or 3, counted from the 5' end of the orf's own strand; `complete` is false for one that runs off the
sequence. Sorted by length, longest first, then by start and strand. `cds.fna` is the longest complete orf,
read 5' to 3' with its stop; it is absent when there is none.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.produced import Produced, counted, fasta_bytes, json_bytes
from clearance.apps.research.methods.sequences import read_dna, reverse_complement


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the open reading frames of `sequence` that have at least `min_aa` amino acids."""
    record = read_dna(inputs["sequence"], name="sequence")
    strands = {"+": record.letters}
    if params["strand"] == "both":
        strands["-"] = reverse_complement(record.letters)
    orfs = [
        orf
        for strand, letters in strands.items()
        for orf in _on_strand(letters, strand=strand, params=params)
    ]
    orfs.sort(key=lambda orf: (-orf["length_aa"], orf["start"], orf["strand"]))
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "min_aa": params["min_aa"],
        "orfs": orfs,
        "longest": orfs[0] if orfs else None,
    }
    files = {"orfs.json": json_bytes(document)}
    longest = next((orf for orf in orfs if orf["complete"]), None)
    if longest:
        files["cds.fna"] = fasta_bytes(
            f"{record.id}:{longest['start']}-{longest['end']}({longest['strand']}) longest orf",
            _letters(strands[longest["strand"]], orf=longest),
        )
    return Produced(
        _headline(orfs), files, {"orfs": len(orfs), "longest_aa": orfs[0]["length_aa"] if orfs else 0}
    )


def _headline(orfs: list[dict[str, Any]]) -> str:
    if not orfs:
        return "No open reading frame is that long."
    first = orfs[0]
    return (
        f"{counted(len(orfs), 'open reading frame')}; the longest has {first['length_aa']} amino acids "
        f"({first['start']}-{first['end']}, strand {first['strand']})."
    )


def _on_strand(letters: str, *, strand: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for frame in (0, 1, 2):
        protein = translate(letters[frame:])
        codon = 0
        # Each stretch lies between two stops; the orf is what follows the first M in it.
        for number, stretch in enumerate(stretches := protein.split("*")):
            complete = number < len(stretches) - 1
            skipped = stretch.find("M")
            length = len(stretch) - skipped
            if skipped >= 0 and length >= params["min_aa"] and (complete or params["open_ends"]):
                start = frame + 3 * (codon + skipped)
                end = start + 3 * (length + complete)
                whole = len(letters)
                yield {
                    "start": start + 1 if strand == "+" else whole - end + 1,
                    "end": end if strand == "+" else whole - start,
                    "strand": strand,
                    "frame": frame + 1,
                    "length_aa": length,
                    "complete": complete,
                }
            codon += len(stretch) + 1


def _letters(strand_letters: str, *, orf: Mapping[str, Any]) -> str:
    whole = len(strand_letters)
    start = orf["start"] - 1 if orf["strand"] == "+" else whole - orf["end"]
    return strand_letters[start : start + orf["end"] - orf["start"] + 1]
