"""A research run whose steps run on the cluster: cleared twice, each workflow created once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.hitl import HITLGate
from clearance.apps.research.state import Stage
from tests.databases import Databases
from tests.research.argo.cluster import Cluster
from tests.research.argo.conftest import CLEARED, shipped
from tests.research.argo.server import TOKEN, FakeArgo, serve
from tests.research.pipelines import Lab


@pytest.fixture
def argo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeArgo]:
    """A server that the environment names; its steps are the real ones."""
    cluster = Cluster(tmp_path / "cluster", executor=LocalExecutor())
    cluster.templates["clearance-step"] = shipped("clearance-step")
    with serve(cluster) as fake:
        monkeypatch.setenv("ARGO_SERVER", fake.url)
        monkeypatch.setenv("ARGO_TOKEN", TOKEN)
        yield fake
    assert fake.violations == []


@pytest.fixture
def lab(argo: FakeArgo, databases: Databases, tmp_path: Path) -> Iterator[Lab]:
    """A workspace that knows the server."""
    assert argo.url
    (tmp_path / "home").mkdir()
    with Lab.open(databases.migrated("sqlite", tmp_path / "home"), home=tmp_path / "home") as opened:
        yield opened


def test_a_run_is_cleared_at_both_gates_and_each_step_is_one_workflow(lab: Lab, argo: FakeArgo) -> None:
    lab.start(executor="argo")
    plan = lab.waiting().plan
    assert {each.workflow_template for each in plan.steps} == {CLEARED}
    assert argo.cluster.created == []
    lab.decide("approve")
    assert lab.waiting().gate is HITLGate.S5_EXECUTE
    assert argo.cluster.created == []
    state = lab.decide("approve")
    assert (state.stage, state.analyst_summary) == (Stage.DONE, f"{len(plan.steps)} done")
    assert len(argo.cluster.created) == len(set(argo.cluster.created)) == len(plan.steps)
    assert TOKEN not in json.dumps([each.name for each in lab.research.store.files("run1")])


def test_a_template_that_changed_since_the_approval_runs_nothing(lab: Lab, argo: FakeArgo) -> None:
    lab.start(executor="argo")
    lab.decide("approve")
    argo.cluster.templates["clearance-step"]["spec"]["serviceAccountName"] = "admin"
    lab.decide("approve")
    assert argo.cluster.created == []
    assert lab.executed() == []
    assert any("template_drift" in (row.result or "") for row in lab.ledger())


def test_no_answer_from_the_cluster_stops_the_run_before_a_plan_is_asked(lab: Lab, argo: FakeArgo) -> None:
    del argo.cluster.templates["clearance-step"]
    state = lab.start(executor="argo")
    assert state.stage is not Stage.HITL_PLAN_PENDING
    assert "WorkflowTemplate clearance-step" in (lab.research.run("run1").reason or "")
