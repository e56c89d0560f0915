"""What tests of the gate and the ledger ask for: a bench on each kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.bench import Bench


@pytest.fixture
def bench(migrated_database_url: str, tmp_path: Path) -> Iterator[Bench]:
    """A workspace with people who decide, and the default policy: what has effects is held."""
    made = Bench(migrated_database_url, tmp_path / "home")
    made.hire()
    made.register()
    yield made
    made.close()


@pytest.fixture
def alone(migrated_database_url: str, tmp_path: Path) -> Iterator[Bench]:
    """A workspace of one person, who decides what they asked for."""
    made = Bench(migrated_database_url, tmp_path / "home")
    made.register()
    yield made
    made.close()
