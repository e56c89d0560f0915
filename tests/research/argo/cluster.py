"""A cluster that is none: workflows as Argo keeps them, whose steps really run, in the local executor."""

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from clearance.apps.research.executors.argo_step import unpacked
from clearance.apps.research.executors.jobs import JobInput, StepResult
from clearance.apps.research.executors.local import CANCELLED, LocalExecutor
from clearance.apps.research.executors.step_folder import USAGE
from clearance.apps.research.plan import Template
from clearance.apps.research.step import OUTPUTS
from tests.research.jobs_at_hand import job, step

TIME = "2026-03-01T12:00:00Z"
FINAL = ("Succeeded", "Failed", "Error")


@dataclass(eq=False)
class No(Exception):
    """What the server answers instead: an HTTP status, a gRPC code and a message."""

    status: int
    code: int
    message: str


class Cluster:
    """The workflows of one namespace. `created` is every workflow that ever was, deleted ones too.

    When it is `deaf`, its steps do not end when they are stopped, but only when they are terminated.
    """

    def __init__(self, folder: Path, *, executor: LocalExecutor, keys: Path | None = None) -> None:
        self.workflows: dict[str, dict[str, Any]] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.created: list[str] = []
        self.artifacts: dict[tuple[str, str], bytes] = {}
        self.logs: dict[str, list[str]] = {}
        self.deaf = False
        self.changed = threading.Condition()
        self._folder = folder
        self._executor = executor
        self._keys = keys
        self._threads: list[threading.Thread] = []
        self._uids: list[str] = []

    def close(self) -> None:
        """End all that runs."""
        for uid in self._uids:
            self._executor.cancel(uid)
        for thread in self._threads:
            thread.join()

    def create(self, workflow: Mapping[str, Any]) -> dict[str, Any]:
        """Create a workflow, and start it."""
        made = deepcopy(dict(workflow))
        about = made["metadata"]
        template = made["spec"]["workflowTemplateRef"]["name"]
        with self.changed:
            if about["name"] in self.workflows:
                raise No(409, 6, f'workflows.argoproj.io "{about["name"]}" already exists')
            if set(made["spec"]) - {"workflowTemplateRef", "arguments"}:
                raise No(400, 3, "only arguments may be set where templates are referenced securely")
            if template not in self.templates:
                raise No(404, 5, f'workflowtemplates.argoproj.io "{template}" not found')
            about |= {"uid": str(uuid4()), "creationTimestamp": TIME, "resourceVersion": "1"}
            made["status"] = {"phase": "Running", "startedAt": TIME, "nodes": {}}
            self.workflows[about["name"]] = made
            self.created.append(about["name"])
            self._uids.append(about["uid"])
            self.changed.notify_all()
            answer = deepcopy(made)
        if template == "clearance-gate":
            self._wait_at_the_gate(about["name"])
        else:
            thread = threading.Thread(target=self._run, args=(deepcopy(made),))
            self._threads.append(thread)
            thread.start()
        return answer

    def get(self, name: str) -> dict[str, Any]:
        """Return a workflow as it is now."""
        with self.changed:
            if name not in self.workflows:
                raise No(404, 5, f'workflows.argoproj.io "{name}" not found')
            return deepcopy(self.workflows[name])

    def template(self, name: str) -> dict[str, Any]:
        """Return a WorkflowTemplate."""
        if name not in self.templates:
            raise No(404, 5, f'workflowtemplates.argoproj.io "{name}" not found')
        return deepcopy(self.templates[name])

    def listed(self, selector: str) -> list[dict[str, Any]]:
        """Return the workflows with a label."""
        name, _, value = selector.partition("=")
        with self.changed:
            found = deepcopy(list(self.workflows.values()))
        return [each for each in found if (each["metadata"].get("labels") or {}).get(name) == value]

    def delete(self, name: str) -> None:
        """Delete a workflow, as its TTL or a person does."""
        self._executor.cancel(self.get(name)["metadata"]["uid"])
        with self.changed:
            self.workflows.pop(name)
            self.changed.notify_all()

    def shut(self, name: str, *, how: str) -> dict[str, Any]:
        """Stop or terminate a workflow."""
        if self.get(name)["status"]["phase"] in FINAL:
            raise No(400, 3, "cannot shutdown a completed workflow")
        with self.changed:
            self.workflows[name]["spec"]["shutdown"] = how
        if how == "Terminate" or not self.deaf:
            self._executor.cancel(self.get(name)["metadata"]["uid"])
        return self.get(name)

    def set_outputs(self, name: str, *, selector: str, outputs: Mapping[str, str]) -> dict[str, Any]:
        """Give suspended nodes their supplied parameters."""
        for node in self._suspended(name, selector):
            for parameter in node["outputs"]["parameters"]:
                if parameter["name"] in outputs:
                    parameter["value"] = outputs[parameter["name"]]
        return self.get(name)

    def resume(self, name: str, *, selector: str) -> dict[str, Any]:
        """Let suspended nodes go on; a supplied parameter without a value is refused."""
        nodes = self._suspended(name, selector)
        values = [each.get("value") for node in nodes for each in node["outputs"]["parameters"]]
        if None in values:
            raise No(400, 3, "raw output parameter 'clearance' has not been set and has no default value")
        for node in nodes:
            node |= {"phase": "Succeeded", "finishedAt": TIME}
            self._verify(name, node["inputs"]["parameters"][0]["value"], str(values[0]))
        return self.get(name)

    def _run(self, workflow: Mapping[str, Any]) -> None:
        uid, spec = workflow["metadata"]["uid"], workflow["spec"]["arguments"]
        values = {each["name"]: each["value"] for each in spec["parameters"]}
        document = unpacked(spec["artifacts"][0]["raw"]["data"])
        template = document["template"]
        method = step(
            template=Template(template["name"], template["sha256"], "1"),
            params=document["params"],
            retries=int(values["retries"]),
            timeout_s=int(values["timeout-s"]),
        )
        inputs = {}
        folder = self._folder / uid
        folder.mkdir(parents=True)
        for each, given in document["inputs"].items():
            (folder / each).write_bytes(base64.b64decode(given["content"]))
            inputs[each] = JobInput(folder / each, given["sha256"])
        given = replace(job(folder, method, inputs=inputs), run_id=uid)
        self._end(workflow["metadata"]["name"], uid, self._executor.run(given))

    def _end(self, name: str, uid: str, result: StepResult) -> None:
        """Write down how a workflow ended: its root node, a pod for each try, what the last one left."""
        if self.workflows.get(name, {}).get("metadata", {}).get("uid") != uid:
            return
        phase = "Succeeded" if result.error is None else "Failed"
        nodes = {name: _node(name, name, "Retry", phase)}
        for number in range(result.tries):
            each = f"{name}-{int(hashlib.sha256(f'{name}{number}'.encode()).hexdigest()[:8], 16)}"
            last = number == result.tries - 1
            nodes[each] = _node(each, f"{name}({number})", "Pod", phase if last else "Failed")
            if result.error and result.error.startswith("The step "):
                nodes[each]["message"] = result.error
            elif result.error:
                nodes[each]["outputs"] = {"exitCode": "1"}
            if last and result.error is None:
                nodes[each]["outputs"] = {"artifacts": [{"name": "outputs", "path": "/tmp/out"}]}
                self.artifacts[name, each] = archived(result)
        said = [result.error] if result.error and not result.error.startswith("The step ") else []
        self.logs[name] = ["a line before", *said]
        message = None if result.error is None else "child failed"
        if result.error == CANCELLED:
            message = (
                f"Stopped with strategy '{self.workflows.get(name, {}).get('spec', {}).get('shutdown')}'"
            )
        with self.changed:
            if name in self.workflows:
                status = {"phase": phase, "startedAt": TIME, "finishedAt": TIME, "nodes": nodes}
                self.workflows[name]["status"] = status | ({"message": message} if message else {})
            self.changed.notify_all()

    def _wait_at_the_gate(self, name: str) -> None:
        with self.changed:
            workflow = self.workflows[name]
            gate = workflow["spec"]["arguments"]["parameters"][0]["value"]
            node = _node(f"{name}-1", f"{name}[0].wait", "Suspend", "Running")
            node["inputs"] = {"parameters": [{"name": "gate", "value": gate}]}
            node["outputs"] = {"parameters": [{"name": "clearance", "valueFrom": {"supplied": {}}}]}
            workflow["status"]["nodes"][node["id"]] = node
            self.changed.notify_all()

    def _suspended(self, name: str, selector: str) -> list[dict[str, Any]]:
        if name not in self.workflows:
            raise No(404, 5, f'workflows.argoproj.io "{name}" not found')
        nodes = self.workflows[name]["status"]["nodes"].values()
        waiting = [each for each in nodes if (each["type"], each["phase"]) == ("Suspend", "Running")]
        field, _, value = selector.partition("=")
        if field:
            assert field == "inputs.parameters.gate.value"
            waiting = [each for each in waiting if each["inputs"]["parameters"][0]["value"] == value]
        if not waiting:
            raise No(400, 3, "currently, set only targets suspend nodes: none is matched")
        return waiting

    def _verify(self, name: str, gate: str, clearance: str) -> None:
        """Run the step behind the gate as its template says: with the workflow's own uid."""
        uid = self.workflows[name]["metadata"]["uid"]
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "clearance.apps.research.executors.argo_gate"),
                *(gate, uid, str(self._keys), clearance),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        self.logs[name] = (done.stdout + done.stderr).splitlines()
        with self.changed:
            self.workflows[name]["status"]["phase"] = "Failed" if done.returncode else "Succeeded"
            self.changed.notify_all()


def archived(result: StepResult) -> bytes:
    """Return a result as the archive that Argo stores of a step's folder."""
    entries = [
        {"name": each.name, "kind": each.kind, "media_type": each.media_type, "sha256": each.sha256}
        | {"size": len(each.content)}
        for each in result.outputs
    ]
    usage = {"cpu_s": result.cpu_s, "wall_s": result.wall_s, "peak_mb": result.peak_mb}
    files = {each.name: each.content for each in result.outputs}
    files |= {OUTPUTS: json.dumps({"outputs": entries}).encode(), USAGE: json.dumps(usage).encode()}
    return packed_files(files)


def packed_files(files: Mapping[str, bytes]) -> bytes:
    """Return files as a compressed archive of a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        folder = tarfile.TarInfo("out")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in files.items():
            member = tarfile.TarInfo(f"out/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _node(node_id: str, name: str, kind: str, phase: str) -> dict[str, Any]:
    return {
        "id": node_id,
        "name": name,
        "displayName": name,
        "type": kind,
        "phase": phase,
        "startedAt": TIME,
    }
