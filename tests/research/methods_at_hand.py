"""Runs a method on shipped data or on a few letters, as a step would."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from clearance.apps.research.methods.cards import card
from clearance.apps.research.methods.produced import Produced
from clearance.apps.research.step import run_template

SHIPPED = Path(str(files("clearance.apps.research"))) / "data"

_folder = os.environ.get("CLEARANCE_TEST_DATA")
# The full BRCA1 records, which are not shipped.
FULL_DATA = Path(_folder) if _folder and (Path(_folder) / "BRCA1.cds.fna").is_file() else None


@dataclass(frozen=True)
class Made:
    """What a method gave: `of` is the content of its JSON file of that name."""

    produced: Produced

    def of(self, name: str) -> Any:
        """Return a JSON output."""
        return json.loads(self.produced.files[name])


def run(method: str, params: Mapping[str, Any] | None = None, **inputs: bytes | str) -> Made:
    """Run a method. A text input is the name of a shipped file."""
    read = {
        name: (SHIPPED / given).read_bytes() if isinstance(given, str) else given
        for name, given in inputs.items()
    }
    return Made(run_template(method, read, params=card(method).check_params(params or {})))


def fasta(letters: str) -> bytes:
    """Return a FASTA file with one sequence."""
    return f">one\n{letters}\n".encode()


def cds_of(gene_file: str) -> bytes:
    """Return the coding sequence of a shipped mRNA."""
    return run("orf-scan", sequence=gene_file).produced.files["cds.fna"]
