"""What goes wrong on the way to the cluster: at most one workflow is created; what is not known is said."""

import json
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from clearance.apps.research.executors.argo import NAMES_LAST
from clearance.apps.research.executors.argo_client import ArgoRefusedError
from clearance.apps.research.executors.argo_workflow import workflow_name, workflow_of
from clearance.errors import CallUncertainError
from tests.research.argo.conftest import Site
from tests.research.argo.server import ALL, TOKEN
from tests.research.argo.test_argo_executor import Running
from tests.research.door import Door

PASSING = [
    {"create": ["before-lost"]},
    {"create": ["after-lost"]},
    {"create": ["before-500"]},
    {"create": ["after-500"]},
    {"create": ["after-late"]},
    {"create": ["before-late"]},
    {"create": ["before-500", "after-500"]},
    {"create": ["after-lost"], "get": ["before-500", "before-lost", "before-late"]},
    {"get": ["before-500", "before-lost", "after-500"]},
    {"template": ["", "before-500"]},
    {"watch": ["before-500"]},
    {"watch": ["before-lost"]},
    {"watch": ["garbage"]},
    {"watch": ["cut", "cut", "cut"]},
    {"watch": ["before-500"] * 3, "get": ["before-lost"] * 3},
]
NOT_USABLE = {"template"}


@pytest.mark.parametrize("faults", PASSING, ids=str)
def test_a_fault_that_passes_creates_one_workflow_and_no_second(
    faults: dict[str, list[str]], site: Site
) -> None:
    site.argo.faults.update({what: list(each) for what, each in faults.items()})
    given = site.told(f"count:{site.folder}/runs; give")
    result = site.executor().run(given)
    if set(faults) & NOT_USABLE:
        assert result.error is not None
        assert result.error.startswith("The step was carried out, and its outputs cannot be used: ")
        result = site.executor().run(given)
    assert result.error is None
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"
    assert site.names(given) == ["done", "submitted", "submitting"]


@pytest.mark.parametrize("fault", ["after-lost", "after-500"])
def test_a_workflow_that_may_be_there_is_uncertain_and_is_found_later(fault: str, site: Site) -> None:
    site.argo.faults.update({"create": [fault], "get": ["before-500"] * 20})
    given = site.told(f"count:{site.folder}/runs; give")
    with pytest.raises(CallUncertainError, match="may have been created"):
        site.executor().run(given)
    assert site.names(given) == ["submitting"]
    site.argo.faults.clear()
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"


def test_a_server_that_never_answers_is_uncertain(site: Site) -> None:
    site.argo.faults["create"] = ["before-lost"] * 20
    given = site.told("give")
    with pytest.raises(CallUncertainError, match="may have been created"):
        site.executor().run(given)
    assert site.cluster.created == []


@pytest.mark.parametrize("fault", ["create", "template"])
def test_a_server_that_says_no_creates_nothing_and_the_step_can_be_run_later(fault: str, site: Site) -> None:
    site.argo.rights[TOKEN] = ALL - {fault}
    given = site.told("give")
    result = site.executor().run(given)
    assert result.error == (
        "The Argo Server refused (status 403): workflows.argoproj.io is forbidden: "
        f'User "clearance" cannot {fault}. Look at ARGO_TOKEN and at the rights of its account.'
    )
    assert site.cluster.created == []
    site.argo.rights[TOKEN] = ALL
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]


def test_a_wrong_token_is_refused_and_is_in_no_message(site: Site) -> None:
    result = site.executor(token="another-token-entirely").run(site.told("give"))
    assert result.error is not None
    assert result.error.startswith("The Argo Server refused (status 401): token not valid: ….")
    assert "another-token" not in result.error
    assert site.cluster.created == []


def test_a_workflow_that_is_not_there_cannot_be_stopped(site: Site) -> None:
    with pytest.raises(ArgoRefusedError, match="does not know that workflow"):
        site.client().stop("none")


def test_a_server_that_is_away_creates_nothing_and_the_step_can_be_run_later(site: Site) -> None:
    given = site.told("give")
    result = site.executor(url="http://127.0.0.1:9").run(given)
    assert result.error == "The Argo Server cannot be reached at ARGO_SERVER."
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]


def _created_by_a_process_that_died(site: Site, do: str) -> None:
    """Leave what a process leaves that is killed between the creation and its record."""
    given = site.told(do)
    body = workflow_of(given, namespace="argo")
    record = json.dumps({"name": workflow_name(given), "at": site.now().isoformat()})
    site.store.put("r1", f"steps/{given.step.id}/argo.submitting.json", record)
    site.client().create(body)


def test_a_workflow_of_a_process_that_died_is_adopted(site: Site) -> None:
    do = f"count:{site.folder}/runs; give"
    _created_by_a_process_that_died(site, do)
    given = site.told(do)
    assert site.executor().find(given) is None
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]
    assert site.argo.count("create") == 1
    assert (site.folder / "runs").read_text() == "x"


