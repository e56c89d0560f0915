"""The agent that a middleware serves: its tools, and its program in the workspace.

`create_agent` does not tell a middleware what the agent has. It asks each one for its own `tools`, though,
and whoever is asked can see who asks: so the names in a policy are checked when the agent is built, and a
process that only resumes a thread knows the tools. Tools that come later (another middleware brings them with
a request) are learnt from the requests.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.tools import BaseTool, tool

from clearance.adapters import plain
from clearance.adapters.keyed import Workspace
from clearance.adapters.langchain_tools import read_tools
from clearance.policy import Policy
from clearance.program import Program
from clearance.toolcall import Tool

FRAMES = 5


class Served:
    """What is known of an agent. `real` are LangChain's tools, `tools` the same as the core sees them."""

    def __init__(
        self, policy: Policy, *, using: Workspace | None, program: str | None, person: str | None
    ) -> None:
        self.policy = policy
        self.real: Mapping[str, BaseTool] = {}
        self.tools: Mapping[str, Tool] = {}
        self._using = using
        self._program = program
        self._person = person
        self._lock = threading.Lock()

    @property
    def workspace(self) -> Workspace:
        """The workspace that was given, else the one that was opened last in this process, or the default."""
        if self._using is None:
            self._using = plain.last_opened()
        return self._using

    @property
    def person(self) -> str:
        """Who asks and decides where a configuration names nobody."""
        return self._person or self.workspace.person

    @property
    def program(self) -> str:
        """The agent's name in the workspace; one without a name is called after its tools and rules.

        Raises RuntimeError while nothing is known of the agent.
        """
        if self._program is None:
            raise RuntimeError(
                "ClearanceMiddleware does not know its agent. Build the agent with langchain's create_agent."
            )
        return self._program

    def built(self, frame: FrameType | None, *, middleware: object) -> None:
        """Look at the `create_agent` that is asking, if it is: learn its tools, and check what it builds.

        Raises `PolicyError` where the policy names a tool that the agent does not have, and ValueError for a
        middleware that would come between the clearance and the tool.
        """
        for _ in range(FRAMES):
            if frame is None:
                return
            if frame.f_code is create_agent.__code__:
                given = frame.f_locals
                others = list(given.get("middleware") or ())
                _check_order(others, middleware=middleware)
                if self._program is None and given.get("name"):
                    self._program = str(given["name"])
                own = [each for m in others if m is not middleware for each in getattr(m, "tools", ())]
                self.learn([*own, *(given.get("tools") or ())])
                return
            frame = frame.f_back

    def learn(self, given: Iterable[Any]) -> None:
        """Note the tools of the agent, and register them with the policy where one of them is new.

        What a provider runs on its own side, written as a dict, is no tool of ours.
        """
        found = [each if isinstance(each, BaseTool) else tool(each) for each in given if callable_tool(each)]
        with self._lock:
            if all(self.real.get(each.name) is each for each in found) and self.real:
                return
            self.real = {**self.real, **{each.name: each for each in found}}
            read = read_tools(self.real.values())
            if read == self.tools:
                return
            if self._program is None:
                # Agents without names must not take each other's rules for their own.
                known = "\0".join([self.policy.version, *sorted(read)])
                self._program = f"tools-{hashlib.sha256(known.encode()).hexdigest()[:8]}"
            self.workspace.register(Program(name=self.program, tools=read, policy=self.policy))
            self.tools = read


def callable_tool(given: object) -> bool:
    """Whether this is a tool that runs here."""
    return isinstance(given, BaseTool) or callable(given)


def _check_order(others: Sequence[object], *, middleware: object) -> None:
    place = next((n for n, each in enumerate(others) if each is middleware), len(others))
    for inner in others[place + 1 :]:
        kind = type(inner)
        if (
            getattr(kind, "wrap_tool_call", None) is not AgentMiddleware.wrap_tool_call
            or getattr(kind, "awrap_tool_call", None) is not AgentMiddleware.awrap_tool_call
        ):
            raise ValueError(
                f"List ClearanceMiddleware last: {kind.__name__} would come between a clearance and its "
                "tool, and could run it twice or with other arguments."
            )
