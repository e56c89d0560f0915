"""Errors of models: what a failed call means, whether another try can help, and how it is said to people.

Each provider's client raises classes of its own. They are read by what they all carry (a status, the name of
a class for what the network did), because most of the clients are not installed. What a provider wrote is
never repeated: it may quote the key or the conversation.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from clearance.errors import ClearanceError

_NO_WAY = frozenset({"APIConnectionError", "ModelConnectionError", "TransportError", "ConnectionError"})
_NO_TIME = frozenset({"APITimeoutError", "ModelTimeoutError", "TimeoutException", "TimeoutError", "Timeout"})
_TOO_LONG = "ContextOverflowError"
_DEPTH = 5

LATER = "Send the message again later."
_STATUSES = {
    401: "does not accept the key (401). Set a valid key, then send the message again.",
    402: "wants to be paid first (402). Look after the account, then send the message again.",
    403: "does not let this key use the model (403). Correct the key's rights, then send the message again.",
    404: "does not know the model, or the address is wrong (404). Correct the model's name or address.",
    408: f"did not get the request in time (408). {LATER}",
    413: "finds the conversation too large (413). Start a new thread.",
    429: f"takes no more requests for now (429). {LATER}",
}
_QUOTA = "has no quota left for this key ({status}). Look after the account, then send the message again."
_OVERFLOW = "finds the conversation too long for the model. Start a new thread, or use another model."
_REFUSED = "refuses the request ({status}). Look whether the model can use tools, or start a new thread."
_DOWN = "cannot answer now ({status}). " + LATER
_BROKEN = f"broke its answer off before the end. {LATER}"
_SLOW = f"did not answer in time. {LATER}"
_AWAY = "cannot be reached. Look at its address and at the network, then send the message again."


class BrokenOffError(Exception):
    """An answer that began and did not come to its end: its calls are not taken, whatever they look like."""


@dataclass(frozen=True)
class Failure:
    """What a failed call means: a sentence about the provider, and whether another try can help.

    `wait` is how many seconds the provider asked to wait, where it did.
    """

    text: str
    may_pass: bool
    wait: float | None = None


def read_failure(error: BaseException) -> Failure | None:
    """Return what an error of a model's client means; None for anything else: a bug stays a bug."""
    if isinstance(error, BrokenOffError):
        return Failure(_BROKEN, may_pass=True)
    if isinstance(error, ClearanceError):
        return None
    for each in _causes(error):
        names = {parent.__name__ for parent in type(each).__mro__}
        status = _status(each)
        if _TOO_LONG in names or getattr(each, "code", None) == "context_length_exceeded":
            return Failure(_OVERFLOW, may_pass=False)
        if status is not None:
            return _of_status(status, each)
        if names & _NO_TIME:
            return Failure(_SLOW, may_pass=True)
        if names & _NO_WAY:
            return Failure(_AWAY, may_pass=True)
        if "APIError" in names or isinstance(each, json.JSONDecodeError):
            # An error inside an answer that had begun well, or a piece of it that is no JSON.
            return Failure(_BROKEN, may_pass=True)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it was raised from: some clients wrap what the network did."""
    found: BaseException | None = error
    for _ in range(_DEPTH):
        if found is None:
            return
        yield found
        found = found.__cause__


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "code", None),
    ):
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _of_status(status: int, error: BaseException) -> Failure:
    if getattr(error, "code", None) == "insufficient_quota":
        return Failure(_QUOTA.format(status=status), may_pass=False)
    may_pass = status in (408, 409, 425, 429) or status >= 500
    known = _STATUSES.get(status) or (_DOWN if may_pass else _REFUSED).format(status=status)
    return Failure(known, may_pass=may_pass, wait=_retry_after(error) if may_pass else None)


def _retry_after(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait: milliseconds, seconds with a fraction, or a date.

    A date is measured from the response's own, so no clock is read.
    """
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds > 0 else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        seconds = (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (TypeError, ValueError):
        return None
    return seconds if seconds > 0 else None
