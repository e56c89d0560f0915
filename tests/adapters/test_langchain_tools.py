"""Tools of a gated agent: what they are given, and what they give back."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import InjectedState, InjectedToolCallId, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

import clearance
from clearance import ClearanceMiddleware
from clearance.errors import CallUncertainError
from clearance.store import listing
from clearance.workspace import Clearance
from tests.adapters.middleware import (
    APPROVE,
    CONFIG,
    LOOK,
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


@tool
def count(
    step: int,
    runtime: ToolRuntime,
    state: Annotated[dict[str, Any], InjectedState],
    call_id: Annotated[str, InjectedToolCallId],
    config: RunnableConfig,
) -> str:
    """Count the messages."""
    key = config["configurable"]["idempotency_key"]
    return (
        f"{step} {len(state['messages'])} {len(runtime.state['messages'])} {call_id} {key.split('/', 1)[1]}"
    )


class Noted(AgentState[Any]):
    note: str


class Noting(AgentMiddleware[Any, Any, Any]):
    state_schema = Noted


@tool
def note(text: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Note something in the state."""
    return Command(update={"note": text, "messages": [ToolMessage("noted", tool_call_id=call_id)]})


@tool(response_format="content_and_artifact")
def draw(what: str) -> tuple[list[Any], dict[str, Any]]:
    """Draw something."""
    return [{"type": "text", "text": f"a {what}"}], {"pixels": 7}


@tool
def fail(how: str) -> str:
    """Fail."""
    raise ValueError(how)


def test_a_tool_gets_the_state_the_runtime_and_the_key_of_its_call(workspace: Clearance) -> None:
    graph = agent(workspace, [calls(("count", {"step": 1})), "Done."], [count], on={"count": True})
    ask(graph)
    assert answers(resume(graph, APPROVE)["messages"]) == ["1 2 2 call_0 1/0"]


def test_a_tool_that_changes_the_state_does_so_and_an_edit_is_told(workspace: Clearance) -> None:
    graph = agent(
        workspace, [calls(("note", {"text": "a"})), "Done."], [note], on={"note": True}, before=[Noting()]
    )
    ask(graph)
    result = resume(graph, {"type": "edit", "edited_action": {"name": "note", "args": {"text": "b"}}})
    assert result["note"] == "b"
    [told] = answers(result["messages"])
    assert "What ran" in told
    assert told.endswith("noted")


@pytest.mark.parametrize(("name", "argument"), [("note", "text"), ("draw", "what")])
def test_a_result_that_is_more_than_text_is_the_same_after_a_crash(
    workspace: Clearance, name: str, argument: str
) -> None:
    """The step in which the tool ran is lost before its checkpoint: the call is not run again."""
    ran: list[str] = []

    class Once(AgentMiddleware[Any, Any, Any]):
        crashed = False

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            given = handler(request)
            ran.append(request.tool_call["id"])
            if len(ran) == 1:
                raise KeyboardInterrupt
            return given

    graph = agent(
        workspace,
        [calls((name, {argument: "cat"})), "Done."],
        [note, draw],
        on={name: True},
        before=[Noting(), Once()],
    )
    ask(graph)
    with pytest.raises(KeyboardInterrupt):
        resume(graph, APPROVE)
    result = graph.invoke(None, CONFIG)
    [message] = [each for each in result["messages"] if isinstance(each, ToolMessage)]
    assert len(ran) == 2
    if name == "note":
        assert (result["note"], message.content) == ("cat", "noted")
    else:
        assert message.content == [{"type": "text", "text": "a cat"}]
        assert message.artifact == {"pixels": 7}


def test_content_in_blocks_stays_and_an_edit_is_told_before_it(workspace: Clearance) -> None:
    graph = agent(workspace, [calls(("draw", {"what": "cat"})), "Done."], [draw], on={"draw": True})
    ask(graph)
    edit = {"type": "edit", "edited_action": {"name": "draw", "args": {"what": "dog"}}}
    [message] = [m for m in resume(graph, edit)["messages"] if isinstance(m, ToolMessage)]
    assert [block["text"] for block in message.content if isinstance(block, dict)] == [
        '[A reviewer changed this call. What ran: draw {"what":"dog"}]\n',
        "a dog",
    ]
    assert message.artifact == {"pixels": 7}


