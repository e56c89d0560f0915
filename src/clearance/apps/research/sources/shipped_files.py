"""The data that is shipped: each file is held to the checksum of its manifest before it is used."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from clearance.apps.research.errors import RecordMismatchError


@cache
def manifest() -> Mapping[str, Mapping[str, Any]]:
    """Return what is known about each shipped file: accession, licence, sha256 and how it was checked."""
    entries = json.loads(_data().joinpath("manifest.json").read_bytes())
    return {entry["file"]: entry for entry in entries}


def shipped_bytes(name: str) -> bytes:
    """Return a shipped file. Raises `RecordMismatchError` when it is not the one of the manifest."""
    path = _data().joinpath(name)
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != manifest()[name]["file_sha256"]:
        raise RecordMismatchError(
            f"The shipped file {name} was changed or removed. Install the package again; the run stops."
        )
    return content


def _data() -> Any:
    return files("clearance.apps.research").joinpath("data")
