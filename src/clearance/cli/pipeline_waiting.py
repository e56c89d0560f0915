"""Waiting for a research run: who advances it, its progress stage by stage, and where it has stopped."""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clearance.cli.options import Options, invocation
from clearance.errors import RunFailedError, RunUnfinishedError, StoreError

if TYPE_CHECKING:
    from clearance.apps.research.runs import ResearchRuns
    from clearance.workspace import Clearance

POLL = 0.1
PATIENCE = 1.5
"""Seconds that a run may want a worker before this process goes on with it."""
_GOODBYE = 1.0


@contextmanager
def advanced(c: "Clearance", options: Options) -> "Iterator[ResearchRuns]":
    """Have research runs advanced as long as this lasts: by a worker that does, else in this process.

    When it is interrupted the process ends at once. What was kept is kept, and whoever comes next goes on.
    """
    from clearance.apps.research.setup import open_research
    from clearance.cli.waiting import anyone_works

    _log_to_file(c)
    research = open_research(c)
    over = threading.Event()
    helper = threading.Thread(target=_step_in, args=(c, over), name="step-in", daemon=True)
    if anyone_works(c):
        # It may be one for the chat alone, or have no room.
        helper.start()
    else:
        c.worker.start()
    try:
        yield research
    except KeyboardInterrupt:
        _leave(c, options)
        raise
    finally:
        over.set()
        if helper.is_alive():
            helper.join()


def finish(
    c: "Clearance",
    research: "ResearchRuns",
    run_id: str,
    *,
    options: Options,
    wait: float,
    seen: int = 0,
) -> None:
    """Show progress until the run waits or ends, then say where it is; raise what it ended with.

    `seen` is the number of the last stage that needs no mention any more.
    """
    from clearance.cli.pipeline_drawing import draw_stop, full_record
    from clearance.cli.screen import out, print_json

    _follow(research, run_id, quiet=options.as_json, wait=wait, seen=seen)
    run = research.run(run_id)
    if not run.is_open and run.reason is not None:
        raise RunFailedError(run_id, run.reason)
    if options.as_json:
        print_json(full_record(research, run_id, person=c.person))
    else:
        draw_stop(out(), research, run_id, options=options, person=c.person)


def last_stage(research: "ResearchRuns", run_id: str) -> int:
    """Return the number of the stage that a run has come to; 0 before the first."""
    return max((each.n for each in research.stages(run_id)), default=0)


def _follow(research: "ResearchRuns", run_id: str, *, quiet: bool, wait: float, seen: int) -> None:
    from clearance.cli.pipeline_drawing import draw_stage
    from clearance.cli.screen import err

    console, until = err(), time.monotonic() + wait
    while True:
        # First how it stands, then what led there: so the last stage is always shown.
        stopped = research.has_stopped(run_id)
        for stage in research.stages(run_id, after=seen):
            seen = stage.n
            if not quiet:
                draw_stage(console, stage)
        if stopped:
            return
        if time.monotonic() >= until:
            raise RunUnfinishedError(run_id)
        time.sleep(POLL)


def _step_in(c: "Clearance", over: threading.Event) -> None:
    """Work in this process, too, once a run has wanted a worker for long and got none."""
    from clearance.apps.research.plan_calls import PROGRAM
    from clearance.store import runs

    wanting: dict[str, float] = {}
    while not over.wait(POLL):
        try:
            with c.database.read() as tx:
                due = runs.due_threads(tx, programs=(PROGRAM,), limit=10)
        except StoreError:
            continue
        now = time.monotonic()
        wanting = {each: wanting.get(each, now) for each in due}
        if any(now - since > PATIENCE for since in wanting.values()):
            c.worker.start()
            return


def _log_to_file(c: "Clearance") -> None:
    """Keep the log of a worker in this process apart from what the person reads."""
    from clearance.cli.waiting import log_of

    root = logging.getLogger()
    handler = logging.FileHandler(log_of(c))
    handler.setFormatter(root.handlers[0].formatter if root.handlers else None)
    root.handlers = [handler]


def _leave(c: "Clearance", options: Options) -> None:
    """End the worker of this process, and the process with it where a step would hold it up."""
    from clearance.cli.screen import notice

    notice(
        f"Ended. Nothing is lost: {invocation(options)} pipeline resume RUN goes on, and so does a worker."
    )
    if not c.worker.stop(grace=_GOODBYE):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