def test_an_edit_into_another_tool_runs_that_tool(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    ask(graph)
    result = resume(graph, {"type": "edit", "edited_action": {"name": LOOK[0], "args": LOOK[1]}})
    assert done == [("look", "shop")]
    assert answers(result["messages"])[0].endswith("seen shop")


def test_a_tool_that_raises_is_told_to_the_model(workspace: Clearance) -> None:
    graph = agent(workspace, [calls(("fail", {"how": "no money"})), "Sorry."], [fail], on={})
    result = graph.invoke({"messages": [("user", "Go")]}, CONFIG)
    assert answers(result["messages"]) == ["ValueError: no money"]
    assert result["messages"][-1].content == "Sorry."


def test_structured_output_is_no_call_that_waits(workspace: Clearance, done: list[Any]) -> None:
    class Weather(BaseModel):
        """The weather."""

        degrees: int

    graph: Any = create_agent(
        ScriptedModel([calls(PAY), calls(("Weather", {"degrees": 7}))]),
        tools(done),
        system_prompt="You are a test.",
        middleware=[ClearanceMiddleware({"pay": True}, using=workspace)],
        checkpointer=InMemorySaver(),
        response_format=Weather,
    )
    ask(graph)
    assert resume(graph, APPROVE)["structured_response"] == Weather(degrees=7)


def test_the_asynchronous_agent_is_gated_in_the_same_way(workspace: Clearance, done: list[Any]) -> None:
    loops: list[Any] = []

    @tool
    async def pay(account: str, cents: int) -> str:
        """Pay money."""
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        done.append((account, cents))
        return "paid"

    async def talk() -> dict[str, Any]:
        graph = agent(workspace, [calls(PAY, PAY), "Done."], [pay])
        asked = question(await graph.ainvoke({"messages": [("user", "Go")]}, CONFIG))
        again = question(await graph.ainvoke(Command(resume="nonsense"), CONFIG))
        assert again["refused"]
        first, second = (each["call"] for each in asked["action_requests"])
        decisions = [{**APPROVE, "call": first}, {**REJECT, "call": second}]
        result: dict[str, Any] = await graph.ainvoke(Command(resume={"decisions": decisions}), CONFIG)
        assert loops == [asyncio.get_running_loop()]
        return result

    result = asyncio.run(talk())
    assert done == [("A", 5)]
    assert answers(result["messages"])[0] == "paid"
    assert result["messages"][-1].content == "Done."


@pytest.mark.parametrize(
    ("decision", "attempts", "known"),
    [({"type": "respond", "message": "it arrived"}, 1, "it arrived"), (APPROVE, 2, "paid at last")],
    ids=["it happened", "it did not"],
)
def test_a_call_of_unknown_outcome_is_told_with_the_next_message(
    workspace: Clearance, done: list[Any], decision: dict[str, Any], attempts: int, known: str
) -> None:
    @tool
    def pay(account: str, cents: int) -> str:
        """Pay money."""
        done.append((account, cents))
        if len(done) == 1:
            raise CallUncertainError("The bank did not answer.")
        return "paid at last"

    graph = agent(workspace, [calls(PAY), "I do not know.", lambda shown: str(shown[-1].content)], [pay])
    ask(graph)
    assert "outcome is unknown" in answers(resume(graph, APPROVE)["messages"])[0]
    with workspace.database.read() as tx:
        [review] = listing.inbox(tx)
    workspace.gate.decide(review.id, [decision], by="ann", version=review.version)
    result = graph.invoke({"messages": [("user", "And now?")]}, CONFIG)
    assert known in result["messages"][-1].text
    assert len(done) == attempts
