"""The executor against a real Argo Server: collected only where ARGO_SERVER names one.

It needs the WorkflowTemplate `clearance-step` there (docs/how-to/argo.md), and an account that may use it.
"""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from clearance.apps.research.executors.argo import ArgoExecutor
from clearance.apps.research.executors.argo_client import ArgoClient
from clearance.apps.research.executors.argo_workflow import workflow_name
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.run_store import RunStore
from tests.research.jobs_at_hand import job, step


def test_a_step_gives_on_the_cluster_what_it_gives_here_and_is_created_once(
    store: RunStore, tmp_path: Path
) -> None:
    with ArgoClient.from_environment() as client:
        executor = ArgoExecutor(client, keep=store.put, read=store.read, now=lambda: datetime.now(UTC))
        value = step(workflow_template=executor.workflow_template())
        given = job(tmp_path / "there", value, plan_sha256=uuid.uuid4().hex * 2)
        there = executor.run(given)
        again = executor.run(replace(given, folder=tmp_path / "again"))
        workflow = client.workflow(workflow_name(given))
    here = LocalExecutor().run(job(tmp_path / "here"))
    assert there.error is None
    assert there.outputs == here.outputs == again.outputs
    assert workflow is not None
    assert workflow["status"]["phase"] == "Succeeded"
