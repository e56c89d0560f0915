"""What a run says, as it says it: in pieces, begun anew where need be, and gone when the run is over."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from langchain_core.messages import AIMessageChunk
from sqlalchemy import text

import clearance
from clearance.keyring import revoke_key
from tests.scripted import ScriptedModel, calls
from tests.web.live import serving
from tests.web.served import Served
from tests.web.talking import (
    PATIENCE,
    Frame,
    Gates,
    Spoken,
    TalkingModel,
    calling,
    frames,
    kept,
    live,
    start,
    talks,
    text_after_restart,
    until,
)

pytestmark = pytest.mark.sqlite_by_day

ROOT = Path(__file__).parents[2]
STREAM = {"Accept": "text/event-stream"}
MESSAGES = "/api/v1/threads/t1/messages"
REVIEW = "/api/v1/threads/t1/review"
MAIL = '{"to": "ana@example.org"}'


def _heard(answer: Spoken) -> list[Frame]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    return list(frames(answer))


@contextmanager
def _another_worker(served: Served, model: TalkingModel) -> Iterator[None]:
    """Have a worker that opened the workspace anew go on, as another process does."""
    url = served.workspace.database.url.render_as_string(hide_password=False)
    with clearance.open(url, home=served.workspace.home, person="ann", worker=False) as opened:
        talks(opened, model)
        opened.worker.start()
        yield


def test_a_text_comes_while_the_model_still_speaks(served: Served, gates: Gates) -> None:
    more = gates()
    talks(served.workspace, TalkingModel([["It was ", "a dark", more, " and stormy night."]]))
    with (
        live(served.workspace) as client,
        client.stream("POST", MESSAGES, json={"text": "Tell"}, headers=served.key() | STREAM) as answer,
    ):
        coming = frames(answer)
        assert next(coming).kind == "run"
        first = next(coming)
        assert (first.kind, first.data["text"]) == ("token", "It was a dark")
        more.set()
        rest = list(coming)
    assert rest[-1].kind == "answer"
    assert rest[-1].data["answer"] == "It was a dark and stormy night."
    assert {frame.kind for frame in rest[:-1]} <= {"token"}


def test_a_stream_begins_with_the_ids_and_ends_with_one_last_frame(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    answer = served.http.post(MESSAGES, json={"text": "Hello"}, headers=served.key() | STREAM)
    heard = _heard(answer)
    assert [frame.kind for frame in heard] == ["run", "answer"]
    assert heard[0].data["thread_id"] == "t1"
    assert heard[1].data == {
        "thread_id": "t1",
        "run_id": heard[0].data["run_id"],
        "state": "done",
        "answer": "Good morning.",
    }


def test_a_review_ends_the_stream_and_its_decision_begins_another(served: Served) -> None:
    talks(served.workspace, TalkingModel([["I write.", calling("send_email", MAIL)], ["It is ", "sent."]]))
    key = served.key() | STREAM
    heard = _heard(served.http.post(MESSAGES, json={"text": "Write her"}, headers=key))
    assert heard[-1].kind == "review"
    assert heard[-1].data["action_requests"][0]["args"] == {"to": "ana@example.org"}
    body = {"decisions": [{"type": "approve"}], "review_id": heard[-1].data["review_id"]}
    after = _heard(served.http.post(REVIEW, json=body, headers=key))
    assert (after[-1].kind, after[-1].data["answer"]) == ("answer", "It is sent.")


def test_a_run_that_fails_ends_the_stream_with_its_reason(served: Served) -> None:
    talks(served.workspace, TalkingModel([["It was ", RuntimeError("a bug of the model")]]))
    heard = _heard(served.http.post(MESSAGES, json={"text": "Tell"}, headers=served.key() | STREAM))
    assert (heard[-1].kind, heard[-1].data["state"]) == ("failed", "failed")
    assert heard[-1].data["reason"] == "RuntimeError"


def test_who_attaches_hears_what_was_said_and_what_comes(served: Served, gates: Gates) -> None:
    more = gates()
    talks(served.workspace, TalkingModel([["It was ", "a dark", more, " night."]]))
    run_id = start(served)
    until(lambda: kept(served))
    path = f"/api/v1/runs/{run_id}/stream"
    with live(served.workspace) as client, client.stream("GET", path, headers=served.key()) as answer:
        coming = frames(answer)
        heard = [next(coming), next(coming)]
        assert heard[1].data["text"] == "It was a dark"
        more.set()
        heard += coming
    assert heard[-1].data["answer"] == "It was a dark night."


def test_who_comes_again_hears_only_what_is_new(served: Served, gates: Gates) -> None:
    more, end = gates(), gates()
    talks(served.workspace, TalkingModel([["It was ", more, "a dark", end, " night."]]))
    run_id = start(served)
    path = f"/api/v1/runs/{run_id}/stream"
    with live(served.workspace) as client:
        with client.stream("GET", path, headers=served.key()) as answer:
            coming = frames(answer)
            assert next(coming).kind == "run"
            seen = next(coming)
            assert seen.data["text"] == "It was "
        more.set()
        until(lambda: kept(served) == 2)
        with client.stream("GET", path, headers=served.key() | {"Last-Event-ID": seen.id}) as answer:
            coming = frames(answer)
            assert [next(coming).kind, next(coming).data["text"]] == ["run", "a dark"]
            end.set()
            assert list(coming)[-1].kind == "answer"


def test_of_an_ended_run_there_is_nothing_more_to_come(served: Served) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    heard = _heard(served.http.post(MESSAGES, json={"text": "Hello"}, headers=served.key() | STREAM))
    path = f"/api/v1/runs/{heard[0].data['run_id']}/stream"
    assert [frame.kind for frame in _heard(served.http.get(path, headers=served.key()))] == ["run", "answer"]
    again = served.http.get(path, headers=served.key() | {"Last-Event-ID": heard[-1].id})
    assert (again.status_code, again.text) == (204, "")


def test_who_knows_of_a_review_waits_for_what_comes_after_it(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(("send_email", {"to": "a@b.example"})), "It is sent."]))
    told = served.http.post(MESSAGES, json={"text": "Write"}, headers=served.key()).json()
    path = f"/api/v1/runs/{told['run_id']}/stream"
    with live(served.workspace) as client:
        with client.stream("GET", path, headers=served.key()) as answer:
            review = list(frames(answer))[-1]
        assert review.kind == "review"
        with client.stream("GET", path, headers=served.key() | {"Last-Event-ID": review.id}) as answer:
            coming = frames(answer)
            assert next(coming).kind == "run"
            client.post(REVIEW, json={"decisions": [{"type": "approve"}]}, headers=served.key())
            assert [frame.kind for frame in coming] == ["answer"]


@pytest.mark.parametrize("place", ["x", "0", "1-", "-1-2", "9" * 40, "over-"])
def test_an_id_that_is_no_place_begins_at_the_beginning(served: Served, place: str) -> None:
    talks(served.workspace, ScriptedModel(["Good morning."]))
    told = served.http.post(MESSAGES, json={"text": "Hello"}, headers=served.key()).json()
    path = f"/api/v1/runs/{told['run_id']}/stream"
    heard = _heard(served.http.get(path, headers=served.key() | {"Last-Event-ID": place}))
    assert [frame.kind for frame in heard] == ["run", "answer"]


def test_each_message_of_a_turn_begins_a_new_text(served: Served, gates: Gates) -> None:
    talk = TalkingModel([
        ["Let me ", gates(), "look.", calling("get_weather", '{"city": "Oslo"}')],
        ["Sunny ", gates(), "there."],
    ])  # fmt: skip
    talks(served.workspace, talk)
    with (
        live(served.workspace) as client,
        client.stream("POST", MESSAGES, json={"text": "Weather?"}, headers=served.key() | STREAM) as answer,
    ):
        heard = []
        for frame in frames(answer):
            heard.append(frame)
            if frame.kind == "token":
                gates.made[sum(each.kind == "restart" for each in heard)].set()
    kinds = [frame.kind for frame in heard]
    assert (kinds.count("restart"), kinds[-1]) == (1, "answer")
    assert "Sunny there.".startswith(text_after_restart(heard[1:-1]))
    assert heard[-1].data["answer"] == "Sunny there."


def test_a_worker_that_dies_in_mid_speech_makes_the_text_begin_anew(served: Served, gates: Gates) -> None:
    workspace = served.workspace
    workspace.worker.stop()
    talks(workspace, TalkingModel([]))
    url = workspace.database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.web.talking", url, str(workspace.home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "ready\n"
            run_id = start(served, "Tell")
            path = f"/api/v1/runs/{run_id}/stream"
            with live(workspace) as client, client.stream("GET", path, headers=served.key()) as answer:
                coming = frames(answer)
                heard = [next(coming), next(coming)]
                assert heard[1].data["text"] == "It was a dark "
                other.kill()
                more = gates()
                with _another_worker(served, TalkingModel([["Once upon", more, " a time."]] * 9)):
                    while text_after_restart(heard) != "Once upon":
                        heard.append(next(coming))
                    more.set()
                    heard += coming
        finally:
            other.kill()
    kinds = [frame.kind for frame in heard]
    assert kinds[-1] == "answer"
    assert heard[kinds.index("restart")].data["attempt"] > heard[1].data["attempt"]
    assert text_after_restart(heard[1:-1]) == "Once upon"
    assert heard[-1].data["answer"] == "Once upon a time."


def test_a_text_that_broke_off_begins_anew(served: Served, gates: Gates) -> None:
    broken, more = gates(), gates()
    talks(
        served.workspace,
        TalkingModel([["It w", broken, httpx.ReadError("gone")], ["Once upon", more, " a time."]]),
    )
    with (
        live(served.workspace) as client,
        client.stream("POST", MESSAGES, json={"text": "Tell"}, headers=served.key() | STREAM) as answer,
    ):
        coming = frames(answer)
        heard = [next(coming), next(coming)]
        assert heard[1].data["text"] == "It w"
        broken.set()
        while text_after_restart(heard) != "Once upon":
            heard.append(next(coming))
        more.set()
        heard += coming
    restarts = [frame for frame in heard if frame.kind == "restart"]
    assert [frame.data["attempt"] for frame in restarts] == [heard[1].data["attempt"]]
    assert heard[-1].data["answer"] == "Once upon a time."


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter"])
def test_a_call_that_was_cut_off_is_never_asked_about(served: Served, reason: str) -> None:
    cut = AIMessageChunk(content="", response_metadata={"finish_reason": reason})
    model = TalkingModel([[calling("send_email", '{"to": "ana@example.org", "account": 1'), cut], ["Sorry."]])
    office = talks(served.workspace, model)
    heard = _heard(served.http.post(MESSAGES, json={"text": "Pay"}, headers=served.key() | STREAM))
    assert (heard[-1].kind, heard[-1].data["answer"]) == ("answer", "Sorry.")
    assert office.mails == []


def test_a_call_comes_whole_out_of_its_pieces(served: Served) -> None:
    pieces = ['{"to": "ana@exa', 'mple.org", "acc', 'ount": 12', "0000}"]
    chunks = [calling("send_email" if n == 0 else "", each) for n, each in enumerate(pieces)]
    talks(served.workspace, TalkingModel([chunks, ["It is sent."]]))
    told = served.http.post(MESSAGES, json={"text": "Pay"}, headers=served.key()).json()
    assert told["pending_review"]["action_requests"][0]["args"] == {
        "to": "ana@example.org",
        "account": 120000,
    }


def test_nothing_of_what_was_said_is_left_when_the_run_is_over(served: Served, gates: Gates) -> None:
    more = gates()
    talks(served.workspace, TalkingModel([["It was ", more, "night."]]))
    run_id = start(served)
    until(lambda: kept(served))
    more.set()
    heard = _heard(served.http.get(f"/api/v1/runs/{run_id}/stream", headers=served.key()))
    assert heard[-1].data["answer"] == "It was night."
    assert kept(served) == 0


_REFUSES = {
    "sqlite": "CREATE TRIGGER broken BEFORE INSERT ON stream BEGIN SELECT RAISE(ABORT, 'no'); END",
    "postgresql": "ALTER TABLE stream ADD CHECK (n < 0)",
}


def test_a_stream_that_cannot_be_written_fails_no_run(
    served: Served, gates: Gates, database_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="clearance.adapters.speaking")
    with served.workspace.database.write() as tx:
        tx.execute(text(_REFUSES[database_kind]))
    more = gates()
    talks(served.workspace, TalkingModel([["It was ", more, "night."]]))
    run_id = start(served)
    until(lambda: "is not passed on" in caplog.text)
    more.set()
    heard = _heard(served.http.get(f"/api/v1/runs/{run_id}/stream", headers=served.key()))
    assert [frame.kind for frame in heard] == ["run", "answer"]


def test_a_client_that_goes_away_ends_its_stream_and_not_the_run(served: Served, gates: Gates) -> None:
    more = gates()
    talks(served.workspace, TalkingModel([["It was ", more, "night."]]))
    run_id = start(served)
    path = f"/api/v1/runs/{run_id}/stream"
    with live(served.workspace) as client:
        for _ in range(12):  # more than one person may have open
            until(lambda: _opens(client, path, served.key()))
        more.set()
        assert list(frames(client.get(path, headers=served.key())))[-1].kind == "answer"


def _opens(client: httpx.Client, path: str, headers: dict[str, str]) -> bool:
    with client.stream("GET", path, headers=headers) as answer:
        return answer.status_code == 200 and next(frames(answer)).kind == "run"


def test_one_person_has_a_few_streams_open_and_no_more(served: Served, gates: Gates) -> None:
    talks(served.workspace, TalkingModel([["It was ", gates(), "night."]]))
    path = f"/api/v1/runs/{start(served)}/stream"
    with live(served.workspace) as client, ExitStack() as opened:
        coming = [
            frames(opened.enter_context(client.stream("GET", path, headers=served.key()))) for _ in range(8)
        ]
        assert {next(each).kind for each in coming} == {"run"}
        assert client.get(path, headers=served.key()).status_code == 429
        refused = client.post(
            "/api/v1/threads/t2/messages", json={"text": "Hello"}, headers=served.key() | STREAM
        )
        assert refused.status_code == 429
        assert client.get("/api/v1/threads/t2", headers=served.key()).status_code == 404
        gates.made[0].set()


def test_a_stream_ends_when_its_key_is_revoked(served: Served, gates: Gates) -> None:
    talks(served.workspace, TalkingModel([["It was ", gates(), "night.", gates()]]))
    path = f"/api/v1/runs/{start(served)}/stream"
    with live(served.workspace) as client, client.stream("GET", path, headers=served.key()) as answer:
        coming = frames(answer)
        assert [next(coming).kind, next(coming).kind] == ["run", "token"]
        revoke_key(served.workspace.database, "key of ann", by="ann")
        gates.made[0].set()
        assert list(coming) == []


def test_a_stream_ends_when_the_server_is_told_to_end(served: Served, gates: Gates) -> None:
    talks(served.workspace, TalkingModel([["It was ", gates(), "night."]]))
    path = f"/api/v1/runs/{start(served)}/stream"
    with httpx.Client(timeout=PATIENCE) as client, ExitStack() as opened:
        with serving(served.workspace) as address:
            answer = client.stream("GET", address + path, headers=served.key())
            coming = frames(opened.enter_context(answer))
            assert [next(coming).kind, next(coming).kind] == ["run", "token"]
        assert list(coming) == []
