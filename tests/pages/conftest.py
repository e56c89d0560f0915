"""The pages of a workspace on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.site import Site
from tests.web.talking import Gates


@pytest.fixture
def site(migrated_database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Give a workspace without a worker, and its pages."""
    with Site.open(migrated_database_url, home=tmp_path) as found:
        yield found


@pytest.fixture
def busy(migrated_database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Give a workspace with a worker, and its pages."""
    with Site.open(migrated_database_url, home=tmp_path, worker=True) as found:
        yield found


@pytest.fixture
def gates() -> Iterator[Gates]:
    """Give a maker of events for models to wait for; all are set at the end of the test."""
    made = Gates()
    yield made
    for gate in made.made:
        gate.set()
