"""Cleared functions that several processes call, and a process that calls one of them.

Each writes down what it did in a file (`book`), so that a test can count it whoever did it, and however that
process ended.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import clearance
from clearance.errors import ClearanceError

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
"""Seconds after which something that was awaited will not come any more."""


@clearance.cleared(key=lambda order, **_: f"pay-{order}", name="refunds.pay")
def pay(order: int, book: str) -> dict[str, int]:
    """Pay an order back."""
    _write_down(book, f"paid {order}")
    return {"order": order, "entry": _entries(book)}


@clearance.cleared(key=lambda order, **_: f"hang-{order}", name="refunds.hang", timeout=1.5)
def hang(order: int, book: str) -> str:
    """Begin to pay an order back, and never come to its end."""
    _write_down(book, f"began {order}")
    threading.Event().wait(PATIENCE)
    return "never"


@clearance.cleared(key=lambda order, **_: f"post-{order}", name="refunds.post", timeout=1.5, idempotent=True)
def post(order: int, book: str) -> str:
    """Pay an order back in a way that may be done again; the first time it does not come back."""
    _write_down(book, f"posted {order}")
    if _entries(book) == 1:
        threading.Event().wait(PATIENCE)
    return "posted"


FUNCTIONS = {function.__name__: function for function in (pay, hang, post)}


def start_calling(
    url: str, home: Path, *, function: str, order: int, book: Path, threads: int = 1
) -> subprocess.Popen[str]:
    """Start a process that calls a function in so many threads, once `<book>.go` is there."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    arguments = [url, str(home), function, str(order), str(book), str(threads)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.refunds", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


def let_go(book: Path) -> None:
    """Let the processes that wait for it call."""
    book.with_suffix(".go").touch()


def until_ready(book: Path, *, processes: int) -> None:
    """Wait until so many processes have opened the workspace and are about to call."""
    ready = book.with_suffix(".ready")
    _until(lambda: ready.exists() and len(ready.read_text().splitlines()) == processes)


def until_written(book: Path) -> None:
    """Wait until a function has begun."""
    _until(book.exists)


def said(process: subprocess.Popen[str]) -> Counter[str]:
    """Return what the calls of a process gave, and how often."""
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return Counter(json.loads(output))


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


def _write_down(book: str, line: str) -> None:
    with Path(book).open("a") as file:
        file.write(f"{line}\n")


def _entries(book: str) -> int:
    return len(Path(book).read_text().splitlines())


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def _main(url: str, home: str, function: str, order: str, book: str, threads: str) -> None:
    with clearance.open(url, home=home, person="ann", worker=False):
        _write_down(str(Path(book).with_suffix(".ready")), "ready")
        _until(Path(book).with_suffix(".go").exists)
        given = called(function, order=int(order), book=Path(book), threads=int(threads))
    print(json.dumps(given))


if __name__ == "__main__":
    _main(*sys.argv[1:])
