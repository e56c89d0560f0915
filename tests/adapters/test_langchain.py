"""The gate in an agent of LangChain's `create_agent`: questions, decisions and answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

import clearance
from clearance.people import Person, Role
from clearance.run import RunState
from clearance.store import people, runs
from clearance.workspace import Clearance
from tests.adapters.middleware import (
    APPROVE,
    CONFIG,
    LOOK,
    PAY,
    REFUND,
    REJECT,
    REJECTED,
    agent,
    answers,
    ask,
    question,
    resume,
    tools,
)
from tests.scripted import calls

FORGED = {"account": "MALLORY", "cents": 5}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Clearance]:
    """A workspace without a worker: whoever invokes the agent drives it."""
    with clearance.open(home=tmp_path, person="ann", worker=False) as opened:
        yield opened


@pytest.fixture
def done() -> list[Any]:
    """What the tools really did."""
    return []


def second_person(workspace: Clearance, name: str, role: Role = Role.ADMIN) -> None:
    with workspace.database.write() as tx:
        people.add(tx, Person(id=name, name=name, role=role), now=workspace.database.now(tx))


def test_an_approved_call_runs_and_the_agent_goes_on(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    ask(graph)
    assert done == []
    result = resume(graph, APPROVE)
    assert (result["messages"][-1].content, done) == ("Done.", [("pay", "A", 5)])
    assert answers(result["messages"]) == ["paid 5"]


def test_a_turn_that_ended_is_a_run_that_is_done(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    run_id = ask(graph)["run_id"]
    resume(graph, APPROVE)
    with workspace.database.read() as tx:
        assert runs.run(tx, run_id).state is RunState.DONE


def test_the_question_has_what_langchains_clients_read(workspace: Clearance, done: list[Any]) -> None:
    asked = ask(agent(workspace, [calls(PAY, LOOK, REFUND)], tools(done), on={"pay": True, "refund": True}))
    assert [(each["name"], each["args"]) for each in asked["action_requests"]] == [PAY, REFUND]
    assert [each["action_name"] for each in asked["review_configs"]] == ["pay", "refund"]
    for each in asked["review_configs"]:
        assert each["allowed_decisions"] == ["approve", "edit", "reject", "respond"]


def test_an_edited_call_runs_as_edited_and_the_model_is_told(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    ask(graph)
    edited = {"name": "pay", "args": {"account": "B", "cents": 1}}
    result = resume(graph, {"type": "edit", "edited_action": edited})
    assert done == [("pay", "B", 1)]
    assert answers(result["messages"]) == [
        '[A reviewer changed this call. What ran: pay {"account":"B","cents":1}]\npaid 1'
    ]
    assert [call["args"] for m in result["messages"] for call in getattr(m, "tool_calls", [])] == [
        edited["args"]
    ]


def test_an_edited_message_with_reasoning_stays_as_it_was(workspace: Clearance, done: list[Any]) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = calls(PAY).model_copy(update={"content": [thinking]})
    graph = agent(workspace, [said, "Done."], tools(done), edit_notice=None)
    ask(graph)
    edited = {"name": "pay", "args": {"account": "B", "cents": 1}}
    result = resume(graph, {"type": "edit", "edited_action": edited})
    assert done == [("pay", "B", 1)]
    assert result["messages"][1].tool_calls[0]["args"] == PAY[1]
    assert "What ran" in answers(result["messages"])[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Mind the change.", '[Mind the change. What ran: pay {"account":"B","cents":1}]\npaid 1'),
        (None, "paid 1"),
    ],
)
def test_the_edit_notice_can_be_worded_or_left_out(
    workspace: Clearance, done: list[Any], given: str | None, expected: str
) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done), edit_notice=given)
    ask(graph)
    edited = {"name": "pay", "args": {"account": "B", "cents": 1}}
    assert answers(resume(graph, {"type": "edit", "edited_action": edited})["messages"]) == [expected]


def test_a_rejected_and_an_answered_call_do_not_run(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY, PAY), "Done."], tools(done))
    first, second = (each["call"] for each in ask(graph)["action_requests"])
    respond = {"type": "respond", "message": "it is paid", "call": second}
    result = resume(graph, respond, {**REJECT, "call": first})
    assert done == []
    assert answers(result["messages"]) == [
        f"{REJECTED} Reason: not now",
        "it is paid",
    ]
    assert [m.status for m in result["messages"] if isinstance(m, ToolMessage)] == ["error", "success"]


def test_every_call_of_a_mixed_message_is_answered_in_its_order(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = agent(workspace, [calls(LOOK, PAY, ("fly", {}), PAY, LOOK), "Done."], tools(done))
    first, second = (each["call"] for each in ask(graph)["action_requests"])
    result = resume(graph, {**REJECT, "call": first}, {**APPROVE, "call": second})
    assert sorted(done) == [("look", "shop"), ("look", "shop"), ("pay", "A", 5)]
    told = answers(result["messages"])
    assert [text[:10] for text in told] == ["seen shop", "A reviewer", "paid 5", "seen shop", "There is n"]


def test_a_message_of_unreadable_calls_goes_back_to_the_model(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(("fly", {}), ("pay", {"account": 7})), "I cannot."], tools(done))
    result = graph.invoke({"messages": [("user", "Go")]}, CONFIG)
    assert result["messages"][-1].content == "I cannot."
    assert len(answers(result["messages"])) == 2


@pytest.mark.parametrize(
    "bad",
    [
        "approve",
        True,
        {"decisions": None},
        {"decisions": [{"type": "edit"}]},
        {"decisions": [{"type": "yes"}]},
        {"decisions": []},
        {"decisions": [APPROVE, APPROVE]},
        {"decisions": [{**APPROVE, "call": "other/1/0"}]},
        {"decisions": [APPROVE], "review_id": "other/1/1"},
        {"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": {"cents": "x"}}}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "fly", "args": {}}}]},
    ],
    ids=str,
)
def test_a_bad_resume_value_changes_nothing_and_is_asked_again(
    workspace: Clearance, done: list[Any], bad: Any
) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    first = ask(graph)
    for _ in range(2):
        again = question(graph.invoke(Command(resume=bad), CONFIG))
        assert again["refused"]
        assert {**again, "refused": None} == {**first, "refused": None}
    assert done == []
    assert resume(graph, APPROVE)["messages"][-1].content == "Done."
    assert done == [("pay", "A", 5)]


def test_going_on_without_a_decision_stops_again(workspace: Clearance, done: list[Any]) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    first = ask(graph)
    for _ in range(3):
        assert question(graph.invoke(None, CONFIG)) == first
    assert done == []


def test_a_decision_from_elsewhere_is_found_when_the_agent_goes_on(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    asked = ask(graph)
    workspace.gate.decide(asked["review_id"], [APPROVE], by="ann", version=asked["version"])
    assert graph.invoke(None, CONFIG)["messages"][-1].content == "Done."
    assert done == [("pay", "A", 5)]


def test_a_resume_value_is_submitted_as_the_person_of_the_configuration(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = agent(workspace, [calls(PAY), "Done."], tools(done))
    ask(graph)
    other: Any = {"configurable": {"thread_id": "t", "person": "mallory"}}
    assert "mallory" in question(resume(graph, APPROVE, config=other))["refused"]
    assert done == []


def test_an_earlier_resume_value_is_not_submitted_again_for_another_person(
    workspace: Clearance, done: list[Any]
) -> None:
    """LangGraph gives earlier values to a node that starts anew; two people must still say yes."""
    for name in ("bob", "cem"):
        second_person(workspace, name)
    both = clearance.Policy((clearance.Rule("pay", who=(clearance.Threshold(approve=2),)),))
    graph = agent(workspace, [calls(PAY), "Done."], tools(done), policy=both)
    bob: Any = {"configurable": {"thread_id": "t", "person": "bob"}}
    cem: Any = {"configurable": {"thread_id": "t", "person": "cem"}}
    ask(graph)
    waits = question(resume(graph, APPROVE, config=bob))
    assert "refused" not in waits
    assert "bob sent the same" in question(graph.invoke(None, cem))["refused"]
    assert "bob sent the same" in question(resume(graph, APPROVE, config=cem))["refused"]
    again = question(graph.invoke(Command(resume="nonsense"), cem))
    assert again["version"] == waits["version"]
    result = resume(graph, REJECT, config=cem)
    assert done == []
    assert "rejected" in answers(result["messages"])[0]


def test_an_answer_that_names_the_interrupt_names_the_review(workspace: Clearance, done: list[Any]) -> None:
    other = ("pay", {"account": "B", "cents": 9})
    graph = agent(workspace, [calls(PAY), calls(other), "Done."], tools(done))

    def by_id(paused: Any) -> Command[Any]:
        [interrupt] = paused["__interrupt__"]
        return Command(resume={interrupt.id: {"decisions": [APPROVE]}})

    first = by_id(graph.invoke({"messages": [("user", "Pay.")]}, CONFIG))
    second = by_id(graph.invoke(first, CONFIG))
    assert done == [("pay", "A", 5)]
    late = graph.invoke(first, CONFIG)
    assert "__interrupt__" in late
    assert done == [("pay", "A", 5)]
    assert graph.invoke(second, CONFIG)["messages"][-1].content == "Done."
    assert done == [("pay", "A", 5), ("pay", "B", 9)]


def test_a_late_repetition_of_an_approval_does_not_approve_the_next_call(
    workspace: Clearance, done: list[Any]
) -> None:
    other = ("pay", {"account": "B", "cents": 9})
    graph = agent(workspace, [calls(PAY), calls(other), "Done."], tools(done))
    ask(graph)
    resume(graph, APPROVE)
    waits = question(resume(graph, APPROVE))
    assert "late repetition" in waits["refused"]
    assert done == [("pay", "A", 5)]
    resume(graph, APPROVE, review_id=waits["review_id"])
    assert done == [("pay", "A", 5), ("pay", "B", 9)]


def test_decisions_by_position_are_refused_when_more_than_one_call_waits(
    workspace: Clearance, done: list[Any]
) -> None:
    graph = agent(workspace, [calls(PAY, REFUND), "Done."], tools(done), on={"pay": True, "refund": True})
    asked = ask(graph)
    assert question(resume(graph, APPROVE, REJECT))["refused"]
    assert done == []
    pay, refund = (each["call"] for each in asked["action_requests"])
    resume(graph, {**REJECT, "call": refund}, {**APPROVE, "call": pay})
    assert done == [("pay", "A", 5)]


@pytest.mark.parametrize(
    ("rule", "waits"),
    [
        (clearance.Rule("refund", effect=clearance.Effect.DENY), "pay"),
        (clearance.Rule("refund", who=(clearance.Threshold(approve=2),)), "refund"),
    ],
    ids=["denied", "two people"],
)
def test_an_edit_into_another_tool_is_judged_by_that_tools_rule(
    workspace: Clearance, done: list[Any], rule: clearance.Rule, waits: str
) -> None:
    policy = clearance.Policy((clearance.Rule("pay"), rule))
    graph = agent(workspace, [calls(PAY), "Done."], tools(done), policy=policy)
    ask(graph)
    result = resume(graph, {"type": "edit", "edited_action": {"name": REFUND[0], "args": REFUND[1]}})
    assert done == []
    asked = question(result)
    assert asked["action_requests"][0]["name"] == waits
    assert bool(asked.get("refused")) == (waits == "pay")
