"""Programs: what this process knows how to run, each with its tools and its policy.

A bundled program, such as the chat, also says how one segment of a run is advanced. A program without a
segment is driven by its own caller: a graph used by hand, a plain function.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clearance.policy import Policy
from clearance.run import Run
from clearance.toolcall import Tool


@dataclass(frozen=True)
class Finished:
    """The run came to its end, with this answer."""

    answer: str


@dataclass(frozen=True)
class Parked:
    """The run waits for a review; nothing of it is left in this process."""


Segment = Callable[[Run, int], Finished | Parked]
"""Advances a run to its next stop: (run, fence)."""

Stopped = Callable[[str], None]
"""Hears, by its id, of a run that waits or has ended; that is kept by then, whatever becomes of this."""


@dataclass(frozen=True)
class Program:
    """One program. `tools` are by name; `policy` becomes the active one; `model` names who speaks in it.

    `takes_messages` says whether its runs begin with what somebody writes in a thread.
    """

    name: str
    tools: Mapping[str, Tool]
    policy: Policy
    model: str = ""
    segment: Segment | None = field(default=None, compare=False)
    stopped: Stopped | None = field(default=None, compare=False)
    takes_messages: bool = True


class Programs:
    """The programs of this process, by name; a name that is registered again is replaced."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}
        self._policies: dict[str, list[Policy]] = {}

    def register(self, program: Program) -> None:
        """Make a program known to this process."""
        self._programs[program.name] = program
        self._policies.setdefault(program.name, []).append(program.policy)

    def get(self, name: str) -> Program | None:
        """Return the program of that name, if this process knows it."""
        return self._programs.get(name)

    def silent(self) -> tuple[str, ...]:
        """Return the names of the programs that take no messages."""
        return tuple(name for name, program in self._programs.items() if not program.takes_messages)

    def policies(self, name: str) -> tuple[Policy, ...]:
        """Return the policies that this process brought for a program: they carry the conditions."""
        return tuple(self._policies.get(name, ()))

    def advanced_here(self) -> tuple[str, ...]:
        """Return the names of the programs whose runs this process can advance."""
        return tuple(name for name, program in self._programs.items() if program.segment is not None)
