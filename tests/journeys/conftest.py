"""A stage for each journey: a database of each kind, processes to kill, and a door for the person."""

from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.journeys.front import Front
from tests.journeys.processes import Processes, server
from tests.journeys.program import Stage


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the night what is marked so."""
    if config.getoption("--nightly"):
        return
    left = [item for item in items if item.get_closest_marker("nightly")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def fork_server() -> ForkServerContext:
    """The process that the others are forked from."""
    return server()


@pytest.fixture
def stage(migrated_database_url: str, tmp_path: Path) -> Stage:
    """A workspace on each kind of database."""
    return Stage(migrated_database_url, tmp_path)


@pytest.fixture
def processes(stage: Stage, fork_server: ForkServerContext) -> Iterator[Processes]:
    """The processes of one test; what they said is shown when it fails."""
    log = stage.home / "said"
    started = Processes(fork_server, log)
    yield started
    started.end()
    print(log.read_text() if log.exists() else "")


@pytest.fixture
def front(stage: Stage) -> Iterator[Front]:
    """The tests' own process as the door: it sends and decides, and advances nothing."""
    opened = Front(stage)
    yield opened
    opened.close()
