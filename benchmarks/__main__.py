"""`python -m benchmarks`: measures, prints one table, and writes `docs/benchmarks.md` with its chart."""

import argparse
import logging
from collections.abc import Callable, Sequence

from rich.console import Console

from benchmarks import (
    in_process,
    latency,
    many_parked,
    over_http,
    pages,
    report,
    research,
    review_cost,
    stored_bytes,
)
from benchmarks.figures import KINDS, QUICK, Figure, Sizes, Surroundings, use_server
from tests.databases import Databases

PARTS: dict[str, tuple[str, Callable[[Surroundings], list[Figure]]]] = {
    "review-cost": ("What a review adds to a turn", review_cost.measure),
    "stored-bytes": ("What a turn stores", stored_bytes.measure),
    "latency": ("From decision to tool", latency.measure),
    "many-parked": ("Many parked runs", many_parked.measure),
    "in-process": ("Creates and decisions in process", in_process.measure),
    "over-http": ("Creates and decisions over HTTP", over_http.measure),
    "pages": ("How soon a page can be used", pages.measure),
    "research": ("A research run", research.measure),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for."""
    asked = _parser().parse_args(arguments)
    if asked.postgres:
        use_server(asked.postgres)
    names = asked.only or list(PARTS)
    console = Console(width=None if Console().is_terminal else 150)
    found = measure(names, console, sizes=QUICK if asked.quick else Sizes(), kinds=asked.database or KINDS)
    report.show(found, console)
    if asked.quick or asked.only or asked.database:
        console.print("Nothing is written: not everything was measured.")
    else:
        report.write(found)
        console.print("Written: docs/benchmarks.md and docs/images/benchmarks.svg")


def measure(
    names: Sequence[str],
    console: Console,
    *,
    sizes: Sizes,
    kinds: Sequence[str] = KINDS,
    databases: Databases | None = None,
) -> dict[str, list[Figure]]:
    """Return the figures of these parts by their titles, telling on the console how far it is."""
    found = {}
    with console.status("") as status:
        here = Surroundings(sizes, tell=status.update, kinds=kinds, databases=databases)
        try:
            for number, name in enumerate(names):
                title, work = PARTS[name]
                console.print(f"[{number + 1}/{len(names)}] {title}", highlight=False, markup=False)
                found[title] = work(here)
        finally:
            here.close()
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes: see that it works, not how fast")
    parser.add_argument("--database", action="append", choices=KINDS, help="only this database")
    parser.add_argument("--postgres", metavar="URL", help="a server to use; default: one of its own")
    return parser


if __name__ == "__main__":
    # Failures raise; what the product logs meanwhile would only break the lines of the console.
    logging.getLogger("clearance").setLevel(logging.ERROR)
    main()
