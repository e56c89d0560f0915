"""A served workspace on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Databases
from tests.web.served import Served
from tests.web.talking import Gates
from tests.web.two_tenants import Tenants


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


@pytest.fixture(scope="module")
def tenants(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """Give both groups of people, served, without limits on how much anybody does."""
    folder: Path = tmp_path_factory.mktemp("tenants")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AGENT_CALLS", "AGENT_SAME_CALLS", "PERSON_DECISIONS"):
            patch.setenv(f"CLEARANCE_{name}", "0")
        with Tenants.open(databases.migrated("sqlite", folder), home=folder) as found:
            yield found
