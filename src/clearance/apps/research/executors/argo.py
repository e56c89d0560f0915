"""The Argo executor: each step is one workflow of Argo Workflows, created at most once.

The name of a workflow follows from the plan and the step, so that the server itself refuses a second one. But
names come free when workflows are deleted: what counts is our own record, in three files of the run that
never change. `argo.submitting.json` is written before anything is sent, `argo.submitted.json` with the uid
when the workflow is known to be there, `argo.done.json` when it has ended. Once there is a uid nothing is
created any more; a workflow that is then lost is uncertain, for people to look at.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from clearance.apps.research.executors.argo_client import (
    FINAL_PHASES,
    ArgoClient,
    ArgoError,
    ArgoExistsError,
    ArgoRefusedError,
    ArgoUnclearError,
    ArgoUnreachableError,
)
from clearance.apps.research.executors.argo_outputs import failure_of, result_in
from clearance.apps.research.executors.argo_workflow import (
    RUN,
    TEMPLATE,
    is_same,
    label_of,
    phase_of,
    spec_sha256,
    workflow_name,
    workflow_of,
)
from clearance.apps.research.executors.jobs import StepJob, StepResult
from clearance.apps.research.executors.local import CANCELLED
from clearance.apps.research.executors.step_folder import complete, keep_complete
from clearance.apps.research.hitl import BlockedError, BlockedReason
from clearance.apps.research.plan import WorkflowTemplate
from clearance.errors import CallUncertainError, NotFoundError
from clearance.toolcall import canonical

if TYPE_CHECKING:
    from clearance.workspace import Clearance

NAMES_LAST = timedelta(hours=24)
"""So long the WorkflowTemplate keeps an ended workflow: until then its name is not free."""

_SUBMITTING, _SUBMITTED, _DONE = "argo.submitting.json", "argo.submitted.json", "argo.done.json"
_TRIES = 5
LATE = "The step did not end in its time on the cluster, waiting included, and was stopped."

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long is waited for what, in seconds. `queue_s`: beyond the step's own limit, for a place to run."""

    poll_s: float = 15.0
    again_s: float = 2.0
    grace_s: float = 30.0
    queue_s: float = 3600.0


@dataclass(eq=False)
class _Ticket:
    """A job that is being carried out: `stop` when its run was cancelled, `late` when its time is over."""

    run_id: str
    stop: threading.Event = field(default_factory=threading.Event)
    late: bool = False

    @property
    def why(self) -> str | None:
        """Why its workflow was stopped from here."""
        return CANCELLED if self.stop.is_set() else LATE if self.late else None


