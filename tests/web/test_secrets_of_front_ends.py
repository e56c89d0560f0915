"""A secret in a call's arguments, at the doors for front ends of others and on the pages: shown nowhere."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.people import SessionLimits
from clearance.signing_in import Client, start_session
from clearance.store import people
from tests.scripted import ScriptedModel, calls
from tests.web.agui.events import body_of, events_of, interrupts_of, post, resumed, user
from tests.web.langgraph_server.payments import FrontEnd
from tests.web.served import OWNER, Served
from tests.web.test_secrets import ARGUMENTS, MARK, PASSWORD, POLICY, Bank

pytestmark = pytest.mark.sqlite_by_day

RAN = {**ARGUMENTS, "name": "bob"}
LOOKS = {"thread": "/langgraph/threads/t1", "state": "/langgraph/threads/t1/state"}
ASKS = {"history": "/langgraph/threads/t1/history", "search": "/langgraph/threads/search"}
WAITING = ("/", "/reviews/{}", "/reviews/{}?edit=1", "/reviews/{}?raw=1", "/reviews/{}/moved?version=0")


@pytest.fixture
def bank(served: Served) -> Bank:
    """A chat whose model says the secret aloud, wants the call, and hears it once more from the tool."""
    bank = Bank(served)
    model = ScriptedModel([calls(("open_account", ARGUMENTS), text=f"I take {PASSWORD}."), "Opened."])
    agent = create_reviewed_agent(model, bank.tools(), policy=POLICY, using=served.workspace)
    ReviewedChat(agent)
    return bank


def test_ag_ui_shows_no_secret_while_a_call_waits_nor_once_it_ran(bank: Bank) -> None:
    asked = post(bank.served, body_of(user("Open an account.")))
    [interrupt] = interrupts_of(events_of(asked))
    assert interrupt.metadata is not None
    edit = {"type": "edit", "edited_action": {"args": {**interrupt.metadata["args"], "name": "bob"}}}
    ran = post(bank.served, body_of(run="run-2", resume=[resumed(interrupt, edit)]))
    events_of(ran)
    assert bank.given == [RAN]
    assert [text for text in (asked.text, ran.text) if MARK in text] == []
    assert "opened with ••••" in ran.text


def test_ag_ui_refuses_an_edit_without_repeating_it(bank: Bank) -> None:
    [interrupt] = interrupts_of(events_of(post(bank.served, body_of(user("Open an account.")))))
    edit = {"type": "edit", "edited_action": {"args": {**ARGUMENTS, "password": MARK}}}
    refused = post(bank.served, body_of(run="run-2", resume=[resumed(interrupt, edit)]))
    assert refused.status_code == 422
    assert MARK not in refused.text


def _looks(front: FrontEnd) -> Iterator[str]:
    """Yield all that the routes of the LangGraph server answer about the thread."""
    http = front.served.http
    for path in LOOKS.values():
        yield http.get(path, headers=front.headers).text
    for path in ASKS.values():
        yield http.post(path, json={}, headers=front.headers).text


@pytest.mark.parametrize("modes", [["values"], ["updates", "messages"], ["messages-tuple", "values"]])
def test_the_routes_of_the_langgraph_server_show_no_secret(bank: Bank, modes: list[str]) -> None:
    front = FrontEnd(bank.served)
    said = {"messages": [{"type": "human", "content": "Open an account."}]}
    asked = front.stream({"assistant_id": "chat", "input": said, "stream_mode": modes})
    told = [asked.text, *_looks(front)]
    shown = json.loads(told[2])["tasks"][0]["interrupts"][0]["value"]["action_requests"][0]["args"]
    edit: dict[str, Any] = {"type": "edit", "edited_action": {"args": {**shown, "name": "bob"}}}
    resume = {"command": {"resume": {"decisions": [edit]}}, "assistant_id": "chat", "stream_mode": modes}
    ran = front.stream(resume)
    told += [ran.text, *_looks(front)]
    assert bank.given == [RAN], ran.text
    assert [text for text in told if MARK in text] == []


def test_the_pages_show_no_secret(bank: Bank) -> None:
    post(bank.served, body_of(user("Open an account.")))
    [review] = bank.served.http.get("/api/v1/reviews", headers=bank.served.key()).json()["reviews"]
    http, id = bank.served.http, review["review_id"]
    headers = {"Cookie": f"clearance={_session(bank.served)}", "Host": "127.0.0.1", "Accept": "text/html"}
    told = [http.get(path.format(id), headers=headers) for path in WAITING]
    bank.review_id = id
    assert bank.decide().status_code == 200
    told += [http.get(path.format(id), headers=headers) for path in WAITING]
    assert [answer.status_code for answer in told] == [200] * len(told)
    assert [str(answer.url) for answer in told if MARK in answer.text] == []
    assert "(secret, 21 characters)" in told[1].text


def _session(served: Served) -> str:
    database = served.workspace.database
    with database.write() as tx:
        person = people.person(tx, OWNER)
        client, limits = Client("127.0.0.1"), SessionLimits()
        return start_session(database, tx, person, client=client, limits=limits, how="password").token
