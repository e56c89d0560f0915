"""The Argo executor: what it gives, what it leaves behind, and what it does not take."""

import hashlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from clearance.apps.research.executors.argo import LATE
from clearance.apps.research.executors.argo_client import ArgoRefusedError
from clearance.apps.research.executors.argo_outputs import NOT_WHOLE, TOO_LARGE
from clearance.apps.research.executors.argo_workflow import (
    PLAN,
    RUN,
    label_of,
    spec_sha256,
    workflow_name,
    workflow_of,
)
from clearance.apps.research.executors.jobs import JobInput, StepJob, StepResult
from clearance.apps.research.executors.local import CANCELLED, LocalExecutor
from clearance.errors import CallUncertainError
from tests.research.argo.cluster import Cluster, packed_files
from tests.research.argo.conftest import PATIENCE, Site
from tests.research.argo.server import ALL, TOKEN, serve
from tests.research.door import Door
from tests.research.jobs_at_hand import job, step, told


class Running:
    """A step that runs in a thread of its own."""

    def __init__(self, run: Callable[[StepJob], StepResult], given: StepJob) -> None:
        self._result = ThreadPoolExecutor(1).submit(run, given)

    def ended(self) -> StepResult | CallUncertainError:
        """Return what came of it; what is none of the executor's answers is raised here."""
        try:
            return self._result.result(60)
        except CallUncertainError as error:
            return error

    def error(self) -> str | None:
        ended = self.ended()
        return ended.error if isinstance(ended, StepResult) else str(ended)


def test_a_step_gives_on_the_cluster_what_it_gives_here(site: Site, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "real", executor=LocalExecutor())
    cluster.templates = site.cluster.templates
    with serve(cluster) as fake:
        there = site.executor(url=fake.url).run(job(tmp_path / "there", step(workflow_template=site.cleared)))
    here = LocalExecutor().run(job(tmp_path / "here"))
    assert there.error is None
    assert (there.outputs, there.summary) == (here.outputs, here.summary)
    assert float(there.cpu_s) > 0
    assert there.peak_mb > 10
    assert fake.violations == []


def test_one_workflow_is_created_with_nothing_but_arguments(site: Site) -> None:
    given = site.told("give")
    assert site.executor().run(given).error is None
    assert site.cluster.created == [workflow_name(given)]
    workflow = site.cluster.workflows[workflow_name(given)]
    assert set(workflow["spec"]) == {"workflowTemplateRef", "arguments"}
    assert workflow["metadata"]["annotations"][PLAN] == given.plan_sha256
    assert workflow["metadata"]["labels"] == {RUN: label_of("r1")}
    assert "generateName" not in workflow["metadata"]
    assert site.names(given) == ["done", "submitted", "submitting"]


def test_no_letter_of_an_input_can_be_a_variable_of_the_cluster(site: Site) -> None:
    trick = site.folder / "trick"
    trick.write_text(">x {{workflow.uid}}\nACGT\n")
    given = site.told("give")
    sha256 = hashlib.sha256(trick.read_bytes()).hexdigest()
    site.executor().run(replace(given, inputs={"sequence": JobInput(trick, sha256)}))
    assert "{{" not in json.dumps(site.cluster.workflows[workflow_name(given)]["spec"])


@pytest.mark.parametrize("step_id", ["a", "a" * 26, "a-b-c"])
def test_a_name_has_at_most_63_letters_and_follows_from_plan_and_step(step_id: str, tmp_path: Path) -> None:
    name = workflow_name(told(tmp_path, "give", id=step_id))
    assert name == f"clearance-vkvkvkvkvkvkvkvkvkvkvkvkvk-{step_id}"
    assert len(name) <= 63


def test_a_step_that_is_complete_is_not_sent_again(site: Site) -> None:
    given = site.told("give")
    first = site.executor().run(given)
    asked = list(site.argo.asked)
    assert site.executor().run(given) == first
    assert site.executor().find(given) == first
    assert site.argo.asked == asked


