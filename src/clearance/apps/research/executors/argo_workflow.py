"""The workflow of a step: its name, its labels, and the one body that it can have."""

import hashlib
from base64 import b32encode
from collections.abc import Mapping
from typing import Any

from clearance.apps.research.executors.argo_client import ArgoRefusedError
from clearance.apps.research.executors.argo_outputs import TOO_LARGE, inputs_of
from clearance.apps.research.executors.argo_step import packed
from clearance.apps.research.executors.jobs import StepJob
from clearance.apps.research.executors.step_folder import job_text
from clearance.toolcall import canonical

TEMPLATE = "clearance-step"
PLAN = "clearance-plan-sha256"
JOB = "clearance-job-sha256"
RUN = "clearance-run"
LARGEST_JOB = 512 * 1024
"""A workflow is one object of the cluster's store, which takes a megabyte and a half."""


def workflow_of(job: StepJob, *, namespace: str) -> dict[str, Any]:
    """Return the workflow of a job. It sets nothing but arguments: `templateReferencing: Secure` fits.

    The same job gives the same. Raises `BlockedError` when an input is not what was cleared, and
    `ArgoRefusedError` when the inputs are larger than a workflow can carry.
    """
    data = packed(job, inputs_of(job))
    if len(data) > LARGEST_JOB:
        raise ArgoRefusedError(TOO_LARGE)
    template = job.step.workflow_template
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": workflow_name(job),
            "namespace": namespace,
            "labels": {RUN: label_of(job.run_id)},
            "annotations": {
                PLAN: job.plan_sha256,
                JOB: hashlib.sha256(job_text(job).encode()).hexdigest(),
            },
        },
        "spec": {
            "workflowTemplateRef": {"name": TEMPLATE if template is None else template.name},
            "arguments": {
                "parameters": [
                    {"name": "retries", "value": str(job.step.retries)},
                    {"name": "timeout-s", "value": str(job.step.timeout_s)},
                ],
                "artifacts": [{"name": "job", "raw": {"data": data}}],
            },
        },
    }


def is_same(there: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a workflow that is there is the one of this body: plan, job, template and arguments."""
    annotations = there["metadata"].get("annotations") or {}
    ours = body["metadata"]["annotations"]
    spec = there.get("spec") or {}
    return all(annotations.get(each) == ours[each] for each in (PLAN, JOB)) and all(
        spec.get(each) == body["spec"][each] for each in body["spec"]
    )


def workflow_name(job: StepJob) -> str:
    """Return the one name that the workflow of a step has: at most 63 letters, by plan and step."""
    return f"clearance-{_short(job.plan_sha256)}-{job.step.id}"


def label_of(run_id: str) -> str:
    """Return the label that all workflows of a run have; run ids themselves need not fit one."""
    return _short(hashlib.sha256(run_id.encode()).hexdigest())


def spec_sha256(template: Mapping[str, Any]) -> str:
    """Return the sha256 (hex) of the canonical JSON of a WorkflowTemplate's spec, as the server gives it."""
    return hashlib.sha256(canonical(template.get("spec") or {}).encode()).hexdigest()


def _short(sha256: str) -> str:
    return b32encode(bytes.fromhex(sha256)).decode().lower()[:26]


def phase_of(workflow: Mapping[str, Any]) -> str:
    """Return the phase of a workflow; empty before it has one."""
    return str((workflow.get("status") or {}).get("phase") or "")
