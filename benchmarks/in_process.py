"""How many runs a process can start in a second, and how many decisions it can take, by 1 to 64 threads."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from benchmarks import parked
from benchmarks.figures import Aim, Figure, Surroundings, median
from benchmarks.load import Load, put_load
from clearance import turns
from clearance.ledger import new_id
from tests.journeys.front import Front
from tests.journeys.program import PERSON

APPROVE = [{"type": "approve"}]
CREATES = Aim(1500.0, at_least=True)
DECISIONS = Aim(800.0, at_least=True)


def measure(here: Surroundings) -> list[Figure]:
    """Start runs, and decide parked ones, without a worker, on SQLite."""
    figures: list[Figure] = []
    with parked.many(here, "sqlite") as (front, copies):
        numbers, reviews = count(), iter(copy.review for copy in copies)
        creates: Callable[[], None] = lambda: _create(front, f"new-{next(numbers)}")  # noqa: E731
        decisions: Callable[[], None] = lambda: _decide(front, next(reviews))  # noqa: E731
        for what, work, aim in (("creates", creates, CREATES), ("decisions", decisions, DECISIONS)):
            for clients in here.sizes.clients:
                here.tell(f"{what} by {clients} threads")
                figures += figures_of(f"{what} in process", put_load(work, clients, here.sizes), aim=aim)
    return figures


def figures_of(what: str, loads: Iterable[Load], *, aim: Aim, slowest: Aim | None = None) -> Iterator[Figure]:
    """Give the medians of some loads of one kind: how many a second, and what 99 of 100 did not exceed."""
    found = list(loads)
    clients = f"{found[0].clients} client{'s' if found[0].clients > 1 else ''}"
    yield Figure(f"{what}, {clients}", median([load.rate for load in found]), "a second", aim=aim)
    yield Figure(f"{what}, {clients}, p99", median([load.p99 for load in found]), "ms", aim=slowest)


def _create(front: Front, thread: str) -> None:
    turns.start(front.opened.ledger, thread, "send a", run_id=new_id(), program="chat", by=PERSON)


def _decide(front: Front, review: str) -> None:
    front.opened.gate.decide(review, APPROVE, by=PERSON, version=1)
