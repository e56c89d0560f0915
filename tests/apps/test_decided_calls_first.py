"""Decided calls run before the graph is started, as long as the thread is what people were asked about."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import clearance
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.chat.agent import Agent
from clearance.assembly import Clearance
from clearance.killpoints import watch
from clearance.people import Person, Role
from clearance.store import people
from tests.apps.conftest import Desk, Talk
from tests.scripted import ScriptedModel, calls

MAIL = {"to": "bob@example.com", "subject": "hi"}


def _asked_and_left(talk: Talk, workspace: Clearance) -> tuple[ReviewedChat, Any]:
    """Ask about a mail, and have no worker go on with what is decided."""
    chat, _ = talk(calls(("send_email", MAIL)), "done")
    asked = chat.send_message("t", "write to bob")["pending_review"]
    assert asked is not None
    workspace.worker.stop()
    return chat, asked


def _approve(workspace: Clearance, asked: dict[str, Any]) -> None:
    workspace.gate.decide(asked["review_id"], [{"type": "approve"}], by="ann", version=asked["version"])


def _go_on(workspace: Clearance, desk: Desk, run_id: str, *, meanwhile: Callable[[Agent], object]) -> Any:
    """Go on with a run by another worker, once something has happened to its thread."""
    workspace.worker.stop()
    url = workspace.database.url.render_as_string(hide_password=False)
    with clearance.open(url, home=workspace.home / "other", person="ann", worker=False) as other:
        agent = create_reviewed_agent(
            ScriptedModel(["done"]), desk.tools(), tools_requiring_approval=["send_email", "pay"], using=other
        )
        meanwhile(agent)
        chat = ReviewedChat(agent)
        other.worker.start()
        return chat.wait_for(run_id)


def test_a_call_runs_before_the_review_node_runs_again(talk: Talk, workspace: Clearance, desk: Desk) -> None:
    chat, _ = talk(calls(("send_email", MAIL)), "done")
    asked = chat.send_message("t", "write to bob")["pending_review"]
    assert asked is not None
    passed: list[str] = []
    watch(passed.append)
    try:
        _approve(workspace, asked)
        assert chat.wait_for(asked["run_id"])["answer"] == "done"
    finally:
        watch(None)
    assert passed.index("outcome-kept") < passed.index("read-settled")
    assert len(desk.mails) == 1


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_a_call_that_was_decided_does_not_run_once_its_message_says_something_else(
    talk: Talk, workspace: Clearance, desk: Desk
) -> None:
    chat, asked = _asked_and_left(talk, workspace)
    _approve(workspace, asked)

    def change(agent: Agent) -> None:
        said = chat.messages("t")[-1]
        assert isinstance(said, AIMessage)
        other = [{**said.tool_calls[0], "args": {**MAIL, "to": "eve@example.com"}}]
        message = said.model_copy(update={"tool_calls": other})
        config: Any = {"configurable": {"thread_id": "t"}}
        agent.update_state(config, {"messages": [message]}, as_node="llm_call")

    reply = _go_on(workspace, desk, asked["run_id"], meanwhile=change)
    assert not desk.mails
    assert reply["pending_review"]["action_requests"][0]["args"]["to"] == "eve@example.com"


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_calls_that_keep_their_order_wait_for_the_graph(talk: Talk, workspace: Clearance, desk: Desk) -> None:
    tools = desk.tools()
    tools[0].metadata = {"clearance": {"parallel": False}}
    chat, _ = talk(calls(("get_weather", {"city": "Bern"}), ("send_email", MAIL)), "done", tools=tools)
    asked = chat.send_message("t", "look, then write")["pending_review"]
    assert asked is not None
    passed: list[str] = []
    watch(passed.append)
    try:
        _approve(workspace, asked)
        assert chat.wait_for(asked["run_id"])["answer"] == "done"
    finally:
        watch(None)
    assert passed.index("read-settled") < passed.index("outcome-kept")
    assert (desk.cities, len(desk.mails)) == (["Bern"], 1)


def test_a_call_that_was_cleared_does_not_run_for_somebody_who_was_disabled_since(
    talk: Talk, workspace: Clearance, desk: Desk
) -> None:
    _, asked = _asked_and_left(talk, workspace)
    with workspace.database.write() as tx:
        people.add(tx, Person("eva", "Eva", role=Role.REVIEWER), now=workspace.database.now(tx))
    workspace.gate.decide(asked["review_id"], [{"type": "approve"}], by="eva", version=asked["version"])
    with workspace.database.write() as tx:
        people.disable(tx, "ann")
    reply = _go_on(workspace, desk, asked["run_id"], meanwhile=lambda _: None)
    assert not desk.mails
    again = reply["pending_review"]
    assert again["review_id"] != asked["review_id"]
    assert again["action_requests"][0]["args"] == MAIL
