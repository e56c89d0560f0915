"""Drawing research runs: their way, the plan that waits, what changed in it, where a run has stopped."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from clearance.cli.drawing import risk_text
from clearance.cli.options import Options, invocation
from clearance.cli.screen import err, heading, line, near, shown
from clearance.policy import Risk
from clearance.run import Run

if TYPE_CHECKING:
    from clearance.apps.research.plan import Plan, Step
    from clearance.apps.research.plan_diff import PlanDiff
    from clearance.apps.research.research_request import ResearchRequest
    from clearance.apps.research.runs import ResearchRuns, Waiting
    from clearance.store.run_files import RunStage

_LABEL = 11
_STAGE = 23
_NARROW = 72
_STYLES = {
    "hitl_plan_pending": "bold yellow",
    "hitl_execute_pending": "bold yellow",
    "hitl_plan_approved": "green",
    "hitl_execute_approved": "green",
    "done": "bold green",
    "hitl_rejected": "red",
    "hitl_expired": "red",
    "blocked_hitl": "bold red",
}
_NO_TEXT = {
    "started": "",
    "hitl_plan_pending": "people must decide on the plan",
    "hitl_execute_pending": "people must decide on what reaches further",
    "hitl_execute_approved": "nothing of the plan reaches further",
}


def draw_begun(run_id: str, request: "ResearchRequest") -> None:
    """Say on standard error which run it is, before its first stage: it is found again by this."""
    what = f"{request.subject}{', offline' if request.offline else ''}"
    line(err(), shown(what), lead=Text(f"Run {run_id}  ", "bold"))


def draw_stage(console: Console, stage: "RunStage") -> None:
    """Draw one step of a run's way: when, which, and what it gave."""
    style = _STYLES.get(stage.stage, "")
    when = Text(f"{stage.at:%H:%M:%S}  ", "dim")
    said = str(stage.state.get("line", ""))
    if stage.stage in ("hitl_plan_pending", "hitl_execute_pending") or not said:
        said = _NO_TEXT.get(stage.stage, said)
    if console.is_terminal and console.width < _NARROW:
        line(console, Text(stage.stage, style), lead=when)
        if said:
            line(console, shown(said), indent=when.cell_len)
        return
    width = _STAGE if said else 0
    line(console, shown(said), lead=when.append(f"{stage.stage:<{width}}", f"not dim {style}"))


def draw_run(console: Console, research: "ResearchRuns", run_id: str, *, person: str) -> None:
    """Draw a run: its way so far, its plan in full, and what it waits for."""
    run, state, request = research.run(run_id), research.state(run_id), research.request(run_id)
    line(console, Text(f"Run {run_id}  ", "bold").append_text(shown(request.subject, "not bold")))
    _row(console, "state", Text(run.state.value, "bold").append(f", stage {state.stage}"))
    _row(console, "asked by", f"{run.requester}, {run.created_at:%Y-%m-%d %H:%M} UTC")
    if run.reason:
        _row(console, "reason", shown(run.reason, "red"))
    heading(console, "Its way")
    for stage in research.stages(run_id):
        draw_stage(console, stage)
    waiting = research.waiting(run_id, seen_by=person)
    if waiting is not None:
        draw_plan(console, waiting.plan)
        _draw_gate(console, waiting)
    elif state.plan_version:
        draw_plan(console, research.store.plan(run_id, state.plan_version))
    _draw_results(console, research, run_id)


def draw_plan(console: Console, plan: "Plan") -> None:
    """Draw a plan in full: every step with its reason, what was left out, what to read with care."""
    _draw_head(console, plan)
    for number, step in enumerate(plan.steps, start=1):
        _draw_step(console, number, step)
    _draw_list(console, "Left out", [f"{each.method}: {each.reason}" for each in plan.left_out])
    _draw_list(console, "Read with care", list(plan.warnings))
    _draw_list(console, "Rests on", [f"{each.ref}  {each.claim or ''}".strip() for each in plan.evidence])


def draw_summary(console: Console, plan: "Plan") -> None:
    """Draw a plan in short: a line for each step, and what to read with care."""
    _draw_head(console, plan)
    console.print()
    room = max(len(step.id) for step in plan.steps)
    for number, step in enumerate(plan.steps, start=1):
        lead = Text(f"{number:>3}. ").append(f"{step.id:<{room}}  ", "bold")
        shape = risk_text(Risk(step.risk.level))
        line(console, shape.append(f"  {_costs(step)}", "not bold"), lead=lead)
    _draw_list(console, "Read with care", list(plan.warnings))


def draw_diff(console: Console, changed: "PlanDiff") -> None:
    """Draw what one version has that another has not."""
    styles = {"+": "green", "-": "red", "~": "yellow"}
    for text in changed.lines():
        line(console, shown(text, styles.get(text[:1], "")), lead="  ")


def draw_stop(
    console: Console, research: "ResearchRuns", run_id: str, *, options: Options, person: str
) -> None:
    """Draw where a run has stopped, and what to do then; the last line is for programs, too."""
    state = research.state(run_id)
    waiting = research.waiting(run_id, seen_by=person)
    if waiting is None:
        _draw_results(console, research, run_id)
        said = f"analyst_summary={state.analyst_summary} report_artifact_path={state.report_artifact_path}"
        console.print(shown(f"stage={state.stage} {said}"))
        return
    draw_summary(console, waiting.plan)
    _draw_gate(console, waiting)
    draw_commands(console, waiting, run_id=run_id, options=options)
    console.print()
    console.print(f"run_id={run_id} interrupted=True stage={state.stage}")


