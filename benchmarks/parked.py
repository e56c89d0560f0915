"""Many parked runs: made once for each database from the rows of a real one, and looked at by processes."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.figures import NAMES, Surroundings
from clearance.apps.chat import ReviewedChat
from clearance.review import Review
from clearance.store.database import Database
from tests.journeys.front import Front
from tests.journeys.parked import Copy, copies_of, measure, park
from tests.journeys.program import Stage, agent_of

SETTLE = 3.0
PATIENCE = 120.0


@contextmanager
def many(here: Surroundings, kind: str) -> Iterator[tuple[Front, list[Copy]]]:
    """Give a workspace with many parked runs, and their names; no worker runs."""
    folder = here.folder()
    front = Front(Stage(here.database(kind, folder), folder))
    try:
        here.tell(f"parking {here.sizes.parked:,} runs on {NAMES[kind]}")
        review = park_one(front)
        copies = copies_of(review, count=here.sizes.parked)
        park(front, review, copies)
        _look_after(front.opened.database)
        yield front, copies
    finally:
        front.close()


def _look_after(database: Database) -> None:
    """Have PostgreSQL do at once what it else does after so many new rows, while things are measured."""
    if not database.is_sqlite:
        url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


def park_one(front: Front) -> Review:
    """Park one run, by a worker that ends then."""
    with front.stage.open(worker=True) as opened:
        ReviewedChat(agent_of(opened, front.stage))
        return front.wait_until_parked(front.begin("the-first", "send a"))


def idle_share(stage: Stage, seconds: float) -> float:
    """Return the share of one processor that a worker needs while nothing happens."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.SimpleQueue()
    with running(_idle, stage, seconds, answers):
        share: float = answers.get()
    return share


def memory(stage: Stage) -> int:
    """Return the resident memory of a worker that has advanced something and listed what waits, in kB."""
    report = stage.home / "report"
    with running(measure, stage, report, to_its_end=True):
        pass
    _, _, resident = map(int, report.read_text().split())
    report.unlink()
    return resident


@contextmanager
def running(work: Callable[..., object], *arguments: object, to_its_end: bool = False) -> Iterator[None]:
    """Run something in a process of its own, which is ended afterwards or ends by itself."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments, daemon=True)
    process.start()
    try:
        yield
        if to_its_end:
            process.join(PATIENCE)
    finally:
        process.kill()
        process.join()


def _idle(stage: Stage, seconds: float, answers: Any) -> None:
    with stage.open(worker=True) as opened:
        agent_of(opened, stage)
        time.sleep(min(SETTLE, seconds))
        before, since = time.process_time(), time.monotonic()
        time.sleep(seconds)
        answers.put((time.process_time() - before) / (time.monotonic() - since))
