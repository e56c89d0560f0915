"""A served workspace on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.served import Served
from tests.web.talking import Gates


@pytest.fixture
def served(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """Give a workspace with a worker, and the application over it."""
    with Served.open(migrated_database_url, home=tmp_path) as found:
        yield found


@pytest.fixture
def gates() -> Iterator[Gates]:
    """Give a maker of events for models to wait for; all are set at the end of the test."""
    made = Gates()
    yield made
    for gate in made.made:
        gate.set()
