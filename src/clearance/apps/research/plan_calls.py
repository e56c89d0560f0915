"""The calls of a plan: each step is one tool call, whose fingerprint holds the plan's sha256."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.plan import Plan, Step
from clearance.policy import DecisionType, Policy, Risk, Rule
from clearance.toolcall import Tool, ToolCall, argument_text

PROGRAM = "research"
EXECUTE = 1000
"""Questions at S5_execute have numbers from here on: `EXECUTE * n + version`, for the n-th one."""
REACHES_FURTHER = frozenset({"network", "writes_store", "publishes", "personal_data"})
GRACE = 60.0
"""Seconds that a call has beyond what its step may take on its own."""

_HEX = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
STEP_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["plan_sha256", "step", "template", "params", "inputs", "executor"],
    "properties": {
        "plan_sha256": {**_HEX, "description": "The plan that this step belongs to, byte for byte."},
        "step": {"type": "string"},
        "template": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "sha256", "version"],
            "properties": {"name": {"type": "string"}, "sha256": _HEX, "version": {"type": "string"}},
        },
        "params": {"type": "object"},
        "inputs": {
            "type": "object",
            "description": "For each input a file of the run with its hash, or what an earlier step gives.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["from"],
                "properties": {"from": {"type": "string"}, "sha256": _HEX},
            },
        },
        "executor": {"type": "string"},
    },
}


@dataclass(frozen=True)
class PlanQuestion:
    """What people are asked about a plan at one gate: the number of the question, and these steps."""

    number: int
    steps: tuple[Step, ...]


def plan_question(plan: Plan) -> PlanQuestion:
    """Return what is asked at S4_plan: every step of the plan."""
    return PlanQuestion(plan.version, plan.steps)


def execute_question(plan: Plan, steps: tuple[Step, ...], *, round: int) -> PlanQuestion:
    """Return what is asked at S5_execute: steps that reach further than others, or than people were told."""
    return PlanQuestion(EXECUTE * round + plan.version, steps)


def reaches_further(step: Step) -> bool:
    """Whether a step needs people at S5_execute, too: it has effects beyond the run's own folder."""
    return step.executor != "local" or bool(REACHES_FURTHER & set(step.risk.effects))


def calls_of(plan: Plan, question: PlanQuestion, *, run_id: str) -> tuple[ToolCall, ...]:
    """Return the calls of a question, in the order of the plan."""
    places = {step.id: place for place, step in enumerate(plan.steps)}
    return tuple(
        ToolCall(
            key=f"{run_id}/{question.number}/{places[step.id]}",
            tool=step.method,
            arguments=argument_text(arguments_of(plan, step)),
        )
        for step in question.steps
    )


def tools_of(run: Callable[[dict[str, Any], str], object], verify: Callable[..., object]) -> dict[str, Tool]:
    """Return the methods as tools. `run` and `verify` take a call's arguments and its key."""
    return {
        card.id: Tool(
            name=card.id,
            schema=STEP_SCHEMA,
            run=run,
            verify=verify,
            description=card.summary,
            timeout=LONGEST_STEP + GRACE,
            parallel=True,
        )
        for card in load_cards()
    }


LONGEST_STEP = 24 * 3600.0


def default_policy() -> Policy:
    """Return the policy of a new workspace: every step waits, at the risk that its card names."""
    allowed = (DecisionType.APPROVE, DecisionType.REJECT, DecisionType.REVISE)
    return Policy(
        rules=tuple(
            Rule(card.id, risk=Risk(card.risk.level), decisions=allowed, reason=True, name="research plan")
            for card in load_cards()
        )
    )


def arguments_of(plan: Plan, step: Step) -> dict[str, Any]:
    """Return the arguments of the call that carries out a step of this plan."""
    hashes = {each.id: each.sha256 for each in plan.inputs}
    return {
        "plan_sha256": plan.sha256,
        "step": step.id,
        "template": {
            "name": step.template.name,
            "sha256": step.template.sha256,
            "version": step.template.version,
        },
        "params": dict(step.params),
        "inputs": {
            name: {"from": source, **({"sha256": hashes[source]} if source in hashes else {})}
            for name, source in step.inputs.items()
        },
        "executor": step.executor,
    }
