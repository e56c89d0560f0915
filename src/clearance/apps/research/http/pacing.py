"""How fast each host is asked: one token bucket a host, which also waits out a `Retry-After`."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Bucket:
    """When the next request may go. It holds one token: hosts count requests within any second."""

    gap: float
    free_at: float = 0.0


class Pace:
    """Request rates by host, for all threads of this process. A rate is in requests per second.

    Other processes on the machine have their own: their sum counts for a host that limits by address, and
    its 429 is then waited out.
    """

    def __init__(
        self,
        rates: dict[str, float] | None = None,
        *,
        default: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rates = dict(rates or {})
        self._default = default
        self._monotonic = monotonic
        self._sleep = sleep
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def rate(self, host: str) -> float:
        """Return how many requests a second go to the host at most."""
        return self._rates.get(host, self._default)

    def wait(self, host: str) -> None:
        """Return when a request to the host may go; each return is one request's right."""
        while (delay := self._take(host)) > 0:
            self._sleep(delay)

    def pause(self, host: str, seconds: float) -> None:
        """Let nobody ask the host for so long: it said so."""
        with self._lock:
            bucket = self._bucket(host)
            bucket.free_at = max(bucket.free_at, self._monotonic() + seconds)

    def sleep(self, seconds: float) -> None:
        """Sleep as this pace sleeps."""
        self._sleep(seconds)

    def _take(self, host: str) -> float:
        """Take the host's token and return 0, or return how long to wait before trying again."""
        with self._lock:
            bucket = self._bucket(host)
            now = self._monotonic()
            if now < bucket.free_at:
                return bucket.free_at - now
            bucket.free_at = now + bucket.gap
            return 0.0

    def _bucket(self, host: str) -> _Bucket:
        if host not in self._buckets:
            self._buckets[host] = _Bucket(gap=1 / self.rate(host))
        return self._buckets[host]
