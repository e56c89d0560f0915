"""The protein of a coding sequence (standard genetic code).

`protein.faa` is the protein up to its first stop. `translation.json`: {"sequence": {"id", "length"}, "frame",
"protein": {"length", "crc64", "starts_with_met", "ends_at_stop", "unknown"}}: `crc64` is the checksum that
UniProt prints (16 hex digits), `unknown` counts X.
"""

from collections.abc import Mapping
from typing import Any

from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.produced import Produced, fasta_bytes, json_bytes
from clearance.apps.research.methods.sequences import read_dna
from clearance.errors import InvalidInputError


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the translation of `sequence` from base `frame` (1, 2 or 3) to the first stop."""
    from Bio.SeqUtils.CheckSum import crc64

    record = read_dna(inputs["sequence"], name="sequence")
    whole = translate(record.letters[params["frame"] - 1 :])
    protein, stop, rest = whole.partition("*")
    if not protein:
        raise InvalidInputError(
            "sequence: nothing can be translated in this frame; it is too short or starts with a stop codon."
        )
    # Biopython has no types, and puts "CRC-" before the 16 digits.
    checksum = str(crc64(protein)).removeprefix("CRC-")  # type: ignore[no-untyped-call]
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "frame": params["frame"],
        "protein": {
            "length": len(protein),
            "crc64": checksum,
            "starts_with_met": protein.startswith("M"),
            "ends_at_stop": bool(stop),
            "unknown": protein.count("X"),
        },
    }
    warnings = []
    if rest:
        warnings.append(f"A stop codon ends the protein {3 * len(rest)} bases before the sequence ends.")
    if not stop or not protein.startswith("M"):
        warnings.append("The protein is a part: its start or its stop codon is not in the sequence.")
    return Produced(
        f"The protein has {len(protein)} amino acids.",
        {
            "protein.faa": fasta_bytes(f"{record.id} translated", protein),
            "translation.json": json_bytes(document),
        },
        {"length_aa": len(protein), "crc64": checksum},
        tuple(warnings),
    )
