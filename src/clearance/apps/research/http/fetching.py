"""One GET, whatever it takes: cache, pace, retries, whole bodies, record and replay."""

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from clearance.apps.research.errors import SourceUnavailableError
from clearance.apps.research.http.cache import HttpCache
from clearance.apps.research.http.pacing import Pace
from clearance.apps.research.http.recording import Recording
from clearance.apps.research.http.response import Body, Fetched, Origin, is_whole

if TYPE_CHECKING:
    import httpx

LARGEST_BODY = 32 * 1024 * 1024
LONGEST_WAIT = 60.0
"""The longest `Retry-After` that is waited out, in seconds; the next source is quicker."""
NOT_ASKED = "not asked, and no copy is kept."
_FIRST_WAIT, _LONGEST_BACKOFF = 0.5, 8.0


class Mode(StrEnum):
    """What may answer: the network, only copies of this workspace, or only the record of one run."""

    LIVE = "live"
    OFFLINE = "offline"
    REPLAY = "replay"


class _AgainError(SourceUnavailableError):
    """No answer yet, and another try may get one; `waited` says that the pace already holds the host."""

    def __init__(self, message: str, *, waited: bool = False) -> None:
        super().__init__(message)
        self.waited = waited


class Fetcher:
    """Gets answers from other services.

    Every answer is whole, and kept in the cache; with a `recording` also in the run's folder, from where a
    second try of the same run is answered first, and in the mode `REPLAY` every request, and nothing else.
    An answer that its source confirmed within `max_age` is not asked for again. `clock` gives aware times.
    """

    def __init__(
        self,
        cache: HttpCache,
        *,
        clock: Callable[[], datetime],
        mode: Mode = Mode.LIVE,
        recording: Recording | None = None,
        pace: Pace | None = None,
        attempts: int = 4,
        timeout: float = 20.0,
        max_age: timedelta = timedelta(days=1),
    ) -> None:
        if mode is Mode.REPLAY and recording is None:
            raise ValueError("a replay needs the recording of a run")
        self.mode = mode
        self._cache = cache
        self._clock = clock
        self._recording = recording
        self._pace = pace or Pace()
        self._attempts = attempts
        self._timeout = timeout
        self._max_age = max_age

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def now(self) -> datetime:
        """Return the time that records of this run carry: with a recording, when the run began."""
        if self._recording is None:
            return self._clock()
        return self._recording.began(None if self.mode is Mode.REPLAY else self._clock())

    def get(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        *,
        expect: Body,
        absent: Collection[int] = (),
        cached_only: bool = False,
    ) -> Fetched:
        """Return the answer of a GET.

        `absent` are statuses that say "there is none", which is an answer. With `cached_only`, and in the
        mode `OFFLINE`, only a kept copy is given, of any age; one that is older than `max_age` says `stale`.
        Raises `SourceUnavailableError` when there is no whole answer, `NotRecordedError` in a replay.
        """
        params = dict(params or {})
        recording = self._recording
        if recording is None:
            return self._answer(url, params, expect=expect, absent=absent, cached_only=cached_only)
        if self.mode is Mode.REPLAY:
            return recording.replay(url, params, cached_only=cached_only)
        if before := recording.answered(url, params, cached_only=cached_only):
            return before
        try:
            fetched = self._answer(url, params, expect=expect, absent=absent, cached_only=cached_only)
        except SourceUnavailableError as error:
            recording.keep_failure(url, params, str(error), cached_only=cached_only)
            raise
        recording.keep(params, fetched, cached_only=cached_only)
        return fetched

    def _answer(
        self,
        url: str,
        params: dict[str, str],
        *,
        expect: Body,
        absent: Collection[int],
        cached_only: bool,
    ) -> Fetched:
        kept = self._cache.get(url, params)
        if kept is not None and self._clock() - kept.retrieved_at <= self._max_age:
            return kept
        if cached_only or self.mode is Mode.OFFLINE:
            if kept is None:
                raise SourceUnavailableError(f"{_host(url)}: {NOT_ASKED}")
            return replace(kept, origin=Origin.STALE, stale=True)
        fetched = self._ask(url, params, expect=expect, absent=absent, kept=kept)
        if fetched.status == 200:
            self._cache.put(params, fetched)
        return fetched

    def _ask(
        self,
        url: str,
        params: dict[str, str],
        *,
        expect: Body,
        absent: Collection[int],
        kept: Fetched | None,
    ) -> Fetched:
        from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            if isinstance(error, _AgainError) and error.waited:
                return 0.0
            return min(_FIRST_WAIT * 2.0 ** (state.attempt_number - 1), _LONGEST_BACKOFF)

        tries = Retrying(
            retry=retry_if_exception_type(_AgainError),
            stop=stop_after_attempt(self._attempts),
            wait=wait,
            sleep=self._pace.sleep,
            reraise=True,
        )
        return tries(self._once, url, params, expect=expect, absent=absent, kept=kept)

    def _once(
        self,
        url: str,
        params: dict[str, str],
        *,
        expect: Body,
        absent: Collection[int],
        kept: Fetched | None,
    ) -> Fetched:
        import httpx

        host = _host(url)
        headers = {"If-None-Match": kept.etag} if kept and kept.etag else {}
        self._pace.wait(urlsplit(url).netloc)
        try:
            with self._client.stream("GET", url, params=params, headers=headers) as response:
                body = _read(response, host)
        except httpx.TransportError as error:
            # Its text may quote the address, which may hold a key.
            raise _AgainError(f"{host}: no whole answer ({type(error).__name__}).") from None
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise SourceUnavailableError(f"{host}: cannot be read ({type(error).__name__}).") from None
        status = response.status_code
        if status == 304 and kept is not None:
            return replace(kept, retrieved_at=self._clock(), origin=Origin.LIVE)
        if status != 200 and status not in absent:
            raise self._refusal(response, url)
        if status == 200 and not is_whole(body, expect):
            raise _AgainError(f"{host}: the answer is cut off or is no {expect.value.upper()}.")
        etag = response.headers.get("etag")
        return Fetched(url, status, body, self._clock(), Origin.LIVE, etag)

    def _refusal(self, response: "httpx.Response", url: str) -> SourceUnavailableError:
        """Return what to raise for a status that is no answer; the pace is told what the host asks for."""
        host, status = _host(url), response.status_code
        if status != 429 and status < 500:
            return SourceUnavailableError(f"{host} refused the request (status {status}).")
        seconds = self._retry_after(response)
        if seconds is None:
            return _AgainError(f"{host} answered {status}.")
        if seconds > LONGEST_WAIT:
            return SourceUnavailableError(f"{host} asks to wait {seconds:.0f} s (status {status}).")
        self._pace.pause(urlsplit(url).netloc, seconds)
        return _AgainError(f"{host} answered {status}.", waited=True)

    def _retry_after(self, response: "httpx.Response") -> float | None:
        """Return the seconds of `Retry-After`: a number, with a fraction at Ensembl, or a date (RFC 9110)."""
        value = response.headers.get("retry-after", "").strip()
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if math.isfinite(seconds):
            return max(0.0, seconds)
        try:
            return max(0.0, (parsedate_to_datetime(value) - self._clock()).total_seconds())
        except (ValueError, TypeError):
            return None

    @cached_property
    def _client(self) -> "httpx.Client":
        import httpx

        logger = logging.getLogger("httpx")
        if _keeps_keys_out not in logger.filters:
            logger.addFilter(_keeps_keys_out)
        return httpx.Client(timeout=self._timeout, headers={"User-Agent": "clearance (research pipeline)"})


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def _read(response: "httpx.Response", host: str) -> bytes:
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > LARGEST_BODY:
            raise SourceUnavailableError(f"{host}: the answer is larger than {LARGEST_BODY} bytes.")
    return bytes(body)


def _keeps_keys_out(record: logging.LogRecord) -> bool:
    """Drop httpx's line about a request whose address holds a key: NCBI takes it nowhere else."""
    return "api_key=" not in record.getMessage()
