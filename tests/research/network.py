"""What the tests of the pipeline's sources share: a clock, a pace without waiting, and a fetcher."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from clearance.apps.research.http import Fetcher, HttpCache, Mode, Pace, Recording

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that goes on only when somebody sleeps; `slept` is every sleep, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.slept.append(seconds)
        self.seconds += seconds

    def now(self) -> datetime:
        """The time of day."""
        return NOON + timedelta(seconds=self.seconds)


def pace(clock: Clock, **rates: Any) -> Pace:
    """A pace on this clock; no waiting unless told."""
    return Pace(default=rates.pop("default", 1e12), monotonic=clock.monotonic, sleep=clock.sleep, **rates)


def fetcher(folder: Path, clock: Clock, *, record: str | None = None, **more: Any) -> Fetcher:
    """A fetcher with its cache in the folder; `record` names the run that it records or replays."""
    return Fetcher(
        HttpCache(folder / "http.db"),
        clock=clock.now,
        recording=Recording(folder / "runs" / record / "http") if record else None,
        pace=more.pop("pace", None) or pace(clock),
        mode=more.pop("mode", Mode.LIVE),
        **more,
    )
