"""Cleared functions that several processes call, and what calls them there.

Each writes down what it did in a file (`book`), so that a test can count it whoever did it, and however that
process ended.
"""

import json
import threading
from collections import Counter
from pathlib import Path

import clearance
from clearance import killpoints
from clearance.errors import ClearanceError
from tests.journeys.processes import PATIENCE, until


@clearance.cleared(key=lambda order, **_: f"pay-{order}", name="refunds.pay")
def pay(order: int, book: str) -> dict[str, int]:
    """Pay an order back."""
    return {"order": order, "entry": _write_down(book, f"paid {order}")}


@clearance.cleared(key=lambda order, **_: f"hang-{order}", name="refunds.hang", timeout=1.5)
def hang(order: int, book: str) -> str:
    """Begin to pay an order back, and never come to its end."""
    _write_down(book, f"began {order}")
    threading.Event().wait(PATIENCE)
    return "never"


@clearance.cleared(key=lambda order, **_: f"give-{order}", name="refunds.give", timeout=1.5)
def give(order: int, book: str) -> str:
    """Pay an order back, within a second or so."""
    _write_down(book, f"gave {order}")
    return "given"


# It has time enough on a busy machine: whoever takes the call over must come to its end in it.
@clearance.cleared(key=lambda order, **_: f"post-{order}", name="refunds.post", timeout=5.0, idempotent=True)
def post(order: int, book: str) -> str:
    """Pay an order back in a way that may be done again; the first time it does not come back."""
    if _write_down(book, f"posted {order}") == 1:
        threading.Event().wait(PATIENCE)
    return "posted"


FUNCTIONS = {function.__name__: function for function in (pay, hang, give, post)}


def called(function: str, *, order: int, book: Path, threads: int = 1) -> Counter[str]:
    """Call a function in so many threads at once; return what they gave, and how often."""
    given: Counter[str] = Counter()
    together = threading.Barrier(threads)

    def call() -> None:
        together.wait()
        try:
            given[json.dumps(FUNCTIONS[function](order, str(book)))] += 1
        except ClearanceError as error:
            given[type(error).__name__] += 1

    callers = [threading.Thread(target=call) for _ in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return given


def call_in_turns(url: str, home: Path, function: str, book: Path, threads: int, turns: int) -> None:
    """Call in a process: each turn begins with the file `<book>.turn-<n>`, and its end is told."""
    with clearance.open(url, home=home, person="ann", worker=False):
        for turn in range(turns):
            _write_down(str(said_in(book)), json.dumps({}))
            until(book.with_suffix(f".turn-{turn}").exists)
            given = called(function, order=1, book=book, threads=threads)
            _write_down(str(said_in(book)), json.dumps(given))


def call_and_die(url: str, home: Path, function: str, book: Path, place: str) -> None:
    """Call in a process that is killed at a place."""
    with clearance.open(url, home=home, person="ann", worker=False):
        killpoints.watch(killpoints.signalling(place))
        called(function, order=1, book=book)


def said_in(book: Path) -> Path:
    """Return the file in which the processes say that they are ready, and what their calls gave."""
    return book.with_suffix(".said")


def entries(book: Path) -> list[str]:
    """Return what was written down."""
    return book.read_text().splitlines() if book.exists() else []


def _write_down(book: str, line: str) -> int:
    with Path(book).open("a") as file:
        file.write(f"{line}\n")
    return len(entries(Path(book)))
