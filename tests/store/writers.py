"""Many writers of the trail at once, in threads and in processes, and a reader that follows them."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from clearance.audit import AuditKind, Entry
from clearance.notary import SigningKey
from clearance.store import audit
from clearance.store.database import Database

PAGE = 50


def write_one(database: Database, subject: str, *, parts: int = 1) -> None:
    """Write entries about a subject, several in one transaction."""
    with database.write() as tx:
        now = database.now(tx)
        for part in range(parts):
            audit.write(tx, AuditKind.CALL_HELD, subject, actor="ann", now=now, facts={"part": part})


def write_many(database: Database, name: str, *, transactions: int) -> None:
    """Write two entries in each of some transactions, one after another."""
    for number in range(transactions):
        write_one(database, f"{name}/{number}", parts=2)


def write_from_threads(url: str, name: str, threads: int, transactions: int) -> None:
    """Let several threads of this process write at once."""
    database = Database(url)
    together = threading.Barrier(threads)

    def work(number: int) -> None:
        together.wait(timeout=30)
        write_many(database, f"{name}/{number}", transactions=transactions)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    database.close()


@contextmanager
def writing_processes(url: str, *, processes: int, threads: int, transactions: int) -> Iterator[None]:
    """Let processes with several threads each write while the block runs; wait for them at its end."""
    spawn = multiprocessing.get_context("spawn")
    started = [
        spawn.Process(target=write_from_threads, args=(url, f"process-{number}", threads, transactions))
        for number in range(processes)
    ]
    for process in started:
        process.start()
    yield
    for process in started:
        process.join(timeout=60)
        assert process.exitcode == 0


def _load_key(path: Path, threads: int, found: "multiprocessing.Queue[str]") -> None:
    together = threading.Barrier(threads)

    def work(_: int) -> None:
        together.wait(timeout=30)
        found.put(SigningKey.load_or_create(path).key_id)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def keys_of_processes(path: Path, *, processes: int, threads: int) -> list[str]:
    """Return the key that each thread of each process loads or creates, all of them at once."""
    spawn = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[str] = spawn.Queue()
    started = [spawn.Process(target=_load_key, args=(path, threads, found)) for _ in range(processes)]
    for process in started:
        process.start()
    keys = [found.get(timeout=60) for _ in range(processes * threads)]
    for process in started:
        process.join(timeout=60)
    return keys


@contextmanager
def repeating(work: Callable[[], object]) -> Iterator[None]:
    """Do the work again and again in a thread while the block runs; an error of it is raised at the end."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.is_set():
            work()
            ended.wait(0.005)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(loop)
        try:
            yield
        finally:
            ended.set()
        future.result(timeout=60)


def follow(database: Database, *, until: int) -> list[Entry]:
    """Return what a reader with a cursor on `seq` has seen, when it has seen so many entries."""
    seen: list[Entry] = []
    quiet = threading.Event()
    give_up = time.monotonic() + 60
    while len(seen) < until and time.monotonic() < give_up:
        cursor = seen[-1].seq or 0 if seen else 0
        with database.read() as tx:
            page = audit.read_after(tx, cursor, limit=PAGE)
        seen += page
        if not page:
            quiet.wait(0.005)
    return seen
