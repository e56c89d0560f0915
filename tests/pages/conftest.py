"""The pages of a workspace on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.site import Site


@pytest.fixture
def site(migrated_database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Give a workspace without a worker, and its pages."""
    with Site.open(migrated_database_url, home=tmp_path) as found:
        yield found
