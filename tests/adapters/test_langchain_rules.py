"""What `interrupt_on` says: what waits, what may be answered, and what an agent may be built of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import clearance
from clearance import ClearanceMiddleware
from clearance.adapters.langchain_rules import read_policy
from clearance.errors import PolicyError
from clearance.workspace import Clearance
from tests.adapters.middleware import (
    APPROVE,
    CONFIG,
    LOOK,
    PAY,
    REFUND,
    REJECTED,
    agent,
    answers,
    ask,
    resume,
    tools,
)
from tests.scripted import ScriptedModel, calls

BOTH = ["approve", "reject"]
PLAIN = "Careful\n\nTool: pay\nArgs: {'account': 'A', 'cents': 5}"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Clearance]:
    with clearance.open(home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def done() -> list[Any]:
    """What the tools really did."""
    return []


def small(request: Any) -> bool:
    return bool(request.tool_call["args"]["cents"] > 100)


def go(graph: Any) -> dict[str, Any]:
    result: dict[str, Any] = graph.invoke({"messages": [("user", "Go")]}, CONFIG)
    return result


def test_only_the_named_tools_wait_and_with_the_named_decisions(
    workspace: Clearance, done: list[Any]
) -> None:
    on = {"pay": {"allowed_decisions": BOTH}, "look": False}
    asked = ask(agent(workspace, [calls(PAY, LOOK, REFUND)], tools(done), on=on))
    assert [each["name"] for each in asked["action_requests"]] == ["pay"]
    assert asked["review_configs"][0]["allowed_decisions"] == BOTH


def test_a_decision_that_is_not_allowed_is_refused(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done), on={"pay": {"allowed_decisions": BOTH}})
    ask(graph)
    [again] = resume(graph, {"type": "respond", "message": "x"})["__interrupt__"]
    assert again.value["refused"]
    assert done == []


def test_a_policy_and_interrupt_on_add_up(workspace: Clearance, done: list[Any]) -> None:
    policy = clearance.Policy((clearance.Rule("refund"),), default=clearance.Effect.ALLOW)
    graph = agent(workspace, [calls(PAY, REFUND, LOOK)], tools(done), on={"pay": True}, policy=policy)
    assert [each["name"] for each in ask(graph)["action_requests"]] == ["pay", "refund"]


def test_a_policy_says_what_becomes_of_tools_that_nothing_names(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = agent(workspace, [calls(PAY, LOOK)], tools(done), on={"look": False}, policy=clearance.Policy())
    assert [each["name"] for each in ask(graph)["action_requests"]] == ["pay"]


@pytest.mark.parametrize(
    "on",
    [
        None,
        {"pay": {}},
        {"pay": {"allowed_decisions": []}},
        {"pay": {"allowed": ["approve"]}},
        {"pay": {"allowed_decisions": "approve"}},
        {"pay": {"allowed_decisions": ["aprove"]}},
        {"pay": "yes"},
        {"pay": {"allowed_decisions": BOTH, "when": True}},
    ],
    ids=str,
)
def test_what_cannot_be_a_rule_is_refused_when_it_is_written(on: Any) -> None:
    with pytest.raises(PolicyError):
        ClearanceMiddleware(on)


def test_an_unknown_tool_is_named_when_the_agent_is_built(workspace: Clearance) -> None:
    with pytest.raises(PolicyError, match="pai"):
        agent(workspace, [], tools([]), on={"pai": True})


def test_plain_functions_and_the_tools_of_other_middleware_are_known(
    workspace: Clearance, done: list[Any]
) -> None:
    class Bringing(AgentMiddleware[Any, Any, Any]):
        tools = tools(done)[:1]

    def fly(to: str) -> str:
        """Fly somewhere."""
        return f"in {to}"

    asked = ask(agent(workspace, [calls(PAY)], [fly], on={"fly": True, "pay": True}, before=[Bringing()]))
    assert [each["name"] for each in asked["action_requests"]] == ["pay"]


def test_another_middleware_may_not_stand_between_the_clearance_and_the_tool(workspace: Clearance) -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    with pytest.raises(ValueError, match="Twice"):
        create_agent(
            ScriptedModel([]),
            tools([]),
            middleware=[ClearanceMiddleware({"pay": True}, using=workspace), Twice()],
        )


def test_one_interrupt_for_each_call_is_not_offered() -> None:
    with pytest.raises(ValueError, match="interrupt_mode"):
        ClearanceMiddleware({"pay": True}, interrupt_mode="per_call")


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Money leaves the house.", "Money leaves the house."),
        (lambda call, state, _: f"{call['name']} {len(state['messages'])}", "pay 2"),
        (lambda call, *_: call["nothing"], PLAIN),
        (None, PLAIN),
    ],
    ids=["text", "function", "failing function", "none"],
)
def test_the_description_of_a_call_is_the_given_one(
    workspace: Clearance, done: list[Any], description: Any, expected: str
) -> None:
    said = {"allowed_decisions": BOTH, **({"description": description} if description else {})}
    graph = agent(workspace, [calls(PAY)], tools(done), on={"pay": said}, description_prefix="Careful")
    assert ask(graph)["action_requests"][0]["description"] == expected


def test_when_lets_a_call_run_at_once(workspace: Clearance, done: list[Any]) -> None:
    on = {"pay": {"allowed_decisions": BOTH, "when": small}}
    large = ("pay", {"account": "A", "cents": 500})
    asked = ask(agent(workspace, [calls(PAY), calls(large)], tools(done), on=on))
    assert asked["action_requests"][0]["args"]["cents"] == 500
    assert done == [("pay", "A", 5)]


def test_when_sees_the_state_the_call_and_the_runtime(workspace: Clearance, done: list[Any]) -> None:
    seen: list[Any] = []

    def when(request: Any) -> bool:
        context = request.runtime.config["configurable"]["thread_id"]
        seen.append((request.tool_call["id"], request.state["messages"][0].text, context))
        return False

    on = {"pay": {"allowed_decisions": BOTH, "when": when}}
    go(agent(workspace, [calls(PAY), "Done."], tools(done), on=on))
    assert set(seen) == {("call_0", "Go", "t")}
    assert done == [("pay", "A", 5)]


@pytest.mark.parametrize(
    "when",
    [lambda _: None, lambda _: 1, lambda request: request.state["no"], lambda request: request.nothing],
    ids=["none", "a number", "an error", "an unknown attribute"],
)
def test_a_when_that_gives_no_answer_holds_the_call(workspace: Clearance, done: list[Any], when: Any) -> None:
    graph = agent(workspace, [calls(PAY)], tools(done), on={"pay": {"allowed_decisions": BOTH, "when": when}})
    assert ask(graph)["action_requests"][0]["faults"]
    assert done == []


def test_a_when_that_flips_before_the_call_runs_asks_about_it(workspace: Clearance, done: list[Any]) -> None:
    answered: list[bool] = []

    def when(_: Any) -> bool:
        answered.append(True)
        return len(answered) > 1

    graph = agent(
        workspace, [calls(PAY), "Done."], tools(done), on={"pay": {"allowed_decisions": BOTH, "when": when}}
    )
    ask(graph)
    assert done == []
    assert resume(graph, APPROVE)["messages"][-1].content == "Done."
    assert done == [("pay", "A", 5)]


def test_a_when_that_flips_after_a_rejection_does_not_run_the_call(
    workspace: Clearance, done: list[Any]
) -> None:
    asks = [True]
    on = {"pay": {"allowed_decisions": BOTH, "when": lambda _: asks[0]}}
    graph = agent(workspace, [calls(PAY), "Done."], tools(done), on=on)
    ask(graph)
    asks[0] = False
    result = resume(graph, {"type": "reject"})
    assert done == []
    assert answers(result["messages"]) == [REJECTED]


def test_a_when_that_changes_its_mind_each_time_comes_to_an_end(
    workspace: Clearance, done: list[Any]
) -> None:
    answered: list[bool] = []

    def when(_: Any) -> bool:
        answered.append(True)
        return len(answered) % 2 == 0

    graph = agent(
        workspace, [calls(PAY), "Done."], tools(done), on={"pay": {"allowed_decisions": BOTH, "when": when}}
    )
    result = go(graph)
    assert done == []
    assert [m.status for m in result["messages"] if isinstance(m, ToolMessage)] == ["error"]


def test_the_version_of_a_when_is_that_of_its_code() -> None:
    def made(limit: int, names: str) -> Any:
        code = f"def when(r):\n    return r.cents > {limit} or r.name in {{{names}}}"
        known: dict[str, Any] = {}
        exec(code, known)
        return read_policy({"pay": {"allowed_decisions": BOTH, "when": known["when"]}}, None).version

    assert made(5, "'a', 'b', 'c'") == made(5, "'c', 'b', 'a'")
    assert made(5, "'a'") != made(6, "'a'")


def test_two_agents_without_names_do_not_share_their_rules(workspace: Clearance, done: list[Any]) -> None:
    gated = agent(workspace, [calls(PAY)], tools(done))
    agent(workspace, [], tools(done), on={})
    ask(gated)
    assert done == []


def test_an_agent_is_called_by_the_name_that_it_was_given(workspace: Clearance, done: list[Any]) -> None:
    graph: Any = create_agent(
        ScriptedModel([calls(PAY)]),
        tools(done),
        system_prompt="You are a test.",
        middleware=[ClearanceMiddleware({"pay": True}, using=workspace)],
        checkpointer=InMemorySaver(),
        name="teller",
    )
    ask(graph)
    assert workspace.programs.get("teller") is not None
