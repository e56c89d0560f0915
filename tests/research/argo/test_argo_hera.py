"""Hera, an independent client of Argo, on the same server: both see and do the same."""

import pytest
from hera.exceptions import AlreadyExists, NotFound, Unauthorized
from hera.workflows import WorkflowsService, models

from clearance.apps.research.executors.argo_workflow import RUN, label_of, workflow_name, workflow_of
from clearance.apps.research.executors.local import CANCELLED
from tests.research.argo.conftest import Site, shipped
from tests.research.argo.schemas import violations
from tests.research.argo.server import TOKEN
from tests.research.argo.test_argo_executor import Running
from tests.research.door import Door

# What Hera itself does.
pytestmark = pytest.mark.filterwarnings("ignore:The `json` method is deprecated")


def _hera(site: Site, *, token: str = TOKEN) -> WorkflowsService:
    return WorkflowsService(host=site.argo.url, namespace="argo", token=token)


def test_hera_reads_what_the_executor_created(site: Site) -> None:
    given = site.told("give")
    assert site.executor().run(given).error is None
    with _hera(site) as hera:
        workflow = hera.get_workflow(workflow_name(given))
        assert workflow.status is not None
        assert workflow.status.phase == "Succeeded"
        listed = hera.list_workflows(label_selector=f"{RUN}={label_of('r1')}")
        assert [each.metadata.name for each in listed.items or ()] == [workflow_name(given)]
        pod = next(each for each in (workflow.status.nodes or {}).values() if each.type == "Pod")
        content = hera.get_artifact_file("workflows", workflow_name(given), pod.id, "outputs", "outputs")
        assert content == str(site.cluster.artifacts[workflow_name(given), pod.id])


def test_the_executor_adopts_what_hera_created_of_the_same_plan(site: Site) -> None:
    given = site.told(f"count:{site.folder}/runs; give")
    body = workflow_of(given, namespace="argo")
    workflow = models.Workflow.model_validate(body)
    with _hera(site) as hera:
        hera.create_workflow(models.WorkflowCreateRequest(workflow=workflow))
        with pytest.raises(AlreadyExists):
            hera.create_workflow(models.WorkflowCreateRequest(workflow=workflow))
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"


def test_what_hera_stops_ends_for_the_executor(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        running = Running(site.executor().run, given)
        guest = door.knocked()
        with _hera(site) as hera:
            hera.stop_workflow(
                workflow_name(given), models.WorkflowStopRequest(name=workflow_name(given), namespace="argo")
            )
        guest.wait_for_its_end()
        assert running.error() == CANCELLED


def test_the_server_s_refusals_are_those_that_hera_knows(site: Site) -> None:
    with _hera(site) as hera, pytest.raises(NotFound):
        hera.get_workflow("none")
    with _hera(site, token="wrong") as hera, pytest.raises(Unauthorized):
        hera.get_workflow("none")


@pytest.mark.parametrize("name", ["clearance-step", "clearance-gate"])
def test_the_shipped_templates_fit_argo_s_own_models(name: str) -> None:
    assert violations("WorkflowTemplate", shipped(name)) == []


def test_a_member_that_argo_does_not_know_is_found() -> None:
    template = shipped("clearance-step")
    template["spec"]["templates"][0]["container"]["imagePolicy"] = "Always"
    assert len(violations("WorkflowTemplate", template)) == 1
    assert violations("WorkflowStopRequest", {"name": "a", "force": True}) != []
