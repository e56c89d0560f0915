"""Runs: one turn of a thread, from its message to its answer, with as many waits between as it needs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from clearance.errors import ConflictError, ReviewPendingError, ThreadBusyError


class RunState(StrEnum):
    """`queued` for a worker, `running` in one, `waiting` for people; then one of the three ends."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.WAITING})


@dataclass(frozen=True)
class Run:
    """One run. `input` is the person's message; `answer` and `reason` are set at its end.

    Since `redacted_at` it has none of them any more: retention has removed its values.
    """

    id: str
    thread_id: str
    program: str
    state: RunState
    requester: str
    input: str | None
    created_at: datetime
    answer: str | None = None
    reason: str | None = None
    ended_at: datetime | None = None
    redacted_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether the run has not ended."""
        return self.state in OPEN


AGENT = "agent:"
"""What the program of an agent that runs its calls elsewhere begins with; the agent's name follows."""


def is_one_call(program: str) -> bool:
    """Whether a run of this program is one call, made and carried out elsewhere."""
    return program.startswith(AGENT)


def conflict(run: Run, *, pending_review: str | None) -> ConflictError:
    """Return why a thread with this open run takes no message now."""
    match run.state:
        case RunState.WAITING if pending_review is not None:
            return ReviewPendingError(pending_review)
        case RunState.QUEUED | RunState.RUNNING | RunState.WAITING:
            return ThreadBusyError(run.thread_id, run.id)
        case RunState.DONE | RunState.FAILED | RunState.CANCELLED:
            raise ValueError(f"run {run.id} has ended")
        case _:
            assert_never(run.state)