@pytest.mark.parametrize("changed", ["plan", "job", "template", "arguments"])
def test_a_workflow_of_our_name_that_is_not_of_this_plan_is_left_alone(changed: str, site: Site) -> None:
    given = site.told(f"count:{site.folder}/runs; give")
    body = workflow_of(given, namespace="argo")
    match changed:
        case "plan":
            body["metadata"]["annotations"]["clearance-plan-sha256"] = "b" * 64
        case "job":
            body["metadata"]["annotations"]["clearance-job-sha256"] = "b" * 64
        case "template":
            site.cluster.templates["other"] = site.cluster.templates["clearance-step"]
            body["spec"]["workflowTemplateRef"]["name"] = "other"
        case "arguments":
            body["spec"]["arguments"]["parameters"][0]["value"] = "5"
    site.client().create(body)
    result = site.executor().run(given)
    assert result.error == (
        f"A workflow {workflow_name(given)} is there that is not of this plan. It was left as it is."
    )
    assert site.names(given) == ["submitting"]
    assert site.argo.count("update") == 0


def test_a_workflow_that_is_deleted_on_its_way_is_uncertain_and_not_created_again(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        running = Running(site.executor().run, given)
        guest = door.knocked()
        while "submitted" not in site.names(given):
            threading.Event().wait(0.01)
        site.cluster.delete(workflow_name(given))
        guest.wait_for_its_end()
        ended = running.ended()
    assert isinstance(ended, CallUncertainError)
    for again in (site.executor().run, site.executor().find):
        with pytest.raises(CallUncertainError, match="was deleted before its end was seen"):
            again(given)
    assert site.argo.count("create") == 1


def test_another_workflow_under_the_name_is_not_taken_for_ours(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        running = Running(site.executor().run, given)
        door.knocked()
        while "submitted" not in site.names(given):
            threading.Event().wait(0.01)
        body = workflow_of(given, namespace="argo")
        site.cluster.delete(workflow_name(given))
        site.client().create(body)
        assert isinstance(running.ended(), CallUncertainError)
        door.knocked().let_go()


def test_outputs_that_were_lost_here_are_fetched_again(site: Site) -> None:
    given = site.told("give")
    first = site.executor().run(given)
    elsewhere = replace(given, folder=site.folder / "new")
    assert site.executor().find(elsewhere) == first
    assert site.argo.count("create") == 1


def test_outputs_that_are_lost_here_and_there_are_uncertain(site: Site) -> None:
    given = site.told("give")
    site.executor().run(given)
    site.cluster.delete(workflow_name(given))
    with pytest.raises(CallUncertainError, match="has ended and was deleted"):
        site.executor().run(replace(given, folder=site.folder / "new"))
    assert site.argo.count("create") == 1


def test_a_creation_that_nobody_can_look_up_any_more_is_uncertain(site: Site) -> None:
    given = site.told("give")
    site.argo.faults.update({"create": ["before-lost"] * 20})
    with pytest.raises(CallUncertainError):
        site.executor().run(given)
    site.argo.faults.clear()
    site.later = NAMES_LAST + timedelta(seconds=1)
    with pytest.raises(CallUncertainError, match="and deleted since"):
        site.executor().run(given)
    assert site.cluster.created == []
    site.client().create(workflow_of(given, namespace="argo"))
    assert site.executor().run(given).error is None
    assert len(site.cluster.created) == 1


def test_a_token_that_ends_while_a_step_runs_is_uncertain_and_the_step_is_found_later(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        running = Running(site.executor().run, given)
        guest = door.knocked()
        while "submitted" not in site.names(given):
            threading.Event().wait(0.01)
        site.argo.rights.clear()
        ended = running.ended()
        assert isinstance(ended, CallUncertainError)
        assert "cannot be watched any more" in str(ended)
        assert TOKEN not in str(ended)
        guest.let_go()
    assert site.executor().find(given) is None
    site.argo.rights[TOKEN] = ALL
    assert site.executor().run(given).error is None
    assert site.argo.count("create") == 1


@pytest.mark.parametrize("faults", [["before-500"], ["before-lost"], ["cut"]])
def test_outputs_that_cannot_be_had_are_an_error_and_can_be_fetched_later(
    faults: list[str], site: Site
) -> None:
    site.argo.faults["artifact"] = list(faults)
    given = site.told("give")
    assert site.executor().run(given).error is not None
    assert site.executor().run(given).error is None
    assert site.argo.count("create") == 1


def test_what_is_kept_of_a_submission_survives_a_lost_folder(site: Site, tmp_path: Path) -> None:
    given = site.told("give")
    site.executor().run(given)
    kept = site.store.folder("r1") / "steps" / given.step.id / "argo.submitted.json"
    before = kept.read_bytes()
    kept.unlink()
    site.store.rebuild("r1")
    assert kept.read_bytes() == before
    assert tmp_path in kept.parents
