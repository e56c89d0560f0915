"""Results: what a tool gave back, as bounded text for the model and, where it was larger, whole beside it."""

import json
from dataclasses import dataclass

MODEL_LIMIT = 64 * 1024
"""Bytes of a result that the model gets."""
KEPT_LIMIT = 16 * 1024 * 1024
"""Bytes of a result that are kept at all."""


@dataclass(frozen=True)
class Result:
    """A tool's result as text; `ok` is False when it raised."""

    ok: bool
    text: str


@dataclass(frozen=True)
class Bounded:
    """A result as the model gets it; `whole` holds all of it where the model gets a part."""

    text: str
    whole: bytes | None


def read_result(value: object) -> Result:
    """Return any value of a tool as text: text as it is, None as a word, the rest as JSON where it can be.

    Raises nothing: a tool that ended has ended, whatever its value makes of being looked at.
    """
    if isinstance(value, Result):
        return value
    if value is None:
        return Result(ok=True, text="done")
    if isinstance(value, str):
        return Result(ok=True, text=value or "(empty)")
    if isinstance(value, bytes):
        return Result(ok=True, text=value.decode(errors="replace") or "(empty)")
    try:
        return Result(ok=True, text=json.dumps(value, ensure_ascii=False, default=str))
    except BaseException:  # noqa: BLE001 - `default` runs the value's own code
        return Result(ok=True, text=_written(value))


def read_error(error: BaseException) -> Result:
    """Return what a tool raised as its result: the sort of error and its message. Raises nothing."""
    name = type(error).__name__
    message = _written(error)
    return Result(ok=False, text=f"{name}: {message}" if message else name)


def _written(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - the value's own code
        return f"(a {type(value).__name__} that cannot be written as text)"


def bound(text: str, *, artifact: str) -> Bounded:
    """Cut a result to what the model gets: its head and its tail, and how much is missing between.

    Lone surrogates and null characters become `?`: not every database and provider takes them as text.
    """
    data = text.replace("\0", "?").encode(errors="replace")
    if len(data) <= MODEL_LIMIT:
        return Bounded(text=data.decode(), whole=None)
    head, tail = data[: MODEL_LIMIT * 3 // 4], data[-MODEL_LIMIT // 4 + 512 :]
    missing = len(data) - len(head) - len(tail)
    note = f"\n[… {missing} bytes left out; {len(data)} in all, kept as artifact {artifact} …]\n"
    shown = head.decode(errors="ignore") + note + tail.decode(errors="ignore")
    return Bounded(text=shown, whole=data[:KEPT_LIMIT])
