"""Agents of LangChain's `create_agent` with the gate in them, as the tests of the middleware use them."""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from clearance import ClearanceMiddleware
from clearance.workspace import Clearance
from tests.scripted import ScriptedModel, refuse_broken

PAY = ("pay", {"account": "A", "cents": 5})
REFUND = ("refund", {"account": "A", "cents": 5})
LOOK = ("look", {"place": "shop"})
APPROVE = {"type": "approve"}
REJECTED = "A reviewer rejected this call; pay did not run. Do not try it again unless you are asked to."
REJECT = {"type": "reject", "message": "not now"}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def tools(done: list[Any]) -> list[BaseTool]:
    """Return three tools that write down in `done` what they did."""

    @tool
    def pay(account: str, cents: int) -> str:
        """Pay money."""
        done.append(("pay", account, cents))
        return f"paid {cents}"

    @tool
    def refund(account: str, cents: int) -> str:
        """Pay money back."""
        done.append(("refund", account, cents))
        return f"refunded {cents}"

    @tool
    def look(place: str) -> str:
        """Look at a place."""
        done.append(("look", place))
        return f"seen {place}"

    return [pay, refund, look]


def agent(
    workspace: Clearance,
    steps: Sequence[Any],
    offered: Sequence[Any],
    *,
    on: Any = None,
    saver: Any = None,
    before: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    **more: Any,
) -> Any:
    """Return an agent whose `pay` waits for people, unless `on` or `policy=` say otherwise."""
    said = {"pay": True} if on is None and "policy" not in more else on
    return create_agent(
        ScriptedModel(steps),
        list(offered),
        system_prompt="You are a test.",
        middleware=[*before, ClearanceMiddleware(said, using=workspace, **more)],
        checkpointer=saver or InMemorySaver(),
    )


def ask(graph: Any, config: Any = CONFIG) -> dict[str, Any]:
    """Send a message, and return the question that stops the agent."""
    return question(graph.invoke({"messages": [("user", "Go")]}, config))


def question(result: dict[str, Any]) -> dict[str, Any]:
    """Return the one question that stopped an agent."""
    [asked] = result["__interrupt__"]
    value: dict[str, Any] = asked.value
    return value


def resume(graph: Any, *decisions: Any, config: Any = CONFIG, **more: Any) -> dict[str, Any]:
    """Go on with decisions, as LangChain's own clients do."""
    result: dict[str, Any] = graph.invoke(Command(resume={"decisions": list(decisions), **more}), config)
    return result


def answers(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what the calls of a whole history were answered with; it must be one that providers take."""
    refuse_broken([SystemMessage("You are a test."), *messages])
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]
