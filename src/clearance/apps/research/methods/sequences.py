"""Sequences as people hand them in: FASTA to upper-case letters, or a sentence that says what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

from clearance.apps.research.methods.genetic_code import translate
from clearance.errors import InvalidInputError

# The one-letter codes of IUPAC-IUB (nomenclature for incompletely specified bases, 1984), with what each
# stands for.
BASES: Mapping[str, str] = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
# Beyond the twenty: B, Z and J are ambiguous, X is unknown, U and O are coded by stops, "*" ends a protein.
PROTEIN_LETTERS = frozenset(AMINO_ACIDS + "BZJXUO*")

_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")

MOST_LETTERS = 1_000_000
_MOSTLY = 0.9
# A protein of this many letters that are all A, C, G or T is none.
_SURELY_DNA = 20


@dataclass(frozen=True)
class Record:
    """One sequence of a FASTA file: the first word of its title line, the rest, and its letters."""

    id: str
    title: str
    letters: str


def read_fasta(data: bytes, *, name: str) -> tuple[Record, ...]:
    """Return the records of a FASTA file, letters in upper case and without white space.

    `name` is what messages call the input. Raises `InvalidInputError` for a file that is empty, too large,
    not text, without title lines, with an empty sequence, or with a name twice.
    """
    if not data.strip():
        raise InvalidInputError(f"{name}: the file is empty. Give a FASTA file with a sequence.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{name}: the file is not text. Give a FASTA file.") from None
    if not text.lstrip().startswith(">"):
        raise InvalidInputError(f"{name}: the first line must be a title that starts with '>'.")
    records = [_record(part, name=name) for part in ("\n" + text.strip()).split("\n>")[1:]]
    if len({record.id for record in records}) < len(records):
        raise InvalidInputError(f"{name}: two sequences have the same name. Name each sequence once.")
    if sum(len(record.letters) for record in records) > MOST_LETTERS:
        raise InvalidInputError(f"{name}: more than {MOST_LETTERS:,} letters. Give a part of the sequence.")
    return tuple(records)


def read_dna(data: bytes, *, name: str) -> Record:
    """Return the one nucleotide sequence of a FASTA file, with U written as T.

    Raises `InvalidInputError` for letters outside the IUPAC code, for a protein, and as `read_fasta` does.
    """
    record = _only(read_fasta(data, name=name), name=name)
    letters = record.letters.replace("U", "T")
    wrong = next((at for at, letter in enumerate(letters) if letter not in BASES), None)
    if wrong is None:
        return Record(record.id, record.title, letters)
    if set(letters) <= PROTEIN_LETTERS and not is_mostly_bases(letters):
        raise InvalidInputError(
            f"{name}: this is a protein sequence (letter {letters[wrong]} at {wrong + 1}); "
            "give a nucleotide sequence."
        )
    raise InvalidInputError(
        f"{name}: {letters[wrong]!r} at position {wrong + 1} is not a nucleotide code of IUPAC. Correct it."
    )


def is_mostly_bases(letters: str) -> bool:
    """Whether nine of ten letters are A, C, G, T, U or N: then a letter that is no base is a slip in DNA."""
    return sum(letters.count(letter) for letter in "ACGTUN") >= _MOSTLY * len(letters)


def read_protein(data: bytes, *, name: str) -> Record:
    """Return the one protein sequence of a FASTA file, without a final "*".

    Raises `InvalidInputError` for letters outside the IUPAC code, a stop inside, DNA, and as `read_fasta`.
    """
    record = _only(read_fasta(data, name=name), name=name)
    letters = record.letters.removesuffix("*")
    wrong = next((at for at, letter in enumerate(letters) if letter not in PROTEIN_LETTERS - {"*"}), None)
    if not letters:
        raise InvalidInputError(f"{name}: the sequence has no letters but a stop.")
    if wrong is not None:
        raise InvalidInputError(
            f"{name}: {letters[wrong]!r} at position {wrong + 1} is not an amino acid code of IUPAC. "
            "Correct it."
        )
    if len(letters) >= _SURELY_DNA and set(letters) <= set("ACGTUN"):
        raise InvalidInputError(f"{name}: this is a nucleotide sequence; translate it first.")
    return Record(record.id, record.title, letters)


def read_alignment(data: bytes, *, name: str) -> tuple[Record, ...]:
    """Return the rows of an aligned FASTA file; "-" is a gap ("." is read as one).

    Raises `InvalidInputError` for fewer than two rows or rows of different lengths, and as `read_fasta`.
    """
    rows = [Record(row.id, row.title, row.letters.replace(".", "-")) for row in read_fasta(data, name=name)]
    if len(rows) < 2:
        raise InvalidInputError(f"{name}: an alignment has at least two rows; this one has {len(rows)}.")
    for row in rows:
        if len(row.letters) != len(rows[0].letters):
            raise InvalidInputError(
                f"{name}: the rows have different lengths ({len(rows[0].letters)} and {len(row.letters)}). "
                "Align the sequences first."
            )
        if not set(row.letters) <= PROTEIN_LETTERS | set(BASES) | {"-"}:
            raise InvalidInputError(f"{name}: a row has letters that are no code of IUPAC. Correct it.")
    return tuple(rows)


def read_coding(data: bytes, *, name: str) -> Record:
    """Return a coding sequence, whole or in part: whole codons in frame, no stop but at the end.

    Raises `InvalidInputError` for anything else, and as `read_dna` does.
    """
    record = read_dna(data, name=name)
    protein = translate(record.letters)
    if len(record.letters) % 3:
        raise InvalidInputError(
            f"{name}: the length {len(record.letters)} is not a multiple of 3, so this is no coding "
            "sequence. Scan it for open reading frames first."
        )
    if "*" in protein[:-1]:
        raise InvalidInputError(
            f"{name}: codon {protein.index('*') + 1} is a stop inside the sequence, so this is no coding "
            "sequence. Scan it for open reading frames first."
        )
    return record


def read_cds(data: bytes, *, name: str) -> Record:
    """Return a complete coding sequence: A, C, G, T only, from ATG to its stop.

    Raises `InvalidInputError` for anything else, because a position in a part would be called by a wrong
    name, and as `read_coding` does.
    """
    record = read_coding(data, name=name)
    if set(record.letters) - set("ACGT"):
        raise InvalidInputError(f"{name}: the coding sequence has letters other than A, C, G and T.")
    if not record.letters.startswith("ATG") or not translate(record.letters).endswith("*"):
        raise InvalidInputError(
            f"{name}: this is a part of a coding sequence; a complete one goes from ATG to its stop codon."
        )
    return record


def reverse_complement(letters: str) -> str:
    """Return the other strand, in its own direction."""
    return letters.translate(_COMPLEMENT)[::-1]


def _record(part: str, *, name: str) -> Record:
    title, _, body = part.partition("\n")
    words = title.split(maxsplit=1)
    if not words:
        raise InvalidInputError(f"{name}: a sequence has no name. Write one behind its '>'.")
    letters = "".join(body.split()).upper()
    if not letters:
        raise InvalidInputError(f"{name}: a sequence has no letters. Give the sequence below its title.")
    return Record(words[0], words[1].strip() if len(words) > 1 else "", letters)


def _only(records: tuple[Record, ...], *, name: str) -> Record:
    if len(records) != 1:
        raise InvalidInputError(f"{name}: the file has {len(records)} sequences. Give one.")
    return records[0]
