"""The organisms that a symbol can be looked up in."""

import re
from dataclasses import dataclass

from clearance.errors import InvalidInputError

_SYMBOL = re.compile(r"[A-Za-z0-9-]{1,32}")


@dataclass(frozen=True)
class Organism:
    """A species by its scientific name, NCBI taxon and name at Ensembl."""

    name: str
    taxon: int
    ensembl: str


ORGANISMS = {
    "human": Organism("Homo sapiens", 9606, "homo_sapiens"),
    "mouse": Organism("Mus musculus", 10090, "mus_musculus"),
    "rat": Organism("Rattus norvegicus", 10116, "rattus_norvegicus"),
    "zebrafish": Organism("Danio rerio", 7955, "danio_rerio"),
}


def organism_named(name: str) -> Organism:
    """Return the organism of a common or scientific name. Raises `InvalidInputError` for any other."""
    wanted = name.strip().replace("_", " ").lower()
    for common, organism in ORGANISMS.items():
        if wanted in (common, organism.name.lower(), str(organism.taxon)):
            return organism
    raise InvalidInputError(f"The organism {name!r} is not known. Name one of: {', '.join(ORGANISMS)}.")


def check_symbol(symbol: str) -> str:
    """Return a symbol without space around it. Raises `InvalidInputError` for what no symbol can be."""
    stripped = symbol.strip()
    if not _SYMBOL.fullmatch(stripped):
        raise InvalidInputError(
            "A gene symbol has 1 to 32 letters, digits and hyphens, such as BRCA1. "
            "For a sequence without a symbol give --fasta."
        )
    return stripped
