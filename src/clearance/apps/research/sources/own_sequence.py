"""The sequence that a person hands in: it comes before every other source."""

from datetime import datetime

from clearance.apps.research.errors import SequenceInputError
from clearance.apps.research.methods.sequences import (
    MOST_LETTERS,
    Record,
    is_mostly_bases,
    read_cds,
    read_dna,
    read_protein,
)
from clearance.apps.research.sources.records import Found, found
from clearance.errors import InvalidInputError

LARGEST_FILE = MOST_LETTERS * 2
"""Bytes: more than any sequence that is taken, with its line ends and title."""


def read_own(content: bytes, *, kind: str | None = None, now: datetime) -> Found:
    """Return the one sequence of a person's FASTA file.

    `kind` is `dna` or `protein`; without it the letters decide: DNA when nine of ten are A, C, G, T, U or N.
    A complete coding sequence is of the kind `cds`. Raises `SequenceInputError` for a file that is empty, too
    large, not FASTA, of several sequences, with letters outside the IUPAC codes, or of the other kind.
    """
    if len(content) > LARGEST_FILE:
        raise SequenceInputError(
            f"--fasta: the file has {len(content):,} bytes; at most {LARGEST_FILE:,} are taken. "
            "Give a part of it."
        )
    if kind not in (None, "dna", "protein"):
        raise SequenceInputError(f"The kind of a sequence is dna or protein, not {kind!r}.")
    try:
        kind, record = _read(content, kind)
    except InvalidInputError as error:
        raise SequenceInputError(str(error)) from None
    return found(
        content,
        id="own",
        kind=kind,
        file="own.fasta",
        accession=record.id,
        description=record.title,
        length=len(record.letters),
        source="user",
        licence="the user's own",
        retrieved_at=now,
    )


def _read(content: bytes, kind: str | None) -> tuple[str, Record]:
    """Return the kind of the sequence, as said or as its letters say, and the sequence."""
    dna = None if kind == "protein" else _dna(content, sure=kind == "dna")
    if dna is None:
        return "protein", _protein(content)
    return ("cds" if _is_cds(content) else "dna"), dna


def _protein(content: bytes) -> Record:
    return read_protein(content, name="--fasta")


def _dna(content: bytes, *, sure: bool) -> Record | None:
    """Return the DNA; None for what is rather a protein, unless the person is `sure`: then it is an error."""
    try:
        record = read_dna(content, name="--fasta")
    except InvalidInputError as error:
        if sure or "this is a protein sequence" not in str(error):
            raise
        return None
    return record if sure or is_mostly_bases(record.letters) else None


def _is_cds(content: bytes) -> bool:
    try:
        read_cds(content, name="--fasta")
    except InvalidInputError:
        return False
    return True