def draw_commands(console: Console, waiting: "Waiting", *, run_id: str, options: Options) -> None:
    """Draw the commands that look at a plan and decide on it."""
    program = f"{invocation(options)} pipeline"
    seen = f" --plan {waiting.plan.sha256}" if waiting.plan.version > 1 else ""
    seen += f" --review {waiting.review.id}" if waiting.gate == "S5_execute" else ""
    heading(console, "Read it in full, then decide")
    console.print(shown(f"  {program} show {run_id}"))
    for how in _ways(waiting):
        console.print(shown(f"  {program} resume {run_id} {how}{seen}"))


def draw_line(console: Console, research: "ResearchRuns", run: Run) -> None:
    """Draw a run in one line."""
    from clearance.apps.research.records import short_record

    told = short_record(research, run)
    style = {"waiting": "bold yellow", "failed": "red", "done": "green"}.get(run.state.value, "")
    lead = Text(f"{run.created_at:%Y-%m-%d %H:%M}  ", "dim").append(
        f"{run.state.value:<9}  ", f"not dim {style}"
    )
    line(console, shown(f"{run.id}  {told['gene_symbol']}  {told['stage']}"), lead=lead)


def full_record(research: "ResearchRuns", run_id: str, *, person: str) -> dict[str, Any]:
    """Return a run as JSON, with its plan and what changed in it."""
    from clearance.apps.research.records import run_record

    record = run_record(research, run_id)
    waiting = research.waiting(run_id, seen_by=person)
    version = record["plan_version"]
    return {
        **record,
        "plan": research.store.plan(run_id, version).document() if version else None,
        "diff": None if waiting is None or waiting.diff is None else waiting.diff.document(),
    }


def _ways(waiting: "Waiting") -> list[str]:
    """Return how the gate can be answered."""
    from clearance.apps.research.hitl import HITLGate
    from clearance.policy import DecisionType

    offered = {each for call in waiting.review.waiting for each in call.verdict.decisions}
    found = ["--approve"]
    if waiting.gate is HITLGate.S4_PLAN and DecisionType.REVISE in offered:
        found += ["--edit FILE", "--revise --exclude METHOD -m TEXT"]
    return [*found, "--reject -m TEXT"]


def _draw_head(console: Console, plan: "Plan") -> None:
    total = plan.total
    heading(console, f"Plan, version {plan.version}")
    _row(console, "objective", plan.objective)
    _row(console, "sha256", plan.sha256)
    _row(console, "made by", plan.created_by.name)
    cost = f"{total.cost} {plan.budget.currency} of at most {plan.budget.max_cost}"
    _row(console, "costs", f"{cost}; {total.cpu_s} CPU s, {total.mem_mb} MB")
    _row(console, "risk", risk_text(Risk(plan.risk)))


def _draw_gate(console: Console, waiting: "Waiting") -> None:
    from clearance.apps.research.hitl import HITLGate

    if waiting.diff is not None:
        heading(console, "Changed since the version before")
        draw_diff(console, waiting.diff)
    console.print()
    _row(console, "waits at", Text(waiting.gate.value, "bold yellow").append(f", review {waiting.review.id}"))
    if waiting.gate is HITLGate.S5_EXECUTE:
        _row(console, "asks about", ", ".join(call.tool for call in waiting.review.calls))


def _draw_results(console: Console, research: "ResearchRuns", run_id: str) -> None:
    state = research.state(run_id)
    if not state.analyst_summary:
        return
    console.print()
    _row(console, "analysis", state.analyst_summary)
    if state.report_artifact_path:
        _row(console, "report", str(near(research.file(run_id, state.report_artifact_path))))


def _draw_step(console: Console, number: int, step: "Step") -> None:
    heading(console, Text(f"{number}. ").append_text(shown(step.id, "bold")))
    line(console, shown(step.rationale), indent=3)
    inputs = ", ".join(f"{name} = {source}" for name, source in sorted(step.inputs.items()))
    _detail(console, "reads", inputs)
    if step.params:
        _detail(
            console, "with", ", ".join(f"{name} = {value}" for name, value in sorted(step.params.items()))
        )
    _detail(console, "costs", _costs(step))
    line(console, risk_text(Risk(step.risk.level)), lead=Text(f"   {'risk':<7}", "dim"))


def _costs(step: "Step") -> str:
    effects = [each for each in step.risk.effects if each != "compute"]
    place = "" if step.executor == "local" else f", on {step.executor}"
    reaches = f", {', '.join(effects)}" if effects else ""
    return f"{step.estimate.cpu_s} CPU s, {step.estimate.mem_mb} MB{place}{reaches}"


def _draw_list(console: Console, title: str, texts: list[str]) -> None:
    if texts:
        heading(console, title)
    for text in texts:
        line(console, shown(text), lead="  · ")


def _detail(console: Console, label: str, text: str) -> None:
    line(console, shown(text), lead=Text(f"   {label:<7}", "dim"))


def _row(console: Console, label: str, text: Text | str) -> None:
    lead = Text(f"  {label:<{_LABEL}}", "dim")
    line(console, shown(text) if isinstance(text, str) else text, lead=lead)
