"""Named places between two steps, where a test can stop or end the process.

`CLEARANCE_KILL_AT=name` or `name:n` ends the process (as SIGKILL does) at the n-th time it comes by. Without
it a place costs one look-up. The crash tests walk through every name in `PLACES`.
"""

import os
import signal
from collections import Counter

PLACES = (
    "in-start",
    "in-ask",
    "in-decide",
    "in-take",
    "in-keep",
    "in-release",
    "claimed",
    "fence-raised",
    "model-answered",
    "asked",
    "read-pending",
    "read-settled",
    "before-take",
    "taken",
    "tool-ran",
    "outcome-kept",
    "segment-ended",
    "decided",
    "numbered",
)

_target, _, _count = os.environ.get("CLEARANCE_KILL_AT", "").partition(":")
_seen: Counter[str] = Counter()


def at(place: str) -> None:
    """Pass a named place; the process ends here when a test asks for it."""
    if place != _target:
        return
    _seen[place] += 1
    if _seen[place] == int(_count or "1"):
        os.kill(os.getpid(), signal.SIGKILL)
