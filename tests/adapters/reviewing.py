"""A graph of the chat program's shape, small enough to follow what each of its steps stores."""

from collections.abc import Callable
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from clearance.adapters.messages import Messages

Graph = CompiledStateGraph[Any, Any, Any, Any]


class State(TypedDict, total=False):
    messages: Messages
    run: str


class Agent:
    """The shape of the chat program: a model that asks for one call, a review, the tool."""

    def __init__(self, saver: BaseCheckpointSaver[Any], *, state: type = State) -> None:
        self.settled: set[str] = set()
        self.on: dict[str, Callable[[], None]] = {}
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(state)
        graph.add_node("llm_call", self._llm_call)
        graph.add_node("human_review", self._human_review)
        graph.add_node("tool_node", self._tool_node)
        graph.add_edge(START, "llm_call")
        graph.add_edge("llm_call", "human_review")
        graph.add_edge("tool_node", "llm_call")
        self.graph: Graph = graph.compile(checkpointer=saver)

    def send(self, thread: str, run: str) -> dict[str, Any]:
        first = {"messages": [HumanMessage(f"Question of {run}", id=f"{run}/in")], "run": run}
        return self.graph.invoke(first, at(thread), durability="sync")

    def wake(self, thread: str) -> dict[str, Any]:
        return self.graph.invoke(None, at(thread), durability="sync")

    def turn(self, thread: str, run: str) -> None:
        self.send(thread, run)
        self.settled.add(run)
        assert "__interrupt__" not in self.wake(thread)

    def messages(self, thread: str) -> list[BaseMessage]:
        found: list[BaseMessage] = self.graph.get_state(at(thread)).values["messages"]
        return found

    def _llm_call(self, state: Any) -> dict[str, Any]:
        self._reach("llm_call")
        run = state["run"]
        if isinstance(state["messages"][-1], HumanMessage):
            call = {"name": "send_email", "args": {"to": "ana@example.org"}, "id": "call_0"}
            return {"messages": [AIMessage("I ask.", id=f"{run}/1", tool_calls=[call])]}
        return {"messages": [AIMessage("It is done.", id=f"{run}/2")]}

    def _human_review(self, state: Any) -> Command[str]:
        self._reach("human_review")
        if not getattr(state["messages"][-1], "tool_calls", None):
            return Command(goto=END)
        if state["run"] not in self.settled:
            interrupt({"review": state["run"]})
            return Command(goto="human_review")
        return Command(goto="tool_node")

    def _tool_node(self, state: Any) -> dict[str, Any]:
        self._reach("tool_node")
        return {"messages": ToolMessage("sent", tool_call_id="call_0", id=f"{state['run']}/tool")}

    def _reach(self, place: str) -> None:
        if what := self.on.pop(place, None):
            what()


def at(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
