"""Agents within agents: one hands a task on by a tool of its own, and another takes it up in its own thread.

Each is a program of the product, under the same rules. Who asked is the agent that handed the task on, which
acts for the person behind it.
"""

from dataclasses import replace
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from clearance import turns
from clearance.ledger import new_id
from clearance.workspace import Clearance
from tests.journeys.cases.http_door import API
from tests.journeys.cases.loading import CaseError, Step, expand
from tests.journeys.cases.speaking import Said, Script, keep_script
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World

_TASK = {
    "type": "object",
    "properties": {"thread": {"type": "string"}, "task": {"type": "string"}},
    "required": ["thread", "task"],
    "additionalProperties": False,
}


class HandOn(BaseTool):
    """Gives a task to another agent. Nothing is done by it but a message."""

    _opened: Clearance = PrivateAttr()
    _giver: str = PrivateAttr()
    _taker: str = PrivateAttr()

    @classmethod
    def of(cls, opened: Clearance, name: str, *, giver: str, taker: str) -> "HandOn":
        """Return the tool of this name, by which one agent reaches another."""
        about = {"read_only": True, "parallel": False, "timeout": 60.0}
        made = cls(
            name=name, description=f"Hand on to {taker}.", args_schema=_TASK, metadata={"clearance": about}
        )
        made._opened, made._giver, made._taker = opened, giver, taker
        return made

    def _run(self, thread: str, task: str) -> str:
        turns.start(self._opened.ledger, thread, task, run_id=new_id(), program=self._taker, by=self._giver)
        return f"{self._taker} was asked."


def handing_on(opened: Clearance, path: tuple[str, ...]) -> list[HandOn]:
    """Return the tools by which the agents on a path reach one another: agent, tool, agent, …"""
    return [
        HandOn.of(opened, path[place + 1], giver=path[place], taker=path[place + 2])
        for place in range(0, len(path) - 2, 2)
    ]


@op("propose_nested")
def propose_nested(world: World, scope: Scope, step: Step) -> Result:
    """A user turn of the first agent on a path, whose task comes to the last one, which makes the calls."""
    only(step, "thread", "path", "calls", "text", "by")
    path = step["path"]
    unknown = [agent for agent in path[::2] if agent not in world.site.setup.agents]
    if len(path) % 2 == 0 or unknown:
        raise CaseError(f"There is no way along {', '.join(map(str, path))}: agents and their tools in turn.")
    _lead(world, tuple(path))
    scope.labels |= {str(call["id"]) for call in step["calls"] if call.get("id")}
    text = keep_script(world.site.folder, Script([Said(expand(step["calls"]), step.get("text", ""))]))
    agents = list(zip(path[::2], path[1::2], strict=False))
    for place, (giver, tool) in reversed(list(enumerate(agents))):
        inner = scope.thread(f"{step['thread']}/{path[2 * place + 2]}")
        call = {"id": f"{giver}-{tool}", "tool": tool, "args": {"thread": inner, "task": text}}
        text = keep_script(world.site.folder, Script([Said([call])]))
    return _sent(world, scope, step, text)


def _sent(world: World, scope: Scope, step: Step, text: str) -> Result:
    thread, first = scope.thread(step["thread"]), step["path"][0]
    body: dict[str, Any] = {"text": text, "program": first, "wait": 30}
    path = f"{API}/threads/{thread}/messages"
    answer = world.http.send("POST", path, by=step.get("by", "tom"), body=body)
    for each in scope.threads.values():
        world.site.rest(each)
    return Result("accepted" if answer.ok else "refused", answer.reason, answer.faults, about=answer)


def _lead(world: World, path: tuple[str, ...]) -> None:
    """Have the agents reach one another along a path, by tools that are part of what they are."""
    setup = world.site.setup
    if setup.path != path:
        world.site.configure(replace(setup, path=path))
