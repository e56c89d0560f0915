"""The reviewed agent: a model and its tools as a graph whose risky calls wait for a person."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

import clearance
from clearance.adapters.langchain_tools import read_tools
from clearance.adapters.langgraph import AgentState, Reviewed, bind
from clearance.policy import Policy, requiring_approval
from clearance.policy_checks import check_policy
from clearance.program import Program
from clearance.workspace import Clearance

PROMPT = """\
You are a helpful assistant with tools. Some of your tool calls are reviewed by a person before they run.
A reviewer may change a call; its result then says what really ran, and that is what happened.
When a call was rejected or did not run, do not call it again. Stop, explain what was not done and why, and
ask the user how to go on. Never say that something was done unless its result says so."""

Agent = CompiledStateGraph[AgentState, Any, AgentState, AgentState]


@dataclass(frozen=True)
class Parts:
    """What a built agent was made of; `checkpointer` is the one that its builder was given."""

    clearance: Clearance
    reviewed: Reviewed
    checkpointer: BaseCheckpointSaver[Any]


_parts: WeakKeyDictionary[object, Parts] = WeakKeyDictionary()


def create_reviewed_agent(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    policy: Policy | None = None,
    tools_requiring_approval: Iterable[str] | None = None,
    using: Clearance | None = None,
    prompt: str = PROMPT,
    name: str = "chat",
) -> Agent:
    """Return the agent as a compiled LangGraph graph.

    Give `policy`, or `tools_requiring_approval`: then these tools wait for a person, and the others run.
    `checkpointer` keeps the conversation; there is no default, because a parked review must be found again:
    pass your own, or `using=` a workspace, which brings one that survives. `using` is also where reviews are
    kept; without it the default workspace is opened, with no worker.
    Raises ValueError when a tool is named that the agent does not have, or when nothing keeps the thread.
    """
    read = read_tools(tools)
    found = _policy(policy, tools_requiring_approval, known=list(read))
    if checkpointer is None and using is None:
        raise ValueError("An agent that stops needs a checkpointer: pass checkpointer=…, or using=clearance.")
    workspace = using if using is not None else clearance.open(worker=False)
    saver = checkpointer if checkpointer is not None else workspace.checkpointer()
    reviewed = Reviewed(
        program=name,
        model=bind(model, tools),
        tools=read,
        prompt=prompt,
        gate=workspace.gate,
        execution=workspace.execution,
        ledger=workspace.ledger,
        person=workspace.person,
    )
    workspace.register(Program(name=name, tools=read, policy=found, model=model._llm_type))
    agent: Agent = reviewed.graph().compile(checkpointer=saver, name=name)
    _parts[agent] = Parts(workspace, reviewed, saver)
    return agent


def build_human_in_the_loop_agent(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    tools_requiring_approval: Iterable[str],
    checkpointer: BaseCheckpointSaver[Any],
    **more: Any,
) -> Agent:
    """Return `create_reviewed_agent` for tools by name; `more` is passed on to it."""
    return create_reviewed_agent(
        model, tools, tools_requiring_approval=tools_requiring_approval, checkpointer=checkpointer, **more
    )


def make_human_review(agent: Agent) -> Callable[..., Any]:
    """Return the node of a built agent that asks people, for a graph of one's own."""
    return parts_of(agent).reviewed.human_review


def parts_of(agent: Agent) -> Parts:
    """Return what an agent was made of; ValueError for a graph that was not built here."""
    parts = _parts.get(agent)
    if parts is None:
        raise ValueError("This graph was not made by create_reviewed_agent.")
    return parts


def _policy(policy: Policy | None, names: Iterable[str] | None, *, known: list[str]) -> Policy:
    if (policy is None) == (names is None):
        raise ValueError("Give either policy= or tools_requiring_approval=.")
    if policy is not None:
        check_policy(policy, known)
        return policy
    wanted = list(names or [])
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise ValueError(
            f"tools_requiring_approval names {', '.join(unknown)}, which the agent does not have; "
            f"it has {', '.join(known)}."
        )
    return requiring_approval(wanted)
