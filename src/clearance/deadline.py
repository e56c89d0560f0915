"""Deadlines: until when a review can be decided. The stored instant counts, not when it was noticed."""

from collections.abc import Iterable
from datetime import datetime

from clearance.policy import Verdict


def deadline(verdicts: Iterable[Verdict], *, asked_at: datetime) -> datetime | None:
    """Return the earliest deadline that any of the verdicts sets, or None: then the review waits for ever."""
    times = [verdict.expire for verdict in verdicts if verdict.expire is not None]
    return asked_at + min(times) if times else None


def earliest(*instants: datetime | None) -> datetime | None:
    """Return the first of the instants that are set, or None when none is."""
    return min((instant for instant in instants if instant is not None), default=None)


def is_over(instant: datetime | None, *, now: datetime) -> bool:
    """Whether a decision at `now` comes too late: it counts only strictly before the deadline."""
    return instant is not None and now >= instant
