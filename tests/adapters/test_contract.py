"""Our own graph and LangChain's agents keep the contract of an adapter."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import clearance
from clearance.testing import AdapterContract, Driven, Proposal, Scene, Stop
from tests.scripted import ScriptedModel, calls, refuse_broken

ALL = ("approve", "edit", "reject", "respond")


class Graph:
    """A compiled LangGraph graph, driven by `invoke`."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def begin(self, thread: str, text: str) -> Stop:
        return self._invoke(thread, {"messages": [("user", text)]})

    def go_on(self, thread: str, value: object = None) -> Stop:
        return self._invoke(thread, None if value is None else Command(resume=value))

    def _invoke(self, thread: str, given: Any) -> Stop:
        result = self.graph.invoke(given, {"configurable": {"thread_id": thread}})
        if "__interrupt__" in result:
            [question] = result["__interrupt__"]
            return Stop(question.value, (), "")
        messages: list[BaseMessage] = result["messages"]
        refuse_broken([SystemMessage("x"), *messages])
        results = tuple(str(each.content) for each in messages if isinstance(each, ToolMessage))
        return Stop(None, results, messages[-1].text)


def model(script: Sequence[Proposal]) -> ScriptedModel:
    """Return a model that says the script's next entry, wherever a history comes from."""

    def say(messages: Sequence[BaseMessage]) -> AIMessage | str:
        said = 0
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                break
            said += isinstance(message, AIMessage)
        entry = script[said]
        return entry if isinstance(entry, str) else calls(*((name, dict(args)) for name, args in entry))

    return ScriptedModel([say] * 100)


def tools(scene: Scene) -> list[BaseTool]:
    says = {"clearance": {"timeout": scene.timeout}}
    return [StructuredTool.from_function(each, metadata=says) for each in (scene.pay, scene.look)]


def saver(home: Path) -> SqliteSaver:
    return SqliteSaver(sqlite3.connect(home / "threads.db", check_same_thread=False))


class TestOurGraph(AdapterContract):
    """`create_reviewed_agent`, without a worker."""

    def build(self, scene: Scene) -> Driven:
        decisions = tuple(clearance.DecisionType(each) for each in ALL)
        policy = clearance.Policy(
            (clearance.Rule("pay", decisions=decisions),), default=clearance.Effect.ALLOW
        )
        return Graph(
            clearance.create_reviewed_agent(
                model(scene.script),
                tools(scene),
                policy=policy,
                checkpointer=saver(scene.home),
                using=scene.workspace,
            )
        )


class TestMiddleware(AdapterContract):
    """`ClearanceMiddleware` in an agent of `create_agent`."""

    def build(self, scene: Scene) -> Driven:
        return Graph(
            create_agent(
                model(scene.script),
                tools(scene),
                system_prompt="You are a test.",
                middleware=[clearance.ClearanceMiddleware({"pay": True}, using=scene.workspace)],
                checkpointer=saver(scene.home),
            )
        )


class _LangChainsOwn(AdapterContract):
    """LangChain's middleware, which gates by the graph's routes alone."""

    def build(self, scene: Scene) -> Driven:
        return Graph(
            create_agent(
                model(scene.script),
                tools(scene),
                system_prompt="You are a test.",
                middleware=[HumanInTheLoopMiddleware({"pay": True})],
                checkpointer=saver(scene.home),
            )
        )


@pytest.mark.parametrize(
    "broken",
    [
        _LangChainsOwn.test_a_bad_value_changes_nothing_and_the_question_stands,
        _LangChainsOwn.test_a_late_repetition_of_an_approval_does_not_approve_the_next_call,
        _LangChainsOwn.test_decisions_by_their_place_are_refused_where_several_calls_wait,
        _LangChainsOwn.test_two_resumes_at_once_run_a_call_once,
    ],
)
def test_an_adapter_that_breaks_the_contract_is_found(broken: Callable[[AdapterContract], None]) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - whichever way it shows
        broken(_LangChainsOwn())
