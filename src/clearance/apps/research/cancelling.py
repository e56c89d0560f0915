"""Cancelling: a run is ended by a row, from any process; who carries its steps out looks, and ends them."""

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from clearance.apps.research.executors.jobs import Executor
from clearance.errors import StoreError
from clearance.store import runs
from clearance.store.database import Database

LOOK_EVERY = 0.5

log = logging.getLogger(__name__)


@contextmanager
def ended_with_its_run(database: Database, run_id: str, executors: Collection[Executor]) -> Iterator[None]:
    """End what the executors carry out for a run when the run has ended, as long as this lasts."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY):
            try:
                with database.read() as tx:
                    is_open = runs.run(tx, run_id).is_open
            except StoreError as error:
                log.warning("run %s is looked at later: %s", run_id, error)
                continue
            if not is_open:
                for executor in executors:
                    executor.cancel(run_id)

    watcher = threading.Thread(target=watch, name=f"cancel-{run_id}", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