def test_nothing_is_found_before_a_step_has_ended(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        assert site.executor().find(given) is None
        running = Running(site.executor().run, given)
        guest = door.knocked()
        while "submitted" not in site.names(given):
            threading.Event().wait(0.01)
        assert site.executor().find(given) is None
        guest.let_go()
        assert running.error() is None
    assert site.cluster.created == [workflow_name(given)]


def test_a_step_is_taken_up_by_another_process_and_runs_once(site: Site) -> None:
    with Door() as door:
        given = site.told(f"count:{site.folder}/runs; knock:{door.path}; give")
        first = Running(site.executor().run, given)
        guest = door.knocked()
        second = Running(site.executor().run, replace(given, folder=site.folder / "other"))
        guest.let_go()
        assert (first.error(), second.error()) == (None, None)
    assert site.cluster.created == [workflow_name(given)]
    assert (site.folder / "runs").read_text() == "x"


@pytest.mark.parametrize(
    ("do", "retries", "error", "tries"),
    [
        ("exit:2:this is wrong", 2, "this is wrong", 1),
        ("exit:1:it broke", 2, "it broke", 3),
        ("exit:1:\x1b[31mred\x1b[0m", 0, "?[31mred?[0m", 1),
    ],
)
def test_a_failure_is_said_in_the_step_s_own_words(
    do: str, retries: int, error: str, tries: int, site: Site
) -> None:
    given = site.told(do, retries=retries)
    result = site.executor().run(given)
    assert (result.error, result.tries, result.outputs) == (error, tries, ())
    again = site.executor().run(given)
    assert again == result
    assert site.cluster.created == [workflow_name(given)]


def test_a_failure_without_logs_is_said_in_argo_s_words(site: Site) -> None:
    site.argo.faults["log"] = ["before-500"]
    assert site.executor().run(site.told("exit:1:it broke")).error == "child failed"


def test_a_changed_template_creates_nothing(site: Site) -> None:
    spec = site.cluster.templates["clearance-step"]["spec"]
    spec["templates"][0]["container"]["image"] = "registry.example.org/another"
    given = site.told("give")
    result = site.executor().run(given)
    assert result.error == (
        "blocked_hitl: template_drift: The WorkflowTemplate on the cluster is not the one that was cleared."
    )
    del site.cluster.templates["clearance-step"]
    assert site.executor().run(given).error == result.error
    assert site.cluster.created == []
    assert site.names(given) == []


def test_a_template_that_changes_while_the_step_runs_spoils_its_result(site: Site) -> None:
    with Door() as door:
        running = Running(site.executor().run, site.told(f"knock:{door.path}; give"))
        guest = door.knocked()
        site.cluster.templates["clearance-step"]["spec"]["ttlStrategy"] = {"secondsAfterCompletion": 1}
        guest.let_go()
        error = running.error()
    assert error is not None
    assert "template_drift" in error


def test_the_hash_of_a_template_is_of_its_spec_alone(site: Site) -> None:
    template = site.cluster.templates["clearance-step"]
    before = spec_sha256(template)
    template["metadata"]["resourceVersion"] = "7"
    assert spec_sha256(template) == before
    template["spec"]["entrypoint"] = "other"
    assert spec_sha256(template) != before


def test_a_plan_that_names_no_template_creates_nothing(site: Site) -> None:
    result = site.executor().run(told(site.folder, "give"))
    assert result.error is not None
    assert "template_drift" in result.error
    assert site.cluster.created == []


def test_a_plan_is_told_the_template_that_is_there(site: Site) -> None:
    assert site.executor().workflow_template() == site.cleared
    del site.cluster.templates["clearance-step"]
    with pytest.raises(ArgoRefusedError, match="has no WorkflowTemplate clearance-step"):
        site.executor().workflow_template()


def test_an_input_with_another_hash_creates_nothing(site: Site) -> None:
    given = site.told("give")
    result = site.executor().run(
        replace(given, inputs={"sequence": JobInput(site.folder / "none", "0" * 64)})
    )
    assert result.error == "blocked_hitl: input_drift: sequence is not the file that was cleared."
    assert site.cluster.created == []


def test_inputs_that_a_workflow_cannot_carry_are_refused(site: Site) -> None:
    large = site.folder / "large"
    large.write_bytes(hashlib.shake_256(b"x").digest(600_000))
    sha256 = hashlib.sha256(large.read_bytes()).hexdigest()
    given = replace(site.told("give"), inputs={"sequence": JobInput(large, sha256)})
    assert site.executor().run(given).error == TOO_LARGE
    assert site.cluster.created == []


ARCHIVES = [
    b"",
    b"no archive",
    packed_files({}),
    packed_files({"outputs.json": b'{"outputs": []}'}),
    packed_files({"outputs.json": b"{", "summary.json": b"{}"}),
    packed_files({f"file{number}": b"" for number in range(200)}),
]


@pytest.mark.parametrize("archive", ARCHIVES, ids=range(len(ARCHIVES)))
def test_outputs_that_are_not_whole_are_an_error(archive: bytes, site: Site) -> None:
    class Store(dict[tuple[str, str], bytes]):
        """Gives the same archive for every step."""

        def get(self, *_: object) -> bytes:
            return archive

    site.cluster.artifacts = Store()
    assert site.executor().run(site.told("give")).error == NOT_WHOLE


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancelled_step_is_stopped_and_else_terminated(deaf: bool, site: Site) -> None:
    site.cluster.deaf = deaf
    executor = site.executor()
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        running = Running(executor.run, given)
        guest = door.knocked()
        executor.cancel("r1")
        guest.wait_for_its_end()
        assert running.error() == CANCELLED
    shutdown = site.cluster.workflows[workflow_name(given)]["spec"]["shutdown"]
    assert shutdown == ("Terminate" if deaf else "Stop")


def test_what_does_not_stop_is_terminated_from_another_process_when_it_is_asked_again(site: Site) -> None:
    site.cluster.deaf = True
    given = site.told("give")
    with Door() as door:
        body = workflow_of(site.told(f"stubborn:{door.path}"), namespace="argo")
        site.client().create(body)
        guest = door.knocked()
        shutdown = []
        for _ in range(2):
            site.executor().cancel("r1")
            shutdown.append(site.cluster.get(workflow_name(given))["spec"]["shutdown"])
        guest.wait_for_its_end()
    assert shutdown == ["Stop", "Terminate"]


@pytest.mark.parametrize("fault", ["list", "update"])
def test_a_cancellation_that_the_server_refuses_is_no_error(fault: str, site: Site) -> None:
    site.argo.rights[TOKEN] = ALL - {fault}
    with Door() as door:
        given = site.told(f"knock:{door.path}; give")
        site.client().create(workflow_of(given, namespace="argo"))
        guest = door.knocked()
        site.executor().cancel("r1")
        guest.let_go()
        assert site.executor().run(given).error is None


def test_a_run_is_cancelled_from_another_process_and_others_go_on(site: Site) -> None:
    with Door() as door:
        ours = Running(site.executor().run, site.told(f"knock:{door.path}; give"))
        guest = door.knocked()
        other = site.told(f"knock:{door.path}; give", run_id="r2", plan_sha256="b" * 64)
        others = Running(site.executor().run, replace(other, folder=site.folder / "other"))
        other_guest = door.knocked()
        site.executor().cancel("r1")
        guest.wait_for_its_end()
        assert ours.error() == CANCELLED
        other_guest.let_go()
        assert others.error() is None


def test_a_step_that_gets_no_place_on_the_cluster_is_stopped(site: Site) -> None:
    with Door() as door:
        given = site.told(f"knock:{door.path}")
        patience = replace(PATIENCE, queue_s=1.0 - given.step.timeout_s)
        running = Running(site.executor(patience=patience).run, given)
        door.knocked().wait_for_its_end()
        assert running.error() == LATE


def test_a_step_that_takes_too_long_is_ended_by_the_cluster(site: Site) -> None:
    with Door() as door:
        result = site.executor().run(site.told(f"knock:{door.path}", timeout_s=2))
    assert result.error == "The step took longer than 2 s and was ended."
