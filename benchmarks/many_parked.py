"""What ten thousand parked runs cost: an idle worker's processor time and memory, the first inbox page."""

from benchmarks import parked
from benchmarks.figures import NAMES, Aim, Figure, Surroundings, median, timed
from clearance.store import listing
from tests.journeys.front import Front
from tests.journeys.program import Stage

PAGE = 50
LOOKS = 15
MOST_CPU = Aim(2.0)
MOST_WAIT = Aim(50.0)


def measure(here: Surroundings) -> list[Figure]:
    """Park them on each database, and look."""
    figures = []
    for kind in here.kinds:
        folder = here.folder()
        here.tell(f"an empty workspace on {NAMES[kind]}")
        empty = parked.memory(Stage(here.database(kind, folder), folder))
        with parked.many(here, kind) as (front, _):
            figures += _figures(here, front, kind=kind, empty=empty)
    return figures


def _figures(here: Surroundings, front: Front, *, kind: str, empty: int) -> list[Figure]:
    where = f"{here.sizes.parked:,} parked, {NAMES[kind]}"
    here.tell(f"an idle worker, {where}")
    idle = parked.idle_share(front.stage, here.sizes.idle_seconds)
    page = median([timed(lambda: _first_page(front)).wall for _ in range(LOOKS)])
    full = parked.memory(front.stage)
    return [
        Figure(f"an idle worker, {where}", idle * 100, "% of one CPU", aim=MOST_CPU),
        Figure(f"first inbox page, {where}", page, "ms", aim=MOST_WAIT),
        Figure(f"memory of a worker, 0 parked, {NAMES[kind]}", empty / 1024, "MiB"),
        Figure(f"memory of a worker, {where}", full / 1024, "MiB"),
    ]


def _first_page(front: Front) -> None:
    with front.opened.database.read() as tx:
        assert listing.inbox(tx, limit=PAGE)
