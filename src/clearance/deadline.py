"""Deadlines and other times of reviews. The stored instant counts, not when it was noticed.

All of them are elapsed time, counted in UTC: clocks that are put forward or back twice a year change none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from clearance.policy import Verdict
from clearance.review import Review


class TimeKind(StrEnum):
    """What is due at a time while a review waits: people are told again, or other people may decide too."""

    REMIND = "remind"
    ESCALATE = "escalate"


@dataclass(frozen=True, order=True)
class Time:
    """An instant at which something is due for a review; `to` is the group that it is escalated to."""

    at: datetime
    kind: TimeKind
    to: str = ""


def times(review: Review) -> tuple[Time, ...]:
    """Return what is due for the review while it waits, in order."""
    found = {
        Time(call.since + after, kind, to)
        for call in review.waiting
        if call.since is not None
        for kind, after, to in (
            *((TimeKind.REMIND, after, "") for after in call.verdict.remind),
            *((TimeKind.ESCALATE, each.after, each.to) for each in call.verdict.escalate),
        )
    }
    return tuple(sorted(found))


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
