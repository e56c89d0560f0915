"""The standard genetic code (NCBI table 1), and the three-letter names of the amino acids."""

from collections.abc import Mapping
from itertools import product

_AMINO_ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"

# Codons in the order of the table, T C A G at each place; "*" is a stop.
CODE: Mapping[str, str] = {
    "".join(codon): amino_acid
    for codon, amino_acid in zip(product("TCAG", repeat=3), _AMINO_ACIDS, strict=True)
}

THREE_LETTERS: Mapping[str, str] = {
    "A": "Ala", "C": "Cys", "D": "Asp", "E": "Glu", "F": "Phe", "G": "Gly", "H": "His", "I": "Ile",
    "K": "Lys", "L": "Leu", "M": "Met", "N": "Asn", "P": "Pro", "Q": "Gln", "R": "Arg", "S": "Ser",
    "T": "Thr", "V": "Val", "W": "Trp", "Y": "Tyr", "X": "Xaa", "*": "Ter",
}  # fmt: skip


def translate(letters: str) -> str:
    """Return the amino acids of every whole codon, stops as "*"; a codon with an ambiguous base is X."""
    return "".join(CODE.get(letters[at : at + 3], "X") for at in range(0, len(letters) - 2, 3))
