"""How trials and simulations of policies look, in text and in JSON."""

from typing import Any

from rich.text import Text

from clearance.cli.screen import heading, line, out, shown
from clearance.policy import Threshold, Verdict
from clearance.simulation import Counts, Simulation
from clearance.toolcall import canonical
from clearance.trial import Trial, Tried


def trial_record(trial: Trial) -> dict[str, Any]:
    """Return a trial as plain values."""
    verdict = trial.verdict
    return {
        "effect": verdict.effect.value,
        "risk": verdict.risk.value,
        "allowed_decisions": [item.value for item in verdict.decisions],
        "who": [{"approve": t.approve, "reject": t.reject, "group": t.group} for t in verdict.who],
        "reminds_after": [each.total_seconds() for each in verdict.remind],
        "escalates": [each.to_json() for each in verdict.escalate],
        "expires_in": None if verdict.expire is None else verdict.expire.total_seconds(),
        "reason_required": verdict.reason,
        "self_approval": verdict.self_approval,
        "flags": dict(verdict.flags),
        "faults": list(verdict.faults),
        "policy": verdict.policy,
        "rules": [
            {
                "rule": tried.rule.label,
                "matches": tried.matches,
                "fault": tried.fault,
                "reads": dict(tried.reads),
            }
            for tried in trial.rules
        ],
    }


def draw_trial(trial: Trial) -> None:
    """Draw what a policy says about a call."""
    console, verdict = out(), trial.verdict
    line(console, Text(f"{verdict.effect.value}, {verdict.risk.value} risk", "bold"))
    if verdict.effect.value == "hold":
        line(console, "Needed: " + " and ".join(map(_needed, verdict.who)), indent=2)
        line(console, f"People may: {', '.join(verdict.decisions)}{_ends(verdict)}", indent=2)
    for argument, why in verdict.flags.items():
        line(console, shown(f"Look at {argument}: {why}"), indent=2)
    heading(console, "Rules for this tool")
    for tried in trial.rules:
        line(console, shown(_told(tried)), indent=2)
    if not trial.rules:
        line(console, "None: the policy's default holds.", indent=2)


def simulation_record(found: Simulation) -> dict[str, Any]:
    """Return a simulation as plain values."""
    return {
        "calls": found.then.calls,
        "today": _counts_record(found.today),
        "then": _counts_record(found.then),
        "changes": [
            {"tool": each.tool, "today": each.today.value, "then": each.then.value, "calls": each.calls}
            for each in found.changes
        ],
    }


def draw_simulation(found: Simulation) -> None:
    """Draw what a policy would have said, beside today's."""
    console = out()
    line(console, Text(f"{found.then.calls} calls", "bold"))
    for name, counts in (("today", found.today), ("then", found.then)):
        said = ", ".join(f"{count} {effect.value}" for effect, count in counts.effects.items())
        unanswered = f" ({counts.faults} because a condition gave no answer here)" if counts.faults else ""
        line(console, f"{name:<6} {said}{unanswered}", indent=2)
    heading(console, "By rule, then")
    for rule, count in found.then.rules.items():
        line(console, shown(rule), lead=f"{count:>8}  ")
    if found.changes:
        heading(console, "What would change")
    for each in found.changes:
        line(console, shown(f"{each.tool}: {each.today} → {each.then}"), lead=f"{each.calls:>8}  ")


def _counts_record(counts: Counts) -> dict[str, Any]:
    effects = {effect.value: count for effect, count in counts.effects.items()}
    return {"effects": effects, "rules": counts.rules, "faults": counts.faults}


def _needed(threshold: Threshold) -> str:
    who = "anybody who may decide" if threshold.group is None else f"group {threshold.group}"
    return f"{threshold.approve} of {who}"


def _ends(verdict: Verdict) -> str:
    times = "".join(f"; people are told again after {after}" for after in verdict.remind)
    times += "".join(f"; from {each.after} on {each.to} may decide too" for each in verdict.escalate)
    expires = "" if verdict.expire is None else f"; it expires after {verdict.expire}"
    return times + expires + ("; a rejection needs a reason" if verdict.reason else "")


def _told(tried: Tried) -> str:
    mark = {True: "matches", False: "does not match", None: "gives no answer, so it holds"}[tried.matches]
    read = ", ".join(f"{name} = {canonical(value)}" for name, value in tried.reads.items())
    return f"{tried.rule.label}: {mark}" + (f" ({read})" if read else "")
