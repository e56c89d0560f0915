"""Processes that the journeys start, kill and stop.

They are forked from one process that has imported everything and never opened a database: a fresh interpreter
would need two seconds before it begins, and a fork of the tests' own process would inherit open databases.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from tests.journeys import program

PATIENCE = 60.0
"""Seconds after which something that was awaited will not come any more."""
LOOK_EVERY = 0.04
Found = TypeVar("Found")


class Processes:
    """The processes of one test; what is left of them ends with it."""

    def __init__(self, context: ForkServerContext, log: Path) -> None:
        self.context = context
        self.log = log
        self._started: list[BaseProcess] = []

    def start(self, target: Callable[..., None], *args: object) -> BaseProcess:
        """Start a process that calls the target."""
        process = self.context.Process(target=_called, args=(self.log, target, args), daemon=True)
        process.start()
        self._started.append(process)
        return process

    def living(self) -> list[BaseProcess]:
        """Return the processes that have not ended."""
        return [process for process in self._started if process.exitcode is None]

    def end(self) -> None:
        """Kill whatever still runs, stopped ones too."""
        for process in self.living():
            process.kill()
        for process in self._started:
            process.join()


def server() -> ForkServerContext:
    """Return the context of the process that the others are forked from, started when it does not run yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.journeys.preloaded"])
    before = os.environ.get("PYTHONPATH")
    # The server does not take the path over, and what it fails to import it leaves out silently.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context


def kill(process: BaseProcess) -> None:
    """End a process as a power cut does; it may have ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(process.pid or 0, signal.SIGKILL)
    process.join()


def stop(process: BaseProcess) -> None:
    """Freeze a process."""
    os.kill(process.pid or 0, signal.SIGSTOP)
    until(lambda: is_stopped(process))


def go_on(process: BaseProcess) -> None:
    """Let a frozen process go on."""
    os.kill(process.pid or 0, signal.SIGCONT)


def is_stopped(process: BaseProcess) -> bool:
    """Whether a process is frozen."""
    state = subprocess.run(
        ["ps", "-o", "state=", "-p", str(process.pid)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip().startswith("T")


def was_killed(process: BaseProcess) -> bool:
    """Whether a process has ended by SIGKILL. Raises when it ended in any other way."""
    if process.exitcode is None:
        return False
    assert process.exitcode == -signal.SIGKILL, f"it ended by itself, with {process.exitcode}"
    return True


def until(condition: Callable[[], Found | None], *, patience: float = PATIENCE, what: str = "") -> Found:
    """Return what the condition gives as soon as that is true; fail when it never is."""
    end = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < end, f"in vain: {what or condition}"
        time.sleep(LOOK_EVERY)
    return found


def _called(log: Path, target: Callable[..., None], args: tuple[object, ...]) -> None:
    program.speak_to(log)
    target(*args)
