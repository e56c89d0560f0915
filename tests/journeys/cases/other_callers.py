"""Calls by other ways than a conversation: an agent elsewhere, and whoever goes to the tools directly."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from clearance import turns
from clearance.execution import AskAgain
from clearance.run import Run, RunState
from clearance.toolcall import ToolCall, argument_text
from tests.journeys.cases.fixture_tools import EFFECTS, write_line
from tests.journeys.cases.http_door import API
from tests.journeys.cases.loading import Step, expand
from tests.journeys.cases.setup import PROGRAM
from tests.journeys.cases.steps import only, op
from tests.journeys.cases.world import Result, Scope, World

AGENT = "dev-bot"


@dataclass
class Elsewhere:
    """An agent in another program: it proposes over HTTP, and carries out what it may take."""

    world: World
    label: str
    key: str
    thread: str = ""
    call_key: str = ""

    def propose(self, tool: str, args: Any) -> Result:
        """Propose a call."""
        schema = self.world.site.setup.fixtures.tools[tool]["schema"]
        body = {"key": self.key, "tool": tool, "arguments": args, "schema": schema}
        answer = self.world.http.send("POST", f"{API}/calls", by=AGENT, body=body)
        if not answer.ok:
            return Result("refused", answer.reason, answer.faults, about=answer)
        review = self.world.site.review(answer.body["review_id"])
        self.thread, self.call_key = review.thread_id, review.calls[0].key
        return Result("accepted", about=answer)

    def go_on(self, thread: str, *, by: str) -> None:
        """Take the call if it may be taken, do it, and report."""
        path = f"{API}/calls/{quote(self.key)}"
        if not self.world.http.send("GET", path, by=AGENT).body["may_take"]:
            return
        taken = self.world.http.send("POST", f"{path}/take", by=AGENT, body={}).body
        line = {"tool": taken["tool"], "args": taken["args"], "key": self.call_key}
        write_line(self.world.site.folder / EFFECTS, line)
        done = {"attempt": taken["attempt"], "ok": True, "result": "done"}
        self.world.http.send("POST", f"{path}/outcome", by=AGENT, body=done)

    def messages(self, thread: str) -> list[Any]:
        """Return nothing: the conversation, where there is one, is the agent's own."""
        return []


def propose_from_elsewhere(world: World, scope: Scope, step: Step) -> Result:
    """Propose calls whose values a conversation's checkpoint cannot hold, each from elsewhere."""
    parts = []
    for call in step["calls"]:
        agent = Elsewhere(world, str(call["id"]), f"{call['id']}{scope.name}")
        parts.append(agent.propose(call["tool"], call["args"]))
        if agent.thread:
            scope.threads[f"{step['thread']}/{call['id']}"] = agent.thread
            world.by_hand[agent.thread] = agent
    return Result(parts=parts)


@op("direct_call")
def direct_call(world: World, scope: Scope, step: Step) -> Result:
    """Whoever goes to the tools past every conversation, with no release or with that of another call."""
    only(step, "tool", "args", "release")
    site = world.site
    program = site.opened.programs.get(PROGRAM)
    assert program is not None
    if step["release"] is None:
        run = turns.start_by_caller(site.opened.ledger, _own_run(f"direct{len(world.results)}"))
        key = f"{run.id}/1/0"
    else:
        review = world.reviews(scope)[-1]
        [run] = [run for run in site.runs(review.thread_id) if run.id == review.run_id]
        key = review.calls[0].key
    call = ToolCall(key, step["tool"], argument_text(expand(step["args"])))
    [found] = site.opened.execution.execute(run, [call], message=1, tools=program.tools, fence=None)
    if isinstance(found, AskAgain):
        return Result("refused", "the tool demands a release for exactly this call")
    return Result("refused" if found.is_error else "accepted", found.text)


def _own_run(run_id: str) -> Run:
    return Run(
        id=run_id,
        thread_id=run_id,
        program=PROGRAM,
        state=RunState.RUNNING,
        requester="tom",
        input=None,
        created_at=datetime.fromtimestamp(0, UTC),
    )
