"""What comes after a decision: who goes on with the run, and waiting for its answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clearance.cli.options import Options
from clearance.cli.screen import working
from clearance.cli.supervisor import Supervisor
from clearance.cli.worker import worker_command
from clearance.errors import RunFailedError, RunUnfinishedError, SettingsError
from clearance.run import Run, RunState

if TYPE_CHECKING:
    from clearance.assembly import Clearance

POLL = 0.05
_START = 30.0
_FRESH = "10 seconds"


def anyone_works(c: "Clearance") -> bool:
    """Whether a living process advances threads of this workspace."""
    if c.database.path is not None:
        from clearance.engine.slots import anyone_works, folder_of

        return anyone_works(folder_of(c.database.path))
    from sqlalchemy import text

    beating = f"SELECT 1 FROM procrastinate_workers WHERE last_heartbeat > now() - interval '{_FRESH}'"
    with c.database.read() as tx:
        return tx.execute(text(f"{beating} LIMIT 1")).first() is not None


@contextmanager
def working_for(c: "Clearance", options: Options, *, model: str | None) -> Iterator[None]:
    """Have a worker for the bundled chat as long as this lasts: the one there is, or one of our own.

    Raises `SettingsError` when it cannot be started.
    """
    if anyone_works(c):
        yield
        return
    supervisor = own_worker(c, options, model=model)
    supervisor.start()
    try:
        with working("Starting the worker"):
            ready = supervisor.wait_ready(_START)
        if not ready:
            raise SettingsError(f"The worker does not start. It says why in {log_of(c)}.")
        yield
    finally:
        with working("Ending the worker"):
            supervisor.stop()


def can_work(c: "Clearance", *, program: str) -> bool:
    """Whether a worker of our own could advance the program: the bundled chat, and its model is known."""
    from clearance.apps.chat.demo import PROGRAM, remembered_model
    from clearance.settings import Settings

    return program == PROGRAM and (Settings.read().model or remembered_model(c)) is not None


def own_worker(c: "Clearance", options: Options, *, model: str | None) -> Supervisor:
    """Return a supervisor whose worker keeps quiet: its log is a file in the workspace."""
    quiet = replace(options, as_json=False)
    return Supervisor(worker_command(quiet, model=model), log=log_of(c))


def await_run(c: "Clearance", run_id: str, *, seconds: float) -> Run:
    """Return the run as soon as it has ended, or waits for people again.

    Raises `RunUnfinishedError` when the time is over, `RunFailedError` when it came to no answer.
    """
    from clearance.store import reviews, runs

    until = time.monotonic() + seconds
    while True:
        with c.database.read() as tx:
            run = runs.run(tx, run_id)
            waits = run.state is RunState.WAITING and reviews.pending(tx, run.thread_id) is not None
        if run.state is RunState.DONE or waits:
            return run
        if not run.is_open:
            raise RunFailedError(run.id, run.reason or str(run.state))
        if time.monotonic() >= until:
            raise RunUnfinishedError(run.id)
        time.sleep(POLL)


def log_of(c: "Clearance") -> Path:
    """Return the file that takes the log of a worker which keeps quiet."""
    return c.home / ".clearance" / "worker.log"
