"""Records are held to each other, and shipped files to their checksums."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import clearance
from clearance.apps.research.sources.agreement import translates_to
from clearance.apps.research.sources.bibliography import Entry, distinct
from tests.research.network import NOON


@pytest.mark.parametrize(
    ("cds", "protein", "agree"),
    [
        ("ATGGCCTAA", "MA", True),
        ("ATGGCC", "MA", True),
        ("ATGGCCTAA", "MA*", True),
        ("CTGGCCTAA", "MA", True),
        ("ATGTGAGCCTAA", "MUA", True),
        ("ATGTGAGCCTAA", "MCA", False),
        ("ATGTAAGCCTAA", "MA", False),
        ("ATGGCCTAA", "MG", False),
        ("ATGGCCTAA", "M", False),
        ("ATGGCCT", "MA", False),
        ("ATGNNNTAA", "MX", True),
    ],
)
def test_a_coding_sequence_is_that_of_its_protein_codon_by_codon(cds: str, protein: str, agree: bool) -> None:
    assert translates_to(cds, protein) is agree


def test_a_publication_is_listed_once_and_retracted_when_any_source_says_so() -> None:
    entry = Entry("1", "A title", "Doe J", "A journal", "2020", "PubMed", NOON)
    assert distinct([entry, replace(entry, pmid="2"), replace(entry, retracted=True)]) == (
        replace(entry, retracted=True),
        replace(entry, pmid="2"),
    )


def test_the_checksum_of_an_entry_is_of_what_it_says_not_of_where_it_was_found() -> None:
    entry = Entry("1", "A title", "Doe J", "A journal", "2020", "PubMed", NOON)
    assert replace(entry, source="Europe PMC", stale=True).sha256 == entry.sha256
    assert replace(entry, title="Another title").sha256 != entry.sha256


_FIND = """
import datetime, sys
from clearance.apps.research.sources.shipped_genes import shipped_records
try:
    shipped_records("EGFR", now=datetime.datetime.now(datetime.UTC))
except Exception as error:
    print(type(error).__name__, error)
"""


def _installed_copy(folder: Path) -> Path:
    """Return the data folder of a copy of the package, which a test may damage."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(clearance.__file__).parent, folder / "clearance", ignore=ignored)
    return folder / "clearance" / "apps" / "research" / "data"


def _said(folder: Path) -> str:
    # Run from the folder: `-c` puts it before every other place of modules.
    done = subprocess.run(
        [sys.executable, "-c", _FIND], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_shipped_file_that_was_changed_stops_the_run(tmp_path: Path) -> None:
    data = _installed_copy(tmp_path)
    assert _said(tmp_path) == ""
    path = data / "EGFR.P00533.faa"
    path.write_bytes(path.read_bytes().replace(b"MRPSGTAG", b"MRPSGTAA"))
    assert _said(tmp_path).startswith("RecordMismatchError The shipped file EGFR.P00533.faa was changed")
    path.unlink()
    assert "was changed or removed" in _said(tmp_path)


def test_a_shipped_protein_that_its_mrna_does_not_code_for_stops_the_run(tmp_path: Path) -> None:
    data = _installed_copy(tmp_path)
    path = data / "EGFR.P00533.faa"
    path.write_bytes(path.read_bytes().replace(b"MRPSGTAG", b"MRPSGTAA"))
    manifest = json.loads((data / "manifest.json").read_bytes())
    for entry in manifest:
        if entry["file"] == path.name:
            entry["file_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (data / "manifest.json").write_text(json.dumps(manifest))
    assert "does not code for P00533" in _said(tmp_path)
