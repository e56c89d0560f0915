"""The independent peer: LangGraph's own client at a live server, from the first message to the answer."""

from itertools import pairwise
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import ConflictError, UnprocessableEntityError
from langgraph_sdk.schema import Command

from tests.web.langgraph_server.payments import RENT, pays, wants
from tests.web.live import serving
from tests.web.served import Served

MESSAGE: dict[str, Any] = {"messages": [{"role": "user", "content": "Pay the rent"}]}


def test_the_client_of_langgraph_talks_waits_and_goes_on(served: Served) -> None:
    paid = pays(served.workspace, wants(), "Done.")
    key = served.key()["Authorization"].removeprefix("Bearer ")
    with (
        serving(served.workspace) as address,
        get_sync_client(url=f"{address}/langgraph", api_key=key) as client,
    ):
        thread = client.threads.create(graph_id="chat")["thread_id"]
        told: list[Any] = []
        heard = list(
            client.runs.stream(
                thread,
                "chat",
                input=MESSAGE,
                stream_mode=["values", "updates"],
                on_run_created=told.append,
            )
        )
        assert told == [{"run_id": heard[0].data["run_id"], "thread_id": thread}]
        assert [part.event for part in heard][-3:] == ["updates", "values", "end"]
        assert heard[-3].data["__interrupt__"] == heard[-2].data["__interrupt__"]
        state = client.threads.get_state(thread)
        assert state["next"] == ["human_review"]
        [interrupt] = state["tasks"][0]["interrupts"]
        assert client.threads.get(thread)["status"] == "interrupted"
        assert [each["thread_id"] for each in client.threads.search(status="interrupted")] == [thread]
        resume = {interrupt["id"]: {"decisions": [{"type": "approve"}]}}
        *_, last, end = client.runs.stream(thread, "chat", command={"resume": resume})
        assert (end.event, last.data["messages"][-1]["content"], paid) == ("end", "Done.", [RENT])
        assert "__interrupt__" not in last.data
        [newest] = client.threads.get_history(thread)
        assert newest["values"] == last.data
        assert newest["next"] == []
        with pytest.raises(ConflictError):
            list(client.runs.stream(thread, "chat", command={"resume": resume}))
        with pytest.raises(UnprocessableEntityError):
            client.threads.update_state(thread, {"messages": []})
    assert paid == [RENT]


def test_the_client_is_told_every_state_after_the_one_before(served: Served) -> None:
    pays(served.workspace, wants(), "Done.")
    key = served.key()["Authorization"].removeprefix("Bearer ")
    accept = Command(resume=[{"type": "accept", "args": None}])
    with (
        serving(served.workspace) as address,
        get_sync_client(url=f"{address}/langgraph", api_key=key) as client,
    ):
        heard = [
            *client.runs.stream("t9", "chat", input=MESSAGE),
            *client.runs.stream("t9", "chat", command=accept),
        ]
    seen = [part.data["messages"] for part in heard if part.event == "values"]
    ids = [[each["id"] for each in messages] for messages in seen]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(ids))
    assert [each["type"] for each in seen[-1]] == ["human", "ai", "tool", "ai"]
