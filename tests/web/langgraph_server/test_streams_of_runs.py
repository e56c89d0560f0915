"""The frames of a run and the states of a thread, as the clients of the LangGraph server read them."""

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from tests.scripted import ScriptedModel, calls
from tests.web.langgraph_server.payments import FrontEnd, pays, recorded, wants
from tests.web.served import Served
from tests.web.talking import Gates, TalkingModel, frames, live, talks

pytestmark = pytest.mark.sqlite_by_day


def test_a_message_is_answered_in_values_that_hold_the_whole_thread(served: Served) -> None:
    pays(served.workspace, "Hello.")
    heard = FrontEnd(served).say()
    assert [heard[0].kind, heard[1].kind, heard[-2].kind, heard[-1].kind] == [
        "metadata", "values", "values", "end",
    ]  # fmt: skip
    first, last = heard[1].data["messages"], heard[-2].data["messages"]
    assert [(each["type"], each["content"]) for each in first] == [("human", "Pay the rent")]
    assert [(each["type"], each["content"]) for each in last] == [("human", "Pay the rent"), ("ai", "Hello.")]
    assert "__interrupt__" not in heard[-2].data


def test_a_run_that_waits_ends_its_stream_with_the_interrupt(served: Served) -> None:
    pays(served.workspace, wants())
    front = FrontEnd(served)
    [interrupt] = front.say()[-2].data["__interrupt__"]
    [review] = front.waiting()
    assert interrupt["id"] == f"{review['review_id']}@{review['version']}"
    question = interrupt["value"]
    [request], [config] = question["action_requests"], question["review_configs"]
    assert (request["name"], request["args"], request["arguments"]) == (
        "pay", review["calls"][0]["args"], review["calls"][0]["args"],
    )  # fmt: skip
    assert request["arguments_text"] == review["calls"][0]["arguments"]
    assert config["allowed_decisions"] == ["approve", "edit", "reject"]
    assert config["args_schema"]["properties"]["months"]["type"] == "integer"
    assert question["config"] == {
        "allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True,
    }  # fmt: skip
    assert {
        "reason",
        "message",
        "tool_call_id",
        "response_schema",
        "expires_at",
        "review_url",
    } <= question.keys()


def test_what_waits_says_on_which_page_it_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARANCE_PUBLIC_URL", "https://clearance.example.org/")
    with Served.open(f"sqlite:///{tmp_path}/c.db", home=tmp_path) as served:
        pays(served.workspace, wants())
        [interrupt] = FrontEnd(served).say()[-2].data["__interrupt__"]
    question = interrupt["value"]
    assert question["review_url"] == f"https://clearance.example.org/reviews/{question['review_id']}"


def test_several_calls_are_asked_in_no_form_that_shows_only_one(served: Served) -> None:
    pays(served.workspace, wants({"to": "ana"}, {"to": "ben"}))
    [interrupt] = FrontEnd(served).say()[-2].data["__interrupt__"]
    assert [each["args"]["to"] for each in interrupt["value"]["action_requests"]] == ["ana", "ben"]
    assert not {"action_request", "config"} & interrupt["value"].keys()


def test_a_thread_that_waits_says_so_wherever_it_is_looked_at(served: Served) -> None:
    pays(served.workspace, wants())
    front = FrontEnd(served)
    [interrupt] = front.say()[-2].data["__interrupt__"]
    state = front.history()
    assert state["next"] == ["human_review"]
    assert state["tasks"][0]["interrupts"] == [interrupt]
    assert state["checkpoint"]["checkpoint_id"] == interrupt["id"]
    url = "/langgraph/threads/t1/state"
    assert served.http.get(url, headers=front.headers).json() == state
    thread = front.show()
    assert (thread["status"], list(thread["interrupts"].values())) == ("interrupted", [[interrupt]])
    [found] = served.http.post(
        "/langgraph/threads/search",
        json={"metadata": {"graph_id": "chat"}, "limit": 10, "offset": 0, "status": "interrupted"},
        headers=front.headers,
    ).json()
    assert (found["thread_id"], found["interrupts"]) == ("t1", thread["interrupts"])
    assert found["values"]["messages"][0]["content"] == "Pay the rent"


@pytest.mark.parametrize(
    "asked",
    [{"status": "idle"}, {"status": "unheard of"}, {"metadata": {"graph_id": "other"}}, {"offset": 1}],
    ids=str,
)
def test_a_thread_is_not_found_by_what_it_is_not(served: Served, asked: dict[str, object]) -> None:
    pays(served.workspace, wants())
    front = FrontEnd(served)
    front.say()
    found = served.http.post("/langgraph/threads/search", json=asked, headers=front.headers)
    assert (found.status_code, found.json()) == (200, [])


def test_words_come_while_the_model_still_speaks(served: Served, gates: Gates) -> None:
    more: threading.Event = gates()
    talks(served.workspace, TalkingModel([["It was ", "a dark", more, " night."]]))
    front = FrontEnd(served)
    body = {**recorded("chat-ui-message"), "stream_mode": ["values", "messages-tuple", "messages"]}
    path = "/langgraph/threads/t1/runs/stream"
    with (
        live(served.workspace) as client,
        client.stream("POST", path, json=body, headers=front.headers) as answer,
    ):
        coming = frames(answer)
        chunk = next(each for each in coming if each.kind == "messages")
        [said, _] = cast(list[Any], chunk.data)
        assert (said["type"], said["content"]) == ("AIMessageChunk", "It was a dark")
        partial = next(coming)
        [said] = cast(list[Any], partial.data)
        assert (partial.kind, said["content"]) == ("messages/partial", "It was a dark")
        more.set()
        rest = list(coming)
    [whole] = next(cast(list[Any], each.data) for each in rest if each.kind == "messages/complete")
    assert whole["content"] == "It was a dark night."
    assert rest[-1].kind == "end"


def test_a_run_that_fails_ends_its_stream_with_an_error(served: Served) -> None:
    def fails(_: object) -> str:
        raise RuntimeError("no model today")

    pays(served.workspace, fails)
    front = FrontEnd(served)
    last = front.say()[-1]
    assert (last.kind, last.data["error"]) == ("error", "run_failed")
    assert front.show()["status"] == "error"
    # Who was told of it goes on from where it was.
    assert front.stream(recorded("chat-ui-message")).status_code == 200


def test_a_tool_that_needs_nobody_is_seen_with_its_result(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(("get_weather", {"city": "Bern"})), "Sunny."]))
    messages = FrontEnd(served).say()[-2].data["messages"]
    assert [each["type"] for each in messages] == ["human", "ai", "tool", "ai"]
    assert (messages[2]["name"], messages[2]["content"]) == ("get_weather", "sunny in Bern")


def test_a_run_is_told_without_a_stream_too(served: Served) -> None:
    pays(served.workspace, wants())
    front = FrontEnd(served)
    run = front.post("runs", recorded("chat-ui-message")).json()
    assert (run["thread_id"], run["assistant_id"]) == ("t1", "chat")
    assert run["status"] in ("pending", "running", "interrupted")
