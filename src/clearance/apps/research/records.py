"""Records of research runs: what every door tells of them, as JSON."""

from typing import Any

from clearance.apps.research.research_request import ResearchRequest, read_request
from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.reading import removed
from clearance.run import Run
from clearance.store.run_files import RunFile, RunStage


def short_record(research: ResearchRuns, run: Run) -> dict[str, Any]:
    """Return what a list of runs says of each."""
    gone = removed(run.redacted_at)
    request = read_request(run.input) if gone is None else ResearchRequest("", objective=gone)
    state = research.store.state(run.id)
    return {
        "run_id": run.id,
        "gene_symbol": request.subject if gone is None else "",
        "objective": request.objective,
        "state": run.state.value,
        "stage": "started" if state is None else state.stage.value,
        "requester": run.requester,
        "created_at": run.created_at.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
        "reason": run.reason,
    }


def run_record(research: ResearchRuns, run_id: str) -> dict[str, Any]:
    """Return a run: where it is, how it came there, what it waits for, and the files that it has."""
    state = research.state(run_id)
    waiting = research.waiting(run_id)
    return {
        **short_record(research, research.run(run_id)),
        "planner_summary": state.planner_summary,
        "plan_artifact_path": state.plan_artifact_path,
        "plan_version": state.plan_version,
        "plan_sha256": state.plan_sha256,
        "analyst_summary": state.analyst_summary,
        "report_artifact_path": state.report_artifact_path,
        **gate_record(waiting),
        "stages": [stage_record(each) for each in research.stages(run_id)],
        "files": [file_record(each) for each in research.store.files(run_id)],
    }


def gate_record(waiting: Waiting | None) -> dict[str, Any]:
    """Return what a run waits for; every field but the first is null when it waits for nobody."""
    if waiting is None:
        return {"interrupted": False, "gate": None, "review_id": None, "expires_at": None}
    deadline = waiting.review.deadline
    return {
        "interrupted": True,
        "gate": waiting.gate.value,
        "review_id": waiting.review.id,
        "expires_at": None if deadline is None else deadline.isoformat(),
    }


def diff_record(run_id: str, waiting: Waiting) -> dict[str, Any]:
    """Return what changed in the plan that waits; `diff` is null for a first version."""
    changed = waiting.diff
    return {
        "run_id": run_id,
        "version": waiting.plan.version,
        "plan_sha256": waiting.plan.sha256,
        "diff": None if changed is None else changed.document(),
        "lines": [] if changed is None else changed.lines(),
    }


def stage_record(stage: RunStage) -> dict[str, Any]:
    """Return one step of a run's way, with a line about what it gave."""
    line = stage.state.get("line", "")
    return {"n": stage.n, "stage": stage.stage, "at": stage.at.isoformat(), "line": line}


def file_record(file: RunFile) -> dict[str, Any]:
    """Return what is known of a run's file."""
    return {
        "name": file.name,
        "media_type": file.media_type,
        "sha256": file.sha256,
        "size": file.size,
        "at": file.at.isoformat(),
    }
