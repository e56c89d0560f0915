"""Where an agent of `create_agent` waits for people: a small graph inside the agent's hook.

    human_review → submit → human_review … → END

`human_review` asks, and reads what was decided from the store. What resumes it is kept with the person who
sent it, and submitted in a step of its own. So it counts as theirs, whoever invokes the agent next: LangGraph
keeps a value that resumed an agent until the agent's step has ended, and gives it again in every invocation
that comes with none.
"""

from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from clearance.adapters import caller
from clearance.adapters.langchain_agent import Served
from clearance.adapters.langchain_rules import InterruptOn, Seen, describe, looking_at
from clearance.adapters.langchain_turns import Turn
from clearance.asking import Question
from clearance.killpoints import at
from clearance.review import Review

REPEATED = (
    "{by} sent the same answer before, and it may have come again by itself. Name the review and its version."
)


class Waiting(TypedDict):
    """What was sent last, by whom, and why it was refused."""

    sent: NotRequired[Any]
    by: NotRequired[str]
    refused: NotRequired[str]


@dataclass(frozen=True)
class Asked:
    """The turn whose calls people are asked about, and what the agent's hook sees of it."""

    turn: Turn
    seen: Seen


@dataclass(frozen=True)
class Reviewing:
    """The questions of one agent. `prefix` begins the text of a call for which `interrupt_on` has none."""

    served: Served
    interrupt_on: InterruptOn
    prefix: str

    def graph(self) -> CompiledStateGraph[Waiting, Asked, Waiting, Waiting]:
        """Return the graph in which a hook waits; it keeps what it needs with the agent's checkpointer."""
        waiting = StateGraph(Waiting, context_schema=Asked)
        waiting.add_node("human_review", self._human_review, destinations=("submit", "human_review", END))
        waiting.add_node("submit", self._submit)
        waiting.add_edge(START, "human_review")
        waiting.add_edge("submit", "human_review")
        return waiting.compile(name="clearance")

    def ask(self, asked: Asked) -> Review | None:
        """Ask people about the open calls of a turn; return the review that waits, None where none does."""
        question = Question(
            run_id=asked.turn.run.id,
            thread_id=asked.turn.run.thread_id,
            program=self.served.program,
            message=asked.turn.number,
            calls=asked.turn.proposed,
            tools=self.served.tools,
        )
        with looking_at(asked.seen):
            review = self.served.workspace.gate.ask(question)
        at("asked")
        return review

    def _human_review(self, state: Waiting, *, runtime: Runtime[Asked]) -> Command[Any]:
        """Wait for people; runs again from its start at every resume."""
        review = self.ask(runtime.context)
        if review is None:
            return Command(goto=END)
        at("read-pending")
        sent = interrupt(self._payload(review, runtime.context, refused=state.get("refused")))
        by = caller.person_of(self.served.person)
        if "by" in state and sent == state["sent"] and by != state["by"]:
            return Command(goto="human_review", update={"refused": REPEATED.format(by=state["by"])})
        return Command(goto="submit", update={"sent": sent, "by": by})

    def _submit(self, state: Waiting, *, runtime: Runtime[Asked]) -> dict[str, str]:
        """Submit what was sent, as whoever sent it."""
        review = self.ask(runtime.context)
        if review is None:
            return {"refused": ""}
        gate = self.served.workspace.gate
        return {"refused": caller.submit(gate, review, state["sent"], by=state["by"])}

    def _payload(self, review: Review, asked: Asked, *, refused: str | None) -> dict[str, Any]:
        payload = caller.question(self.served.workspace.ledger, review, refused=refused)
        for request in payload["action_requests"]:
            request["description"] = describe(
                self.interrupt_on,
                prefix=self.prefix,
                seen=asked.seen,
                tool=request["name"],
                arguments=request["arguments"],
            )
        return payload
