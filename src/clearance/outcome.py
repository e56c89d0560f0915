"""Outcomes: how a call ended, and the words in which the product says so to the model.

A call that did not run says so here, in the product's own words and with a status that is no success.
"""

from dataclasses import dataclass
from enum import StrEnum

from clearance.policy import DecisionType
from clearance.review import ReviewedCall, refusal_reasons


class CallState(StrEnum):
    """Where a call stands. From `started` to its end the outcome is unknown; the last five are final."""

    HELD = "held"
    CLEARED = "cleared"
    STARTED = "started"
    UNCERTAIN = "uncertain"
    EXECUTED = "executed"
    FAILED = "failed"
    REJECTED = "rejected"
    RESPONDED = "responded"
    BLOCKED = "blocked"


FINAL = frozenset(
    {CallState.EXECUTED, CallState.FAILED, CallState.REJECTED, CallState.RESPONDED, CallState.BLOCKED}
)
SUCCESS = frozenset({CallState.EXECUTED, CallState.RESPONDED})


@dataclass(frozen=True)
class Outcome:
    """How one call ended, or stands: `tool` and `arguments` (JSON text) are what ran or would have run."""

    key: str
    state: CallState
    tool: str
    arguments: str
    text: str
    artifact: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether the model must see this as something that did not succeed."""
        return self.state not in SUCCESS


_NOT_AGAIN = "Do not try it again unless you are asked to."


def rejected(call: ReviewedCall) -> str:
    """Say that people rejected the call."""
    why = refusal_reasons(call)
    reason = f" Reason: {why}" if why else ""
    return f"A reviewer rejected this call; {call.tool} did not run. {_NOT_AGAIN}{reason}"


def revised(call: ReviewedCall) -> str:
    """Say that people sent the plan back that the call is a part of."""
    why = refusal_reasons(call, type=DecisionType.REVISE)
    reason = f" Reason: {why}" if why else ""
    return f"The plan was sent back to be revised; {call.tool} did not run.{reason}"


def expired(tool: str) -> str:
    """Say that nobody cleared the call in time."""
    return f"Nobody cleared this call in time; {tool} did not run."


def withdrawn(tool: str, *, reason: str) -> str:
    """Say that the question was taken back."""
    return f"The request was withdrawn; {tool} did not run. Reason: {reason}"


def repeated(tool: str) -> str:
    """Say that the call had been rejected in this turn already."""
    return (
        f"This call was rejected before in this turn and is not asked again; {tool} did not run. "
        "Explain what was not done and ask the user how to go on."
    )


def blocked(tool: str) -> str:
    """Say that the policy forbids the call."""
    return f"The policy denies this call; {tool} did not run."


def gone(tool: str) -> str:
    """Say that the agent no longer has the call or its tool."""
    return f"This call is no longer offered; {tool} did not run."


def uncertain(tool: str) -> str:
    """Say that nobody knows whether the call happened."""
    return (
        f"{tool} was started, but its outcome is unknown: it may or may not have happened. "
        "It is not repeated. A person has been asked; tell the user that the outcome is open."
    )


def timed_out(tool: str, *, seconds: float) -> str:
    """Say that a tool that changes nothing took too long."""
    return f"{tool} gave no result within {seconds:g} s."


def dropped(tool: str) -> str:
    """Say that a person closed the question of an unknown outcome without running the call again."""
    return f"A person decided that {tool} is not to be run again; whether it happened stays unknown."


def late_answer(tool: str, arguments: str, *, text: str, error: bool) -> str:
    """Tell a thread what became of an earlier call whose outcome had been unknown."""
    how = "did not succeed" if error else "is known now"
    return f"[Clearance: the outcome of the earlier call {tool} {arguments} {how}: {text}]"
