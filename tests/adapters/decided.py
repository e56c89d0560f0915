"""Deciding, and looking at what became of it, in the tests of cleared functions."""

from collections.abc import Callable
from typing import Any

import pytest

from clearance.errors import ReviewPendingError
from clearance.run import RunState
from clearance.store import listing, reviews, runs
from clearance.workspace import Clearance

APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "too much"}


def decide(workspace: Clearance, review_id: str, decision: dict[str, Any] = APPROVE) -> None:
    """Take a decision on the one call of a review, as the one person here."""
    with workspace.database.read() as tx:
        version = reviews.review(tx, review_id).version
    workspace.gate.decide(review_id, [decision], by="ann", version=version)


def pending(call: Callable[[], object]) -> str:
    """Return the review that a call waits for; it must wait for one."""
    with pytest.raises(ReviewPendingError) as waits:
        call()
    return waits.value.review_id


def inbox(workspace: Clearance) -> list[str]:
    """Return the reviews that wait."""
    with workspace.database.read() as tx:
        return [review.id for review in listing.inbox(tx)]


def state_of(workspace: Clearance, run_id: str) -> RunState:
    """Return where a run stands."""
    with workspace.database.read() as tx:
        return runs.run(tx, run_id).state
