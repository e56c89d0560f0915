"""Research runs with a report: steps run in this process, and go wrong where a test wants it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clearance
from clearance.apps.research.executors.jobs import StepJob, StepOutput, StepResult
from clearance.apps.research.executors.step_folder import outputs_of, result_of
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.methods.cards import card
from clearance.apps.research.report import open_reporter
from clearance.apps.research.report.writer import ReportWriter
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.state import PipelineState
from clearance.apps.research.step import main
from clearance.errors import CallUncertainError
from clearance.workspace import Clearance

PATIENCE = 60.0
RUN = "run1"


@dataclass
class InProcess:
    """Carries steps out in this process, by the program that a process of theirs would run.

    Methods in `broken` fail with that text, those in `lost` end in a way that nobody knows, and `headlines`
    are said in place of their own.
    """

    broken: Mapping[str, str] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    headlines: Mapping[str, str] = field(default_factory=dict)

    def run(self, job: StepJob) -> StepResult:
        """Carry a step out."""
        method = job.step.method
        if method in self.lost:
            raise CallUncertainError("The machine went away.")
        if method in self.broken:
            return StepResult(error=self.broken[method], cpu_s="0.25", wall_s="0.3", peak_mb=12)
        job.folder.mkdir(parents=True, exist_ok=True)
        task = {
            "template": {"name": job.step.template.name, "sha256": job.step.template.sha256},
            "params": card(method).check_params(job.step.params),
            "inputs": {
                name: {"path": str(given.path), "sha256": given.sha256} for name, given in job.inputs.items()
            },
            "out": str(job.folder),
        }
        (job.folder / "task.json").write_text(json.dumps(task))
        assert main([job.step.template.name, str(job.folder / "task.json")]) == 0
        return self._result(job, json.loads((job.folder / "outputs.json").read_bytes())["outputs"])

    def find(self, job: StepJob) -> StepResult | None:
        """Nothing is kept here."""
        return None

    def cancel(self, run_id: str) -> None:
        """A step has ended before anybody could ask."""

    def _result(self, job: StepJob, entries: list[dict[str, Any]]) -> StepResult:
        files: dict[str, bytes | None] = {
            each["name"]: (job.folder / each["name"]).read_bytes() for each in entries
        }
        if job.step.method in self.headlines:
            summary = json.loads(files["summary.json"] or b"")
            summary["headline"] = self.headlines[job.step.method]
            files["summary.json"] = json.dumps(summary).encode()
            entries = [_hashed(each, files[each["name"]]) for each in entries]
        outputs: tuple[StepOutput, ...] = outputs_of(entries, files) or ()
        result = result_of(outputs, usage={"cpu_s": "0.5", "wall_s": "0.6", "peak_mb": 64})
        assert result is not None
        return result


@dataclass
class Reported:
    """A workspace with a pipeline, and what people do there."""

    workspace: Clearance
    research: ResearchRuns

    @classmethod
    @contextmanager
    def open(
        cls, home: Path, *, url: str | None = None, executor: InProcess | None = None
    ) -> Iterator["Reported"]:
        """Open a workspace whose steps run in this process."""
        with clearance.open(url, home=home, person="ann", worker=False) as workspace:
            research = ResearchRuns(
                workspace,
                executors={"local": executor or InProcess()},
                reporter=open_reporter,
                model_named=_no_model,
            )
            workspace.worker.start()
            yield cls(workspace, research)

    def pending(self, **asked: Any) -> PipelineState:
        """Start an offline run, and return where it waits."""
        request = ResearchRequest(**{"symbol": "BRCA1", "offline": True, **asked})
        self.research.start(request, run_id=RUN, by="ann")
        return self.research.wait_for(RUN, wait=PATIENCE)

    def decide(
        self, decision: HITLDecision, *, message: str = "", changes: Mapping[str, Any] | None = None
    ) -> PipelineState:
        """Decide on what waits, and return where the run stops next."""
        waiting = self.research.waiting(RUN)
        assert waiting is not None
        self.research.decide(
            RUN,
            decision,
            by="ann",
            message=message,
            changes=changes,
            plan_sha256=waiting.plan.sha256,
            review_id=waiting.review.id,
        )
        return self.research.wait_for(RUN, wait=PATIENCE)

    def report(self, **asked: Any) -> str:
        """Take a run from its start to its report, and return the page."""
        self.pending(**asked)
        self.decide(HITLDecision.APPROVE)
        return self.text("report.html")

    def text(self, name: str) -> str:
        """Return a file of the run as text."""
        return self.research.store.read(RUN, name).decode()

    @property
    def writer(self) -> ReportWriter:
        """What writes the reports here."""
        return open_reporter(self.workspace, self.research.store)


def _hashed(entry: dict[str, Any], content: bytes | None) -> dict[str, Any]:
    data = content or b""
    return {**entry, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _no_model(name: str) -> Any:
    raise AssertionError(f"no run here asks for the model {name}")
