"""A worker that is killed while a step is on the cluster: the next one takes up the same workflow."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clearance.apps.research.executors.argo_workflow import workflow_name
from clearance.apps.research.executors.jobs import StepJob
from tests.house.sources import ROOT
from tests.research.argo.conftest import Site
from tests.research.argo.server import TOKEN
from tests.research.argo.test_argo_executor import Running
from tests.research.door import Door

_WORKER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from clearance.apps.research.executors.argo import ArgoExecutor
from clearance.apps.research.executors.argo_client import ArgoClient
from clearance.apps.research.run_store import RunStore
from clearance.store.database import Database
from tests.research.argo.conftest import CLEARED
from tests.research.jobs_at_hand import told
home, folder, do = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
store = RunStore(Database(f"sqlite:///{home / 'clearance.db'}"), home)
now = lambda: datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
executor = ArgoExecutor(ArgoClient.from_environment(), keep=store.put, read=store.read, now=now)
executor.run(told(folder, do, workflow_template=CLEARED))
"""


@contextmanager
def _worker(site: Site, do: str) -> Iterator["subprocess.Popen[bytes]"]:
    home = site.store.folder("r1").parents[1]
    environment = {**os.environ, "ARGO_SERVER": site.argo.url, "ARGO_TOKEN": TOKEN}
    command = [sys.executable, "-c", _WORKER, str(home), str(site.folder), do]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as worker:
        yield worker
        worker.kill()
        assert worker.wait() == -signal.SIGKILL


def _until(site: Site, given: StepJob, record: str) -> None:
    while record not in site.names(given):
        threading.Event().wait(0.01)


@pytest.mark.parametrize("fault", ["before-late", "after-late"])
def test_a_worker_that_dies_around_the_creation_leaves_one_workflow(fault: str, site: Site) -> None:
    given = site.told(do := f"count:{site.folder}/runs; give")
    site.argo.faults["create"] = [fault]
    with _worker(site, do):
        while "create" not in site.argo.asked or (fault == "after-late") > len(site.cluster.created):
            threading.Event().wait(0.01)
    assert site.names(given) == ["submitting"]
    assert site.executor().find(given) is None
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"


def test_a_worker_that_dies_while_the_step_runs_leaves_it_running_and_it_runs_once(site: Site) -> None:
    with Door() as door:
        given = site.told(do := f"count:{site.folder}/runs; knock:{door.path}; give")
        with _worker(site, do):
            guest = door.knocked()
            _until(site, given, "submitted")
        assert site.executor().find(given) is None
        again = Running(site.executor().run, given)
        guest.let_go()
        assert again.error() is None
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"
