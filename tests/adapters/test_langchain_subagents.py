"""Agents inside tools: each waits for people where it stands, and is never taken for another."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import clearance
from clearance import ClearanceMiddleware
from clearance.store import reviews, runs
from clearance.workspace import Clearance
from tests.adapters.middleware import (
    APPROVE,
    CONFIG,
    PAY,
    REJECT,
    agent,
    answers,
    ask,
    question,
    resume,
    tools,
)
from tests.scripted import ScriptedModel, calls


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Clearance]:
    with clearance.open(home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def done() -> list[Any]:
    """What the tools really did."""
    return []


def delegating(inner: Any, started: list[str]) -> BaseTool:
    @tool
    def delegate(what: str) -> str:
        """Let another agent do it."""
        started.append(what)
        result = inner.invoke({"messages": [("user", what)]})
        return f"it says: {result['messages'][-1].text}"

    return delegate


def team(
    workspace: Clearance,
    done: list[Any],
    started: list[str],
    *,
    inner_steps: Any,
    begins: bool = True,
    **more: Any,
) -> Any:
    """Return an agent that delegates to another one, whose payments wait for people."""
    inner: Any = create_agent(
        ScriptedModel(inner_steps),
        tools(done),
        system_prompt="You are a test.",
        middleware=[ClearanceMiddleware({"pay": True}, using=workspace)],
        name="inner",
    )
    begin = [calls(("delegate", {"what": "pay"}))] if begins else []
    return agent(workspace, [*begin, "All done."], [delegating(inner, started)], **{"on": {}, **more})


def test_an_agent_inside_a_tool_waits_and_goes_on_with_its_own_calls(
    workspace: Clearance, done: list[Any]
) -> None:
    started: list[str] = []
    graph = team(workspace, done, started, inner_steps=[calls(PAY), "Paid."])
    asked = ask(graph)
    assert [each["name"] for each in asked["action_requests"]] == ["pay"]
    assert question(resume(graph, {"type": "yes"}))["refused"]
    assert done == []
    result = resume(graph, APPROVE)
    assert done == [("pay", "A", 5)]
    assert answers(result["messages"]) == ["it says: Paid."]
    assert result["messages"][-1].content == "All done."


def test_a_rejected_call_of_an_agent_inside_a_tool_does_not_run(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = team(workspace, done, [], inner_steps=[calls(PAY), "It was rejected."])
    ask(graph)
    assert answers(resume(graph, REJECT)["messages"]) == ["it says: It was rejected."]
    assert done == []


def test_an_approval_of_the_outer_call_does_not_approve_the_inner_one(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = team(workspace, done, [], inner_steps=[calls(PAY), "Paid."], on={"delegate": True})
    assert ask(graph)["action_requests"][0]["name"] == "delegate"
    inner = question(resume(graph, APPROVE))
    assert inner["action_requests"][0]["name"] == "pay"
    assert "late repetition" in question(resume(graph, APPROVE))["refused"]
    assert "late repetition" in question(graph.invoke(None, CONFIG))["refused"]
    assert done == []
    resume(graph, APPROVE, review_id=inner["review_id"])
    assert done == [("pay", "A", 5)]


def test_two_reviews_in_one_tool_are_two_decisions(workspace: Clearance, done: list[Any]) -> None:
    graph = team(workspace, done, [], inner_steps=[calls(PAY), calls(("pay", {"account": "B", "cents": 9}))])
    ask(graph)
    second = question(resume(graph, APPROVE))
    assert question(graph.invoke(None, CONFIG))["review_id"] == second["review_id"]
    assert done == [("pay", "A", 5)]
    resume(graph, APPROVE, review_id=second["review_id"])
    assert done == [("pay", "A", 5), ("pay", "B", 9)]


def test_an_agent_inside_a_tool_waits_over_a_restart(
    migrated_database_url: str, tmp_path: Path, done: list[Any]
) -> None:
    saver, started = InMemorySaver(), list[str]()
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as workspace:
        ask(team(workspace, done, started, inner_steps=[calls(PAY)], saver=saver))
    with clearance.open(migrated_database_url, home=tmp_path, person="ann", worker=False) as workspace:
        again = team(workspace, done, started, inner_steps=["Paid."], begins=False, saver=saver)
        result = resume(again, APPROVE)
    assert done == [("pay", "A", 5)]
    assert answers(result["messages"]) == ["it says: Paid."]


def test_a_new_message_withdraws_what_an_agent_inside_a_tool_waits_for(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = team(workspace, done, [], inner_steps=[calls(PAY)])
    asked = ask(graph)
    result = graph.invoke({"messages": [("user", "never mind")]}, CONFIG)
    assert isinstance(result["messages"][-1], AIMessage)
    with workspace.database.read() as tx:
        assert reviews.review(tx, asked["review_id"]).status == "withdrawn"
        assert not runs.run(tx, asked["run_id"]).is_open


def test_two_resumes_at_once_run_a_call_inside_a_tool_once(workspace: Clearance) -> None:
    for turn in range(5):
        done: list[Any] = []
        graph = team(workspace, done, [], inner_steps=[calls(PAY), "Paid.", "Paid."])
        config: Any = {"configurable": {"thread_id": f"t{turn}"}}
        ask(graph, config)
        together = threading.Barrier(2)

        def approve(graph: Any = graph, config: Any = config, together: Any = together) -> None:
            together.wait()
            resume(graph, APPROVE, config=config)

        callers = [threading.Thread(target=approve) for _ in range(2)]
        for each in callers:
            each.start()
        for each in callers:
            each.join()
        assert done == [("pay", "A", 5)]


def test_two_agents_at_once_wait_each_for_its_own_decision(workspace: Clearance, done: list[Any]) -> None:
    inner: Any = create_agent(
        ScriptedModel([calls(PAY), calls(PAY), "Paid.", "Paid."]),
        tools(done),
        system_prompt="You are a test.",
        middleware=[ClearanceMiddleware({"pay": True}, using=workspace)],
    )
    steps = [calls(*[("delegate", {"what": what}) for what in ("x", "y")]), "All done."]
    graph = agent(workspace, steps, [delegating(inner, [])], on={})
    waiting = graph.invoke({"messages": [("user", "Go")]}, CONFIG)["__interrupt__"]
    keys = {each.id: each.value["action_requests"][0]["call"] for each in waiting}
    assert len(keys) == 2
    one, other = keys
    said = {each: {"decisions": [{**APPROVE, "call": key}]} for each, key in keys.items()}
    [left] = graph.invoke(Command(resume={one: said[one], other: "nonsense"}), CONFIG)["__interrupt__"]
    assert left.value["refused"]
    assert done == [("pay", "A", 5)]
    result = graph.invoke(Command(resume={left.id: said[other]}), CONFIG)
    assert answers(result["messages"]) == ["it says: Paid."] * 2
    assert done == [("pay", "A", 5)] * 2


def test_an_agent_inside_an_asynchronous_tool_waits_too(workspace: Clearance, done: list[Any]) -> None:
    inner: Any = create_agent(
        ScriptedModel([calls(PAY), "Paid."]),
        tools(done),
        system_prompt="You are a test.",
        middleware=[ClearanceMiddleware({"pay": True}, using=workspace)],
    )

    @tool
    async def delegate(what: str) -> str:
        """Let another agent do it."""
        result = await inner.ainvoke({"messages": [("user", what)]})
        return str(result["messages"][-1].text)

    async def talk() -> dict[str, Any]:
        graph = agent(workspace, [calls(("delegate", {"what": "x"})), "All done."], [delegate], on={})
        await graph.ainvoke({"messages": [("user", "Go")]}, CONFIG)
        assert done == []
        result: dict[str, Any] = await graph.ainvoke(Command(resume={"decisions": [APPROVE]}), CONFIG)
        return result

    assert answers(asyncio.run(talk())["messages"]) == ["Paid."]
    assert done == [("pay", "A", 5)]
