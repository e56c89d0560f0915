"""A workspace with its first admin, on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clearance
from clearance.workspace import Clearance

OWNER = "ann"


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """Give a workspace without a worker."""
    with clearance.open(migrated_database_url, home=tmp_path, person=OWNER, worker=False) as found:
        yield found
