"""What every test can ask for: databases of both kinds, and how much of the suite is wanted."""

import gc
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.databases import KINDS, Databases

_FOLDER = pytest.StashKey[Path]()

# The machine that runs the tests may be busy: an example that takes long is no failure.
settings.register_profile("clearance", deadline=None, print_blob=True)
settings.load_profile("clearance")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the nightly form of the suite."""
    parser.addoption("--nightly", action="store_true", help="repeat races and crashes many times more")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks; make the session's shared folder, or learn its place from the process that made it."""
    # Begun in a shell's background, this and all that it starts would not hear the Ctrl-C of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "nightly: a case that the day has a sample of")
    config.addinivalue_line("markers", "sqlite_by_day(but=…): PostgreSQL has its turn with --nightly")
    worker = getattr(config, "workerinput", None)
    if worker is None:
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="clearance-tests-"))
    else:
        config.stash[_FOLDER] = Path(worker["clearance_folder"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put what needs the browser last; leave to the night what needs no second database by day."""
    # Playwright's loop counts as running in its thread from the first page on: no later test of the
    # same process could call `asyncio.run`. Workers of pytest-xdist take tests in this order, too.
    items.sort(key=lambda item: item.path.parent.name == "browser")
    if config.getoption("--nightly"):
        return
    left = {item for item in items if _is_left_to_the_night(item)}
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make, not among all that was imported: a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)


def _is_left_to_the_night(item: pytest.Item) -> bool:
    """Whether this is the second database's turn; `but` names tests and cases that have it by day, too."""
    mark, spec = item.get_closest_marker("sqlite_by_day"), getattr(item, "callspec", None)
    if mark is None or spec is None or spec.params.get("database_kind") != "postgresql":
        return False
    cases = (str(each) for each in spec.params.values() if isinstance(each, str))
    here = {getattr(item, "originalname", item.name), *cases}
    return here.isdisjoint(mark.kwargs.get("but", ()))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Tell a worker of pytest-xdist where the shared folder is."""
    folder = node.config.stash[_FOLDER]  # type: ignore[attr-defined]  # xdist has no types
    node.workerinput["clearance_folder"] = str(folder)  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the session shares, once, after all its processes."""
    folder = config.stash.get(_FOLDER, None)
    if folder is not None and not hasattr(config, "workerinput"):
        Databases(folder).close()


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config) -> Databases:
    """The session's databases; a test that needs several makes them here."""
    return Databases(pytestconfig.stash[_FOLDER])


@pytest.fixture(scope="session")
def nightly(pytestconfig: pytest.Config) -> bool:
    """Whether this is the nightly form, which repeats what depends on luck many times more."""
    return bool(pytestconfig.getoption("--nightly"))


@pytest.fixture(params=KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    """`sqlite`, then `postgresql`."""
    return str(request.param)


@pytest.fixture
def database_url(databases: Databases, database_kind: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables, on each kind of database."""
    url = databases.empty(database_kind, tmp_path)
    yield url
    if database_kind == "postgresql":
        databases.drop(url)


@pytest.fixture
def migrated_database_url(databases: Databases, database_kind: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with the product's tables, on each kind of database."""
    url = databases.migrated(database_kind, tmp_path)
    yield url
    if database_kind == "postgresql":
        databases.drop(url)


@pytest.fixture
def new_postgres_database(databases: Databases) -> Iterator[Callable[[], str]]:
    """A call that returns the URL of one more PostgreSQL database without tables."""
    made: list[str] = []

    def new() -> str:
        made.append(databases.new_postgres())
        return made[-1]

    yield new
    for url in made:
        databases.drop(url)
