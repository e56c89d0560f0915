"""What a workflow gives: the outputs of its step, checked, or a sentence that says why there are none."""

import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from clearance.apps.research.executors.argo_client import ArgoClient
from clearance.apps.research.executors.guard import last_line
from clearance.apps.research.executors.jobs import StepJob, StepResult
from clearance.apps.research.executors.step_folder import (
    LARGEST_TOTAL,
    MOST_FILES,
    USAGE,
    entries_of,
    object_of,
    outputs_of,
    read_input,
    result_of,
)
from clearance.apps.research.hitl import BlockedError, BlockedReason
from clearance.apps.research.step import OUTPUTS

ARTIFACT = "outputs"
TOO_LARGE = "The step's inputs are too large to be handed to Argo Workflows; run it with the local executor."
NOT_WHOLE = "The step ended without a complete list of its outputs."
_ROOM_FOR_HEADERS = 1024 * 1024
# The exit codes of a step that says what is wrong; see `clearance.apps.research.step`.
_BY_ITSELF = ("1", "2")


def inputs_of(job: StepJob) -> dict[str, bytes]:
    """Return the inputs of a job. Raises `BlockedError` when one is not what was cleared."""
    found = {}
    for name, given in job.inputs.items():
        content = read_input(given)
        if content is None:
            raise BlockedError(BlockedReason.INPUT_DRIFT, f"{name} is not the file that was cleared.")
        found[name] = content
    return found


def result_in(client: ArgoClient, workflow: Mapping[str, Any]) -> StepResult:
    """Return the result of a workflow that succeeded. Raises `ArgoError` when its files cannot be had."""
    pods = list(_pods(workflow))
    node = next((each for each in reversed(pods) if _has_outputs(each)), None)
    if node is None:
        return StepResult(error=NOT_WHOLE, tries=max(len(pods), 1))
    name = workflow["metadata"]["name"]
    content = client.artifact(name, node=node["id"], artifact=ARTIFACT, largest=LARGEST_TOTAL)
    files = _unpacked(content)
    outputs = outputs_of(entries_of(files.get(OUTPUTS)), dict(files))
    result = None if outputs is None else result_of(outputs, usage=object_of(files.get(USAGE)))
    if result is None:
        return StepResult(error=NOT_WHOLE, tries=max(len(pods), 1))
    return replace(result, tries=max(len(pods), 1))


def failure_of(client: ArgoClient, workflow: Mapping[str, Any], *, error: str | None) -> StepResult:
    """Return why a workflow failed: what the step said last where it ended by itself, else what Argo says.

    `error` is the reason where it is known here.
    """
    pods = list(_pods(workflow))
    if error is None:
        name, last = workflow["metadata"]["name"], pods[-1] if pods else {}
        by_itself = (last.get("outputs") or {}).get("exitCode") in _BY_ITSELF
        said = client.last_line(name) if by_itself else ""
        messages = (said, last.get("message"), workflow["status"].get("message"))
        found = (last_line(str(each)) for each in messages if each)
        error = next((each for each in found if each), f"The workflow {name} failed.")
    return StepResult(error=error, tries=max(len(pods), 1))


def _pods(workflow: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the nodes that are pods, in the order in which they were started."""
    nodes = (workflow["status"].get("nodes") or {}).values()
    yield from sorted(
        (each for each in nodes if each.get("type") == "Pod"), key=lambda each: str(each.get("startedAt"))
    )


def _has_outputs(node: Mapping[str, Any]) -> bool:
    artifacts = (node.get("outputs") or {}).get("artifacts") or ()
    return node.get("phase") == "Succeeded" and any(each.get("name") == ARTIFACT for each in artifacts)


def _unpacked(content: bytes) -> dict[str, bytes]:
    """Return the files of a compressed archive by their bare names; nothing is written anywhere."""
    inflating = zlib.decompressobj(wbits=31)
    files: dict[str, bytes] = {}
    try:
        plain = inflating.decompress(content, LARGEST_TOTAL + _ROOM_FOR_HEADERS)
        if not inflating.eof:
            return {}
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    files[PurePosixPath(member.name).name] = file.read()
                if len(files) > MOST_FILES:
                    return {}
    except (zlib.error, tarfile.TarError, OSError, ValueError):
        return {}
    return files
