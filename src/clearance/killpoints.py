"""Named places between two steps, where a test can stop or end the process.

`CLEARANCE_KILL_AT=name` or `name:n` ends the process (as SIGKILL does) at the n-th time it comes by. Without
it a place costs one look-up. The crash tests walk through every name in `PLACES`.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable

VARIABLE = "CLEARANCE_KILL_AT"

# A name that begins with `in-` lies inside a transaction, before its commit.
PLACES = (
    # whoever sends messages, decides and cancels
    "in-start",
    "in-decide",
    "decided",
    "in-close",
    "in-cancel",
    # a segment, from its wake to its end
    "woken",
    "in-claim",
    "claimed",
    "fence-raised",
    "model-answered",
    "in-ask",
    "asked",
    "read-pending",
    "read-settled",
    "in-checkpoint",
    "segment-ended",
    "in-release",
    "released",
    "in-fail",
    # a call
    "before-take",
    "in-take",
    "taken",
    "tool-ran",
    "in-keep",
    "outcome-kept",
    # a call whose process was lost, or whose time is over
    "in-conclude",
    "in-resume",
    "in-take-again",
    # a run of the research pipeline; `file-kept` for what is new alone
    "file-kept",
    "stage-reached",
    # retention
    "in-redact",
    "redacted",
    "checkpoints-gone",
    # the trail
    "in-number",
    "numbered",
    "in-seal",
)

Watcher = Callable[[str], None]


def at(place: str) -> None:
    """Pass a named place; the process ends here when a test asks for it."""
    if _watcher is not None:
        _watcher(place)


def watch(watcher: Watcher | None) -> None:
    """Have a function called with the name of every place that this process passes, in whatever thread."""
    global _watcher
    _watcher = watcher


def signalling(target: str, *, number: int = signal.SIGKILL) -> Watcher:
    """Return what sends this process a signal at `name` or `name:n`, before the n-th passing goes on."""
    name, _, count = target.partition(":")
    if name not in PLACES:
        raise ValueError(f"{target} names no place; places are {', '.join(PLACES)}")
    nth, seen, lock = int(count or "1"), Counter[str](), threading.Lock()

    def watcher(place: str) -> None:
        if place != name:
            return
        with lock:
            seen[place] += 1
            if seen[place] == nth:
                os.kill(os.getpid(), number)

    return watcher


_watcher: Watcher | None = signalling(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
