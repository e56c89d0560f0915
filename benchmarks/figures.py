"""Figures: what one benchmark found, what was aimed at, and how large everything is that is measured."""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.databases import SERVER_VARIABLE, Databases

KINDS = ("sqlite", "postgresql")
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


@dataclass(frozen=True)
class Aim:
    """What a figure should be: at most or at least `limit`, for itself or as a share of LangChain's."""

    limit: float
    at_least: bool = False
    of_langchain: bool = False

    def is_met(self, value: float) -> bool:
        """Whether a value is as good as this."""
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Figure:
    """One line of the report: medians of this product and, where it does the same, of LangChain's."""

    what: str
    value: float
    unit: str
    langchain: float | None = None
    aim: Aim | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The value as a share of LangChain's."""
        return None if not self.langchain else self.value / self.langchain

    @property
    def is_met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        if self.aim is None:
            return None
        judged = self.ratio if self.aim.of_langchain else self.value
        return judged is not None and self.aim.is_met(judged)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    samples: int = 25
    histories: tuple[int, ...] = (10, 200, 1000)
    long_thread: int = 200
    decisions: int = 50
    pause: float = 0.2
    parked: int = 10_000
    idle_seconds: float = 10.0
    clients: tuple[int, ...] = (1, 16, 64)
    batches: int = 5
    of_a_batch: int = 320
    research_runs: int = 3
    steps: int = 100


QUICK = Sizes(
    samples=1,
    histories=(10,),
    long_thread=10,
    decisions=2,
    pause=0.0,
    parked=20,
    idle_seconds=0.2,
    clients=(2,),
    batches=1,
    of_a_batch=4,
    research_runs=1,
    steps=2,
)


class Surroundings:
    """Where the benchmarks run: folders and databases of their own. `tell` is told how far they are."""

    def __init__(
        self,
        sizes: Sizes,
        *,
        tell: Callable[[str], None] = lambda _: None,
        kinds: Sequence[str] = KINDS,
        databases: Databases | None = None,
    ) -> None:
        self.sizes = sizes
        self.tell = tell
        self.kinds = kinds
        # Short, because a socket of the server lies in it.
        self._folder = Path(tempfile.mkdtemp(prefix="cb-"))
        self._own = Databases(self._folder) if databases is None else None
        self._databases: Databases = databases or Databases(self._folder)

    def folder(self) -> Path:
        """Return a new folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def database(self, kind: str, folder: Path) -> str:
        """Return the URL of a new database with the product's tables."""
        return self._databases.migrated(kind, folder)

    def close(self) -> None:
        """Stop the server, if it is one of this run, and remove every folder."""
        if self._own is not None:
            self._own.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def use_server(url: str) -> None:
    """Use a PostgreSQL server that runs already, as a user who may create databases."""
    os.environ[SERVER_VARIABLE] = url


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass(frozen=True)
class Taken:
    """What something took, in milliseconds: on the clock, and of all processors in this process."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Taken:
    """Do something, and return what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Taken((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)
