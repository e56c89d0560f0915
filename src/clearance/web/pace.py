"""The pace of decisions: how many one person may make in a minute through one application."""

import time
from datetime import timedelta

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from clearance.errors import TooManyDecisionsError


class Pace:
    """Counts the decisions of each person, whatever becomes of them; used from many threads."""

    def __init__(self, most: int) -> None:
        self._limit = RateLimitItemPerMinute(most)
        self._counted = MovingWindowRateLimiter(MemoryStorage())

    def __call__(self, person: str) -> None:
        """Count one more. Raises `TooManyDecisionsError` when it is more than a minute may have."""
        if not self._counted.hit(self._limit, person):
            again = self._counted.get_window_stats(self._limit, person).reset_time
            raise TooManyDecisionsError(timedelta(seconds=again - _clock()))


def _clock() -> float:
    # The library's own clock: what it says is told in seconds from now.
    return time.time()  # noqa: TID251
