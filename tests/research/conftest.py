"""What tests of the pipeline share: a workspace in which runs go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.research.pipelines import Lab


@pytest.fixture
def lab(migrated_database_url: str, tmp_path: Path) -> Iterator[Lab]:
    """A workspace with the pipeline and a worker, on each database."""
    with Lab.open(migrated_database_url, home=tmp_path) as opened:
        yield opened
