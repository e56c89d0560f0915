"""Threads whose graph this process drives itself, as an application does that has hooks of its own in it.

A hook stands where nothing of ours looks: it changes what was decided, or goes to the tools past the gate.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from clearance.adapters.langgraph import AgentState, Reviewed, RunContext
from clearance.apps.chat.agent import parts_of
from tests.journeys.cases.loading import CaseError
from tests.journeys.cases.setup import Setup
from tests.journeys.cases.site import Site
from tests.journeys.cases.speaking import Speaker

BEFORE, BEHIND = "before the gate", "behind the gate"
ORDERS = (None, BEFORE, BEHIND)


class HandDriven:
    """An agent of the case, as a graph with hooks."""

    def __init__(
        self, site: Site, setup: Setup, hooks: Sequence[Mapping[str, Any]], order: str | None
    ) -> None:
        self.model = Speaker(setup.folder)
        saver = InMemorySaver()
        agent = setup.agent(site.opened, model=self.model, checkpointer=saver, name="cases-by-hand")
        self._graph = _with_hooks(parts_of(agent).reviewed, hooks, order).compile(checkpointer=saver)

    def propose(self, thread: str, text: str, *, by: str) -> None:
        """Send a message, and go on to the first stop."""
        self._graph.invoke({"messages": [HumanMessage(text)]}, self._config(thread, by))

    def go_on(self, thread: str, *, by: str) -> None:
        """Go on without a decision, as after one that came in by another door."""
        if self._graph.get_state(self._config(thread, by)).next:
            self._graph.invoke(None, self._config(thread, by))

    def resume(self, thread: str, value: object, *, by: str) -> str:
        """Send a resume value by hand; return why it was refused, or nothing."""
        result = self._graph.invoke(Command(resume=value), self._config(thread, by))
        if "__interrupt__" not in result:
            return ""
        return str(result["__interrupt__"][0].value.get("refused") or "")

    def messages(self, thread: str) -> list[BaseMessage]:
        """Return what the thread keeps."""
        found: list[BaseMessage] = self._graph.get_state(self._config(thread, "")).values.get("messages", [])
        return found

    def _config(self, thread: str, by: str) -> Any:
        return {"configurable": {"thread_id": thread, "person": by}}


def check_hooks(hooks: Sequence[Mapping[str, Any]], order: str | None) -> None:
    """Raise `CaseError` for a hook that is not known."""
    for hook in hooks:
        jumps = (
            hook.get("stage") == "after_model"
            and hook.get("jump") == "tools"
            and set(hook) == {"stage", "jump"}
        )
        changes = hook.get("stage") == "after_decision" and set(hook) == {"stage", "tool", "set"}
        if not (jumps or changes) or order not in ORDERS:
            raise CaseError(f"The interpreter knows no hook {dict(hook)!r} {order or ''}.")


def _with_hooks(reviewed: Reviewed, hooks: Sequence[Mapping[str, Any]], order: str | None) -> Any:
    """Return the agent's graph with hooks in it; the nodes are the product's own."""
    builder: Any = StateGraph(AgentState, context_schema=RunContext)
    builder.add_node("llm_call", reviewed.llm_call)
    builder.add_node("human_review", reviewed.human_review, destinations=("tool_node", "llm_call"))
    tool_node = "tool_node"
    for hook in hooks:
        if "set" in hook:
            tool_node = "tools"
            builder.add_node("tool_node", _changing(hook), destinations=("tools",))
        elif order == BEHIND:
            builder.nodes.pop("human_review")
            node = _jumping_behind(reviewed)
            builder.add_node("human_review", node, destinations=("tool_node", "llm_call"))
    builder.add_node(tool_node, reviewed.tool_node, destinations=("llm_call", "human_review"))
    jump = any("jump" in hook for hook in hooks) and order != BEHIND
    builder.add_edge(START, "llm_call")
    where = "tool_node" if jump else "human_review"
    builder.add_conditional_edges("llm_call", lambda state: where if _has_calls(state) else END)
    return builder


def _has_calls(state: AgentState) -> bool:
    last = state["messages"][-1]
    return isinstance(last, AIMessage) and bool(last.tool_calls or last.invalid_tool_calls)


def _changing(hook: Mapping[str, Any]) -> Any:
    """Return a node that writes other arguments into the calls that were just decided on."""

    def change(state: AgentState) -> Command[Any]:
        message = next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        changed = [
            {**call, "args": {**call["args"], **hook["set"]}} if call["name"] == hook["tool"] else call
            for call in message.tool_calls
        ]
        update = {"messages": [message.model_copy(update={"tool_calls": changed})]}
        return Command(goto="tools", update=update)

    return change


def _jumping_behind(reviewed: Reviewed) -> Any:
    """Return the review node with a hook behind it that goes to the tools, whatever was decided."""
    from langgraph.runtime import Runtime

    def review_then_jump(state: AgentState, *, runtime: Runtime[RunContext]) -> Command[Any]:
        found = reviewed.human_review(state, runtime=runtime)
        return Command(goto="tool_node") if found.goto == "llm_call" else found

    return review_then_jump