class ArgoExecutor:
    """Carries steps out on a cluster. `keep` and `read` are those of the run's files, by run id and name.

    A plan names the WorkflowTemplate that its steps run by, with the hash of its spec (`workflow_template`):
    another one there is `template_drift`, and nothing is created. `now` is the time of day.
    """

    def __init__(
        self,
        client: ArgoClient,
        *,
        keep: Callable[[str, str, bytes], object],
        read: Callable[[str, str], bytes],
        now: Callable[[], datetime],
        template: str = TEMPLATE,
        patience: Patience | None = None,
    ) -> None:
        self._client = client
        self._keep = keep
        self._read = read
        self._now = now
        self._template = template
        self._patience = patience or Patience()
        self._lock = threading.Lock()
        self._tickets: set[_Ticket] = set()

    def workflow_template(self) -> WorkflowTemplate:
        """Return the WorkflowTemplate by which steps would run now, for a plan to name.

        Raises `ArgoError` when it is not there, or the server does not give it.
        """
        found = self._client.template(self._template)
        if found is None:
            raise ArgoRefusedError(
                f"The cluster has no WorkflowTemplate {self._template}. Apply the one that is shipped."
            )
        return WorkflowTemplate(self._template, spec_sha256(found))

    def run(self, job: StepJob) -> StepResult:
        """Carry a step out to its end, or take up a workflow that was created for it before.

        Raises `CallUncertainError` when nobody can know whether it was, or is being, carried out.
        """
        found = complete(job.folder, job)
        if found is not None:
            return found
        with self._ticket(job) as ticket:
            try:
                known = self._known(job, _SUBMITTED)
                uid = str(known["uid"]) if known is not None else self._submit(job)
            except (ArgoError, BlockedError) as error:
                return StepResult(error=str(error), tries=0)
            workflow = self._follow(job, uid, ticket)
        return self._ended(job, workflow, why=ticket.why)

    def find(self, job: StepJob) -> StepResult | None:
        """Return the result of a job that was carried out to its end, else None. Creates nothing.

        Raises `CallUncertainError` when its workflow is lost. A server that gives no answer is None, too:
        `run` then waits for it, and creates nothing either once there is a uid.
        """
        found = complete(job.folder, job)
        known = self._known(job, _SUBMITTED)
        if found is not None or known is None:
            return found
        try:
            there = self._client.workflow(workflow_name(job))
        except ArgoError:
            return None
        workflow = self._ours(job, there, uid=str(known["uid"]))
        return self._ended(job, workflow, why=None) if phase_of(workflow) in FINAL_PHASES else None

    def cancel(self, run_id: str) -> None:
        """Stop what runs of a run now, from wherever it was started; nobody waits here for its end.

        Whoever follows a workflow terminates it when it has not ended within the grace; where nobody does,
        asking a second time does. A server that cannot be asked is no error: those who follow ask it again.
        """
        with self._lock:
            mine = [ticket for ticket in self._tickets if ticket.run_id == run_id]
        for ticket in mine:
            ticket.stop.set()
        try:
            there = self._client.workflows(f"{RUN}={label_of(run_id)}")
        except ArgoError as error:
            log.warning("the workflows of run %s may go on: %s", run_id, error)
            return
        for workflow in there:
            if phase_of(workflow) not in FINAL_PHASES:
                self._cancel(workflow, followed=bool(mine))

    def _cancel(self, workflow: Mapping[str, Any], *, followed: bool) -> None:
        name = workflow["metadata"]["name"]
        try:
            if not workflow["spec"].get("shutdown"):
                self._client.stop(name)
            elif not followed:
                self._client.terminate(name)
        except ArgoError as error:
            log.warning("workflow %s may go on, or has just ended: %s", name, error)

    @contextmanager
    def _ticket(self, job: StepJob) -> Iterator[_Ticket]:
        ticket = _Ticket(job.run_id)
        with self._lock:
            self._tickets.add(ticket)
        try:
            yield ticket
        finally:
            with self._lock:
                self._tickets.discard(ticket)

    def _submit(self, job: StepJob) -> str:
        """Have the workflow of a job created, and return its uid, which is kept before anything else."""
        self._check_template(job)
        body = workflow_of(job, namespace=self._client.namespace)
        earlier = self._known(job, _SUBMITTING)
        if earlier is None:
            self._note(job, _SUBMITTING, plan_sha256=job.plan_sha256, at=self._now().isoformat())
            workflow = self._create(job, body, sent=False)
        elif self._now() - datetime.fromisoformat(earlier["at"]) <= NAMES_LAST:
            workflow = self._create(job, body, sent=True)
        else:
            workflow = self._look_up(job, body)
        uid = str(workflow["metadata"]["uid"])
        self._note(job, _SUBMITTED, uid=uid)
        return uid

    def _look_up(self, job: StepJob, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the workflow that was perhaps created so long ago that it may be gone again."""
        there = self._client.workflow(workflow_name(job))
        if there is None:
            raise CallUncertainError(
                f"Workflow {workflow_name(job)} may have been created, and deleted since. "
                "It is not created again."
            )
        return _adopted(there, body)

    def _create(self, job: StepJob, body: Mapping[str, Any], *, sent: bool) -> dict[str, Any]:
        """Create the workflow, or adopt the one that is there. `sent`: it may have been created before."""
        last: ArgoError | None = None
        for number in range(_TRIES):
            if number:
                threading.Event().wait(self._patience.again_s)
            try:
                there = self._client.workflow(workflow_name(job)) if sent else None
                if there is not None:
                    return _adopted(there, body)
                return self._client.create(body)
            except ArgoExistsError:
                sent = True
            except (ArgoUnclearError, ArgoUnreachableError) as error:
                sent, last = sent or isinstance(error, ArgoUnclearError), error
            except ArgoRefusedError as error:
                if not sent or _is_another(error):
                    raise
                last = error
        if last is not None and not sent:
            raise last
        raise CallUncertainError(
            f"Workflow {workflow_name(job)} may have been created: {last or 'the server contradicts itself'}"
        )

    def _follow(self, job: StepJob, uid: str, ticket: _Ticket) -> dict[str, Any]:
        """Return the workflow when it has ended. The watch wakes; what counts is what is then read."""
        name, patience = workflow_name(job), self._patience
        until = time.monotonic() + job.step.timeout_s * (job.step.retries + 1) + patience.queue_s
        stopped = False
        while True:
            try:
                workflow = self._ours(job, self._client.workflow(name), uid=uid)
                if phase_of(workflow) in FINAL_PHASES:
                    return workflow
                if not stopped and (ticket.stop.is_set() or time.monotonic() > until):
                    ticket.late = not ticket.stop.is_set()
                    self._stop(name)
                    stopped, until = True, time.monotonic() + 2 * patience.grace_s
            except ArgoRefusedError as error:
                raise CallUncertainError(f"Workflow {name} cannot be watched any more: {error}") from error
            except ArgoError:
                threading.Event().wait(patience.again_s)
            if time.monotonic() > until + patience.grace_s:
                raise CallUncertainError(f"Workflow {name} did not end in time, or nothing is heard of it.")
            # An event that stays set would make a busy loop of it.
            stop = threading.Event() if stopped else ticket.stop
            self._client.wait_for_change(name, seconds=patience.poll_s, stop=stop)

    def _ours(self, job: StepJob, workflow: dict[str, Any] | None, *, uid: str) -> dict[str, Any]:
        if workflow is None or workflow["metadata"].get("uid") != uid:
            done = self._known(job, _DONE)
            what = "was deleted before its end was seen" if done is None else "has ended and was deleted"
            raise CallUncertainError(f"Workflow {workflow_name(job)} {what}. It is not created again.")
        return workflow

    def _stop(self, name: str) -> None:
        """Stop a workflow, and terminate it when it has not ended within the grace."""
        try:
            self._client.stop(name)
        except ArgoRefusedError:
            if not self._is_over(name):
                raise
        until = time.monotonic() + self._patience.grace_s
        never = threading.Event()
        while time.monotonic() < until:
            if self._is_over(name):
                return
            left = max(0.05, min(self._patience.poll_s, until - time.monotonic()))
            self._client.wait_for_change(name, seconds=left, stop=never)
        self._client.terminate(name)

    def _is_over(self, name: str) -> bool:
        workflow = self._client.workflow(name)
        return workflow is None or phase_of(workflow) in FINAL_PHASES

    def _ended(self, job: StepJob, workflow: Mapping[str, Any], *, why: str | None) -> StepResult:
        """Return what came of a workflow that has ended."""
        if self._known(job, _DONE) is None:
            self._note(job, _DONE, uid=workflow["metadata"]["uid"], phase=phase_of(workflow))
        if phase_of(workflow) != "Succeeded":
            return failure_of(self._client, workflow, error=why)
        try:
            # A template that was changed while the step ran may have been what ran.
            self._check_template(job)
            result = result_in(self._client, workflow)
        except (ArgoError, BlockedError) as error:
            return StepResult(error=f"The step was carried out, and its outputs cannot be used: {error}")
        if result.error is None:
            keep_complete(job, result)
        return result

    def _check_template(self, job: StepJob) -> None:
        cleared = job.step.workflow_template
        there = None if cleared is None else self._client.template(cleared.name)
        if cleared is None or there is None or spec_sha256(there) != cleared.sha256:
            raise BlockedError(
                BlockedReason.TEMPLATE_DRIFT,
                "The WorkflowTemplate on the cluster is not the one that was cleared.",
            )

    def _known(self, job: StepJob, name: str) -> dict[str, Any] | None:
        try:
            content = self._read(job.run_id, f"steps/{job.step.id}/{name}")
        except NotFoundError:
            return None
        known: dict[str, Any] = json.loads(content)
        return known

    def _note(self, job: StepJob, name: str, **facts: str) -> None:
        document = {"name": workflow_name(job), **facts}
        self._keep(job.run_id, f"steps/{job.step.id}/{name}", canonical(document).encode())


def open_argo(c: "Clearance") -> ArgoExecutor:
    """Return the executor of the server that ARGO_SERVER names, with its records in a workspace.

    ARGO_WORKFLOW_TEMPLATE is another name of the WorkflowTemplate. Raises `SettingsError`.
    """
    from clearance.apps.research.run_store import RunStore

    store = RunStore(c.database, c.home)
    return ArgoExecutor(
        ArgoClient.from_environment(),
        keep=store.put,
        read=store.read,
        now=store.now,
        template=os.environ.get("ARGO_WORKFLOW_TEMPLATE", "").strip() or TEMPLATE,
    )


class _AnotherError(ArgoRefusedError):
    """The name is taken by a workflow of somebody else: ours was not created."""


def _adopted(there: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workflow of our name when it is for this plan, job and template; else it is another's."""
    if not is_same(there, body):
        name = body["metadata"]["name"]
        raise _AnotherError(f"A workflow {name} is there that is not of this plan. It was left as it is.")
    return there


def _is_another(error: ArgoRefusedError) -> bool:
    return isinstance(error, _AnotherError)
