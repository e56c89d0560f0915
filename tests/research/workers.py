"""Workers of the pipeline in processes of their own, which a test may kill or freeze at a named place."""

import os
import subprocess
import sys
import threading
from collections import Counter
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import clearance
from clearance import killpoints
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.report import open_reporter
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.runs import ResearchRuns
from clearance.workspace import Clearance
from tests.journeys.processes import Processes
from tests.research.pipelines import OBJECTIVE

REQUEST = ResearchRequest("BRCA1", objective=OBJECTIVE, offline=True)
_STEP = Path(__file__).with_name("counted_step.py")


def work(url: str, home: Path, place: str = "", begin: str = "") -> None:
    """Be a worker until somebody ends this process, or it is killed at a place; `begin` a run before."""
    if place:
        killpoints.watch(killpoints.signalling(place))
    workspace = clearance.open(url, home=home, person="ann", worker=False)
    research = open_counted(workspace, home)
    workspace.worker.start()
    if begin:
        research.start(REQUEST, run_id=begin, by="ann")
    threading.Event().wait()


def open_counted(workspace: Clearance, home: Path) -> ResearchRuns:
    """Make the pipeline known with steps that are counted in `home`."""
    command = [sys.executable, str(_STEP), str(home)]
    return ResearchRuns(
        workspace,
        executors={"local": LocalExecutor(command=command)},
        reporter=open_reporter,
        model_named=_no_model,
    )


class Workers:
    """The workers of one workspace; what is left of them ends with the test."""

    def __init__(self, url: str, home: Path, *, context: ForkServerContext) -> None:
        self._processes = Processes(context, home / "said")
        self._url = url
        self.home = home

    def start(self, place: str = "", *, begin: str = "") -> BaseProcess:
        """Start a worker, which is killed at `place` or `place:n`; it starts the run `begin` itself."""
        return self._processes.start(work, self._url, self.home, place, begin)

    def end(self) -> None:
        """Kill whatever still runs, and show what all of them said."""
        self._processes.end()
        said = self.home / "said"
        print(said.read_text() if said.exists() else "")

    def hold(self, template: str) -> None:
        """Let the steps of a template wait as soon as they have begun."""
        (self.home / f"hold-{template}").touch()

    def let_go(self, template: str) -> None:
        """Let them go on."""
        (self.home / f"hold-{template}").unlink()

    def counted(self, what: str) -> Counter[str]:
        """Return how often a step of each template `began`, or `ended`."""
        return Counter(line.split()[1] for line in self._lines() if line.split()[0] == what)

    def processes_of(self, template: str) -> list[int]:
        """Return the processes of a template's steps that live."""
        begun = [line.split() for line in self._lines()]
        pids = [int(pid) for what, name, pid in begun if what == "began" and name == template]
        return [pid for pid in pids if _lives(pid)]

    def _lines(self) -> list[str]:
        steps = self.home / "steps"
        return steps.read_text().splitlines() if steps.exists() else []


def _lives(pid: int) -> bool:
    """Whether a process is there, and is no zombie."""
    asked = ["ps", "-o", "state=", "-p", str(pid)]
    state = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z") and pid != os.getpid()


def _no_model(name: str) -> Any:
    raise LookupError(f"there is no model {name} here")
