"""Threads over HTTP: messages in, answers or reviews out, decisions taken."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from clearance.people import Role
from clearance.run import RunState
from clearance.store import runs
from tests.scripted import ScriptedModel, calls
from tests.web.live import LONG
from tests.web.served import Served
from tests.web.talking import Gates, live, talks

# By day: rows in their order, races, and one whole way through.
pytestmark = pytest.mark.sqlite_by_day(
    but=(
        "test_a_message_is_answered",
        "test_a_message_that_needs_people_is_answered_with_their_review",
        "test_a_thread_takes_one_message_at_a_time",
        "test_the_messages_are_those_that_are_kept",
        "test_a_decision_on_a_version_that_was_overtaken_is_a_conflict",
        "test_sixty_four_who_wait_keep_nobody_else_waiting",
    )
)

T1 = "/api/v1/threads/t1"
MAIL = ("send_email", {"to": "ana@example.org"})


def _waits(gate: threading.Event, then: str) -> ScriptedModel:
    return ScriptedModel([lambda _: then if gate.wait(LONG) else "in vain"])


def test_a_message_is_answered(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    answer = served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key())
    told = answer.json()
    assert answer.status_code == 200
    assert told == {
        "thread_id": "t1",
        "run_id": told["run_id"],
        "state": "done",
        "answer": "Good morning.",
        "pending_review": None,
    }


def test_the_one_who_asks_is_the_person_of_the_key(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    served.add("bob")
    told = served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key("bob")).json()
    with served.workspace.database.read() as tx:
        assert runs.run(tx, told["run_id"]).requester == "bob"


def test_a_message_that_needs_people_is_answered_with_their_review(served: Served) -> None:
    office = talks(served.workspace, ScriptedModel([calls(MAIL), "It is sent."]))
    told = served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key()).json()
    assert (told["state"], told["answer"]) == ("waiting", None)
    assert told["pending_review"]["action_requests"][0]["name"] == "send_email"
    assert office.mails == []
    decided = served.http.post(
        f"{T1}/review", json={"decisions": [{"type": "approve"}]}, headers=served.key()
    )
    assert (decided.status_code, decided.json()["answer"]) == (200, "It is sent.")
    assert office.mails == ["ana@example.org"]


@pytest.mark.parametrize("prefix", ["/api/v1/threads", "/chat"])
def test_the_pair_of_routes_is_there_under_both_names(served: Served, prefix: str) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL), "It is sent."]))
    waiting = served.http.post(f"{prefix}/t1/messages", json={"text": "Write her"}, headers=served.key())
    assert waiting.json()["pending_review"]["version"] == 1
    decided = served.http.post(
        f"{prefix}/t1/review", json={"decisions": [{"type": "approve"}]}, headers=served.key()
    )
    assert decided.json()["answer"] == "It is sent."


def test_a_run_that_takes_longer_is_told_by_its_id_and_goes_on(served: Served, gates: Gates) -> None:
    gate = gates()
    talks(served.workspace, _waits(gate, "At last."))
    answer = served.http.post(f"{T1}/messages", json={"text": "Hello", "wait": 0}, headers=served.key())
    told = answer.json()
    assert answer.status_code == 202
    assert told == {"thread_id": "t1", "run_id": told["run_id"], "state": told["state"]}
    assert told["state"] in ("queued", "running")
    gate.set()
    heard = served.http.get(f"/api/v1/runs/{told['run_id']}/stream", headers=served.key()).text
    assert "event: answer" in heard


def test_a_thread_takes_one_message_at_a_time(served: Served, gates: Gates) -> None:
    talks(served.workspace, _waits(gates(), "At last."))
    first = served.http.post(f"{T1}/messages", json={"text": "One", "wait": 0}, headers=served.key()).json()
    second = served.http.post(f"{T1}/messages", json={"text": "Two"}, headers=served.key())
    assert second.status_code == 409
    assert (second.json()["code"], second.json()["run_id"]) == ("thread_busy", first["run_id"])


def test_a_message_while_a_review_waits_is_refused_and_decides_nothing(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL)]))
    told = served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key()).json()
    refused = served.http.post(f"{T1}/messages", json={"text": "approve"}, headers=served.key())
    assert (refused.status_code, refused.json()["code"]) == (409, "review_pending")
    shown = served.http.get(T1, headers=served.key()).json()
    assert shown["pending_review"] == told["pending_review"]


def test_a_run_that_fails_is_a_problem_that_names_it(served: Served) -> None:
    def fails(_: object) -> str:
        raise RuntimeError("a bug of the model")

    talks(served.workspace, ScriptedModel([fails, "Better now."]))
    failed = served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key())
    assert (failed.status_code, failed.json()["code"]) == (500, "run_failed")
    assert served.http.get(T1, headers=served.key()).json()["run"]["run_id"] == failed.json()["run_id"]
    again = served.http.post(f"{T1}/messages", json={"text": "Again"}, headers=served.key())
    assert again.json()["answer"] == "Better now."


def test_a_thread_tells_how_it_stands(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL), "It is sent."]))
    served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key())
    waiting = served.http.get(T1, headers=served.key()).json()
    assert (waiting["state"], waiting["program"]) == ("waiting", "chat")
    assert waiting["run"]["message"] == "Write her"
    body = {
        "decisions": [{"type": "approve"}],
        "review_id": waiting["pending_review"]["review_id"],
        "version": waiting["pending_review"]["version"],
    }
    served.http.post(f"{T1}/review", json=body, headers=served.key())
    idle = served.http.get(T1, headers=served.key()).json()
    assert (idle["state"], idle["run"]["state"], idle["pending_review"]) == ("idle", "done", None)


def test_the_messages_are_those_that_are_kept(served: Served) -> None:
    account = 2**53 + 1
    wanted = ("send_email", {"to": "ana@example.org", "account": account})
    talks(served.workspace, ScriptedModel([calls(wanted, text="I write to her."), "It is sent."]))
    told = served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key()).json()
    served.http.post(f"{T1}/review", json={"decisions": [{"type": "approve"}]}, headers=served.key())
    found = served.http.get(f"{T1}/messages", headers=served.key()).json()["messages"]
    assert [(each["role"], each["text"]) for each in found] == [
        ("user", "Write her"),
        ("assistant", "I write to her."),
        ("tool", f"sent to ana@example.org for {account}"),
        ("assistant", "It is sent."),
    ]
    assert {each["run_id"] for each in found} == {told["run_id"]}
    assert found[1]["tool_calls"][0]["args"]["account"] == account
    assert f'"account":{account}' in found[1]["tool_calls"][0]["arguments"]
    assert (found[2]["tool_call_id"], found[2]["state"]) == (found[1]["tool_calls"][0]["id"], "executed")


def test_a_new_thread_has_an_id_that_nobody_has(served: Served) -> None:
    ids = {served.http.post("/api/v1/threads", headers=served.key()).json()["thread_id"] for _ in range(3)}
    assert len(ids) == 3
    for thread_id in ids:
        assert served.http.get(f"/api/v1/threads/{thread_id}", headers=served.key()).status_code == 404


def test_an_id_with_a_slash_is_an_id(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    path = "/api/v1/threads/team/t1"
    assert served.http.post(f"{path}/messages", json={"text": "Hello"}, headers=served.key()).is_success
    assert served.http.get(path, headers=served.key()).json()["thread_id"] == "team/t1"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "/text"),
        ({"text": 7}, "/text"),
        ({"text": "Hello", "wait": 61}, "/wait"),
        ({"text": "Hello", "wait": -1}, "/wait"),
        ({"text": "Hello", "wait": "long"}, "/wait"),
        ({"text": "Hello", "by": "bob"}, "/by"),
        ({"text": "Hello", "messages": []}, "/messages"),
        ({"text": "Hello", "program": "unknown"}, "/program"),
    ],
)
def test_a_message_that_cannot_be_taken_says_where(
    served: Served, body: dict[str, object], place: str
) -> None:
    talks(served.workspace, ScriptedModel([]))
    refused = served.http.post(f"{T1}/messages", json=body, headers=served.key())
    assert refused.status_code == 422
    assert [fault["pointer"] for fault in refused.json()["errors"]] == [place]
    assert served.http.get(T1, headers=served.key()).status_code == 404


@pytest.mark.parametrize("text", ["", "  \n", "nul \0 inside"])
def test_a_text_that_cannot_be_kept_is_refused(served: Served, text: str) -> None:
    talks(served.workspace, ScriptedModel([]))
    refused = served.http.post(f"{T1}/messages", json={"text": text}, headers=served.key())
    assert refused.status_code == 422
    assert served.http.get(T1, headers=served.key()).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"decisions": []}, 422, "invalid_review_decision"),
        ({"decisions": [{"type": "yes"}]}, 422, "invalid_review_decision"),
        ({"decisions": [{"type": "approve"}] * 2}, 422, "invalid_review_decision"),
        ({"decisions": "approve"}, 422, "invalid_input"),
        ({"decisions": [{"type": "approve"}], "version": 1}, 422, "invalid_input"),
        ({"decisions": [{"type": "approve"}], "review_id": "other/1/1"}, 404, "not_found"),
    ],
)
def test_decisions_that_do_not_fit_change_nothing(
    served: Served, body: dict[str, object], status: int, code: str
) -> None:
    office = talks(served.workspace, ScriptedModel([calls(MAIL), "It is sent."]))
    served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key())
    refused = served.http.post(f"{T1}/review", json=body, headers=served.key())
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert served.http.get(T1, headers=served.key()).json()["state"] == "waiting"
    assert office.mails == []


def test_a_review_of_another_thread_is_not_decided_here(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL), calls(MAIL)]))
    for thread in ("t1", "t2"):
        served.http.post(
            f"/api/v1/threads/{thread}/messages", json={"text": "Write her"}, headers=served.key()
        )
    other = served.http.get("/api/v1/threads/t2", headers=served.key()).json()["pending_review"]
    body = {"decisions": [{"type": "approve"}], "review_id": other["review_id"]}
    assert served.http.post(f"{T1}/review", json=body, headers=served.key()).status_code == 404


def test_a_decision_on_a_version_that_was_overtaken_is_a_conflict(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL), "It is sent."]))
    told = served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key()).json()
    body = {
        "decisions": [{"type": "approve"}],
        "review_id": told["pending_review"]["review_id"],
        "version": 7,
    }
    refused = served.http.post(f"{T1}/review", json=body, headers=served.key())
    assert (refused.status_code, refused.json()["code"]) == (409, "review_conflict")


def test_a_thread_that_waits_for_nothing_has_nothing_to_decide(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key())
    refused = served.http.post(
        f"{T1}/review", json={"decisions": [{"type": "approve"}]}, headers=served.key()
    )
    assert (refused.status_code, refused.json()["code"]) == (404, "no_pending_review")


def test_an_agent_may_ask_and_never_decide(served: Served) -> None:
    office = talks(served.workspace, ScriptedModel([calls(MAIL)]))
    agent = served.add_agent("bot")
    told = served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key(agent)).json()
    assert told["state"] == "waiting"
    refused = served.http.post(
        f"{T1}/review", json={"decisions": [{"type": "approve"}]}, headers=served.key(agent)
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert office.mails == []


def test_a_viewer_decides_nothing(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(MAIL)]))
    served.add("eve", role=Role.VIEWER)
    served.http.post(f"{T1}/messages", json={"text": "Write her"}, headers=served.key())
    refused = served.http.post(
        f"{T1}/review", json={"decisions": [{"type": "approve"}]}, headers=served.key("eve")
    )
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", T1, None),
        ("GET", f"{T1}/messages", None),
        ("POST", f"{T1}/messages", {"text": "Hello"}),
        ("POST", f"{T1}/review", {"decisions": [{"type": "approve"}]}),
        ("POST", "/chat/t1/messages", {"text": "Hello"}),
        ("GET", "/api/v1/runs/{run}/stream", None),
    ],
)
def test_an_agent_sees_no_thread_of_others(
    served: Served, method: str, path: str, body: dict[str, object] | None
) -> None:
    talks(served.workspace, ScriptedModel(["Good morning.", "Good evening."]))
    told = served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key()).json()
    agent = served.add_agent("bot")
    refused = served.http.request(
        method, path.format(run=told["run_id"]), json=body, headers=served.key(agent)
    )
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    with served.workspace.database.read() as tx:
        assert len(runs.list_runs(tx, thread_id="t1")) == 1


def test_an_agent_sees_its_own_thread(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    agent = served.add_agent("bot")
    told = served.http.post(f"{T1}/messages", json={"text": "Hello"}, headers=served.key(agent)).json()
    assert served.http.get(T1, headers=served.key(agent)).json()["run"]["run_id"] == told["run_id"]
    assert len(served.http.get(f"{T1}/messages", headers=served.key(agent)).json()["messages"]) == 2


@pytest.mark.parametrize("path", [T1, f"{T1}/messages", "/api/v1/runs/none/stream"])
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    assert served.http.get(path, headers=served.key()).status_code == 404


def test_sixty_four_who_wait_keep_nobody_else_waiting(served: Served, gates: Gates) -> None:
    gate = gates()
    talks(served.workspace, ScriptedModel([lambda _: "At last." if gate.wait(LONG) else ""] * 64))
    key = served.key()

    def say(client: httpx.Client, number: int) -> httpx.Response:
        return client.post(f"/api/v1/threads/t{number}/messages", json={"text": "Hello"}, headers=key)

    with live(served.workspace) as client, ThreadPoolExecutor(64) as pool:
        waiting = [pool.submit(say, client, number) for number in range(64)]
        _until_kept(served, 64)
        assert client.get("/healthz", timeout=LONG / 2).status_code == 200
        assert client.get("/api/v1/threads/t7", headers=key, timeout=LONG / 2).status_code == 200
        assert not any(each.done() for each in waiting)
        gate.set()
        answers = [each.result(LONG) for each in waiting]
    assert {(each.status_code, each.json()["answer"]) for each in answers} == {(200, "At last.")}


def _until_kept(served: Served, count: int) -> None:
    found = 0
    while found < count:
        with served.workspace.database.read() as tx:
            found = len(runs.list_runs(tx, states=(RunState.QUEUED, RunState.RUNNING), limit=count))
