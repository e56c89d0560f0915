"""Load: the same work, over and over, by some threads at a time."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.figures import Sizes, percentile


@dataclass(frozen=True)
class Load:
    """One batch: how many a second, and the time in milliseconds that 99 of 100 did not exceed."""

    clients: int
    rate: float
    p99: float


def put_load(work: Callable[[], None], clients: int, sizes: Sizes) -> Iterator[Load]:
    """Do the work in batches, by so many threads; one batch more comes first, and does not count."""
    with ThreadPoolExecutor(clients) as pool:
        for number in range(sizes.batches + 1):
            load = _batch(pool, work, clients, of=max(sizes.of_a_batch, clients))
            if number:
                yield load


def _batch(pool: ThreadPoolExecutor, work: Callable[[], None], clients: int, *, of: int) -> Load:
    start, share = threading.Barrier(clients + 1), of // clients

    def client() -> list[float]:
        took = []
        start.wait()
        for _ in range(share):
            since = time.perf_counter()
            work()
            took.append((time.perf_counter() - since) * 1000)
        return took

    clients_at_work = [pool.submit(client) for _ in range(clients)]
    start.wait()
    since = time.perf_counter()
    took = [each for client_at_work in clients_at_work for each in client_at_work.result()]
    return Load(clients, len(took) / (time.perf_counter() - since), percentile(took, 0.99))
