"""A person's own FASTA file is taken as it is, or refused with a sentence that says what is wrong."""

from pathlib import Path

import pytest

from clearance.apps.research.errors import SequenceInputError
from clearance.apps.research.http import Mode
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.own_sequence import LARGEST_FILE, read_own
from clearance.apps.research.sources.sequence import find_sequences
from tests.research.documented import CDS, MRNA, PROTEIN
from tests.research.network import NOON, Clock, fetcher


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f">mine\n{MRNA}\n", "dna"),
        (f">mine\n{CDS}\n", "cds"),
        (f">mine\n{PROTEIN}\n", "protein"),
        (f">mine\n{CDS.replace('T', 'U').lower()}\n", "cds"),
        (">mine\nACGTNNRYACGTACGTACGTACGTACGTACGT\n", "dna"),
    ],
)
def test_the_letters_say_what_it_is(content: str, kind: str) -> None:
    own = read_own(content.encode(), now=NOON)
    assert own.record.kind == kind
    assert own.content == content.encode()
    assert own.record.source == "user"


BAD = {
    "an empty file": (b"", None, "empty"),
    "white space": (b"\n  \n", None, "empty"),
    "no title": (b"ACGT\n", None, "title"),
    "a title alone": (b">mine\n", None, "no letters"),
    "letters outside the code": (b">mine\nACGT!CGT\n", None, "not a nucleotide code"),
    "an X in DNA, which is an amino acid": (
        f">mine\n{CDS[:40]}X{CDS[41:]}\n".encode(),
        None,
        "'X' at position 41",
    ),
    "an E at the end of DNA": (f">mine\n{CDS}E\n".encode(), None, f"'E' at position {len(CDS) + 1}"),
    "a Q in RNA": (b">mine\n" + b"ACGU" * 10 + b"Q\n", None, "'Q' at position 41"),
    "a digit": (b">mine\nACG7ACGT\n", "dna", "'7' at position 4"),
    "a protein given as DNA": (f">mine\n{PROTEIN}\n".encode(), "dna", "this is a protein sequence"),
    "DNA given as protein": (f">mine\n{CDS}\n".encode(), "protein", "nucleotide"),
    "two sequences": (b">a\nACGT\n>b\nACGT\n", None, "2 sequences"),
    "no text": (b"\xff\xfe\x00\x01", None, "not text"),
    "too many letters": (b">mine\n" + b"A" * 1_000_001, None, "letters"),
    "a huge file": (b">mine\n" + b"A" * LARGEST_FILE, None, "at most"),
    "an unknown kind": (b">mine\nACGT\n", "rna", "dna or protein"),
}


@pytest.mark.parametrize(("content", "kind", "message"), BAD.values(), ids=BAD.keys())
def test_a_file_that_cannot_be_used_is_refused(content: bytes, kind: str | None, message: str) -> None:
    with pytest.raises(SequenceInputError, match=message):
        read_own(content, kind=kind, now=NOON)


def test_it_comes_before_every_other_source_and_says_that_nobody_confirmed_it(tmp_path: Path) -> None:
    with fetcher(tmp_path, Clock(), mode=Mode.OFFLINE) as fetching:
        found = find_sequences(
            "MINE1", fetcher=fetching, endpoints=Endpoints(), fasta=f">x1 a note\n{CDS}\n".encode()
        )
    assert [(each.id, each.accession) for each in found.records] == [("own", "x1"), ("pkinase", "PF00069.17")]
    assert found.warnings[0] == "own is the user's own sequence x1; nobody confirmed it."
