"""A fake Argo Server with the product's own templates, and executors whose records are in a real database."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML has no types

from clearance.apps.research.executors import argo
from clearance.apps.research.executors.argo import ArgoExecutor, Patience
from clearance.apps.research.executors.argo_client import ArgoClient
from clearance.apps.research.executors.argo_workflow import spec_sha256
from clearance.apps.research.executors.jobs import StepJob
from clearance.apps.research.plan import WorkflowTemplate
from clearance.apps.research.run_store import RunStore
from clearance.notary import SigningKey
from clearance.run import Run, RunState
from clearance.store import runs
from clearance.store.database import Database
from tests.databases import Databases
from tests.research.argo.cluster import Cluster
from tests.research.argo.server import TOKEN, FakeArgo, serve
from tests.research.jobs_at_hand import obedient, told
from tests.research.network import NOON

# The live test is there only for who has a server to try.
collect_ignore = [] if os.environ.get("ARGO_SERVER") else ["test_live_argo.py"]

TEMPLATES = Path(argo.__file__).with_name("argo_templates")
PATIENCE = Patience(poll_s=0.3, again_s=0.02, grace_s=0.5, queue_s=60)


def shipped(name: str) -> dict[str, Any]:
    """A WorkflowTemplate of the product, as a server has it."""
    template: dict[str, Any] = yaml.safe_load((TEMPLATES / f"{name}.yaml").read_text())
    return template


CLEARED = WorkflowTemplate("clearance-step", spec_sha256(shipped("clearance-step")))


@dataclass
class Site:
    """One server, one database, and the clients that a test wants."""

    argo: FakeArgo
    store: RunStore
    folder: Path
    key: SigningKey
    cleared: WorkflowTemplate
    clients: list[ArgoClient] = field(default_factory=list)
    later: timedelta = timedelta()

    def told(self, do: str, **changed: Any) -> StepJob:
        """A job for the obedient program, of a plan that names the server's template as it was at first."""
        return told(self.folder, do, workflow_template=self.cleared, **changed)

    @property
    def cluster(self) -> Cluster:
        """What the server stands before."""
        return self.argo.cluster

    def now(self) -> datetime:
        """The time of day here."""
        return NOON + self.later

    def client(self, *, token: str = TOKEN, url: str = "") -> ArgoClient:
        """A client; it gives up soon."""
        self.clients.append(ArgoClient(url or self.argo.url, token=token, timeout_s=2))
        return self.clients[-1]

    def executor(self, *, patience: Patience = PATIENCE, **client: str) -> ArgoExecutor:
        """An executor as a fresh process has it: all it knows is in the database and the folder."""
        return ArgoExecutor(
            self.client(**client),
            keep=self.store.put,
            read=self.store.read,
            now=self.now,
            patience=patience,
        )

    def names(self, job: StepJob) -> list[str]:
        """The records of a job that there are."""
        prefix = f"steps/{job.step.id}/argo."
        names = [each.name for each in self.store.files(job.run_id) if each.name.startswith(prefix)]
        return [name.removeprefix(prefix).removesuffix(".json") for name in names]


@pytest.fixture
def store(databases: Databases, tmp_path: Path) -> Iterator[RunStore]:
    """A run store in which the runs r1 and r2 are."""
    (tmp_path / "home").mkdir()
    database = Database(databases.migrated("sqlite", tmp_path / "home"))
    with database.write() as tx:
        for run_id in ("r1", "r2"):
            runs.ensure_thread(tx, run_id, program="research", now=NOON)
            runs.insert_run(tx, Run(run_id, run_id, "research", RunState.WAITING, "ana", "x", NOON))
    yield RunStore(database, tmp_path / "home")
    database.close()


@pytest.fixture
def site(store: RunStore, tmp_path: Path) -> Iterator[Site]:
    """A site whose steps are the obedient program; at its end every body must have fitted its schema."""
    key = SigningKey.load_or_create(tmp_path / "notary.key")
    cluster = Cluster(
        tmp_path / "cluster", executor=obedient(pool=4), keys=(tmp_path / "notary.key").with_suffix(".pub")
    )
    for name in ("clearance-step", "clearance-gate"):
        cluster.templates[name] = shipped(name)
    with serve(cluster) as fake:
        made = Site(fake, store, tmp_path, key, CLEARED)
        yield made
        for each in made.clients:
            each.close()
    assert fake.violations == []
