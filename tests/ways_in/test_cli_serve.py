"""The command `serve`: the API in front of a worker, on loopback, and its end however it comes."""

import json
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from clearance.assembly import open_workspace
from clearance.cli.options import SINGLE_USER
from clearance.keyring import add_agent, add_key, new_credential
from tests.ways_in.desk import PERSON, Desk, error
from tests.ways_in.terminal import LONG, command

CLIENTS, TURNS = 64, 3


class Server:
    """`clearance serve --json` as a process."""

    def __init__(self, home: Path, *words: str) -> None:
        line = command(home, "--person", PERSON, "--json", "serve", "--port", "0", *words)
        self._log = (home.parent / "log").open("w+")
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.url = str(self.wait_for("serving")["url"])

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the next event of this name."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found["event"] == event:
                return found
        raise AssertionError(f"{event} never came: {self.errors()}")

    def errors(self) -> str:
        """Return what it wrote to standard error."""
        self._log.seek(0)
        return self._log.read()

    def end(self, how: signal.Signals) -> int:
        """Tell it to end, and return its exit code; fail when it waits for anybody."""
        self.process.send_signal(how)
        return self.process.wait(LONG)

    def close(self) -> None:
        """Kill it, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


@contextmanager
def _serving(home: Path, *words: str) -> Iterator[Server]:
    server = Server(home, *words)
    try:
        yield server
    finally:
        server.close()


def _key(home: Path, *, agent: str | None = None) -> dict[str, str]:
    made = new_credential()
    with open_workspace(home=home, person=PERSON, worker=False) as c:
        owner = PERSON if agent is None else add_agent(c.database, agent, behind=PERSON, by=PERSON).id
        add_key(c.database, f"of {owner}", person=owner, by=PERSON, made=made)
    return {"Authorization": f"Bearer {made.text}"}


def test_without_a_model_it_refuses_as_the_worker_does_and_makes_nothing(desk: Desk) -> None:
    done = desk.run("serve", "--port", "0", "--json")
    assert (done.exit_code, error(done)["error"]) == (12, "settings")
    assert "No model is set" in error(done)["message"]
    assert not desk.home.exists()


def test_a_port_that_is_taken_is_one_sentence(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = desk.run("serve", "--no-worker", "--port", port)
    assert done.exit_code == 12
    assert done.stderr == (
        f"Port {port} of 127.0.0.1 cannot be listened on: another process has it. "
        "Name another one with --port.\n"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "not an address"])
def test_an_address_that_is_not_ours_is_one_sentence(desk: Desk, host: str) -> None:
    done = desk.run("serve", "--no-worker", "--host", host)
    assert (done.exit_code, done.stderr.count("\n")) == (12, 1)


def test_it_says_how_a_key_is_made_as_long_as_there_is_none(desk: Desk) -> None:
    words = command(desk.home, "--person", PERSON, "serve", "--no-worker", "--port", "0")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)]
    process.terminate()
    process.communicate(timeout=LONG)
    assert SINGLE_USER in lines.pop(0)
    assert "at http://127.0.0.1:" in lines[0]
    assert f"keys add NAME --person {PERSON}" in lines[1]


def test_a_message_is_answered_by_the_worker_beside_it_and_both_end_when_told(desk: Desk) -> None:
    with _serving(desk.home, "--model", "offline") as server:
        worker = int(server.wait_for("ready")["pid"])
        headers = _key(desk.home)
        answer = httpx.post(
            f"{server.url}/api/v1/threads/t1/messages",
            json={"text": "hello", "wait": 30},
            headers=headers,
            timeout=LONG,
        )
        assert answer.status_code == 200, answer.text
        assert server.end(signal.SIGTERM) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_though_streams_are_open(desk: Desk, how: signal.Signals) -> None:
    with _serving(desk.home, "--no-worker") as server:
        headers = _key(desk.home)
        ended = threading.Event()
        opened = threading.Semaphore(0)

        def listen() -> None:
            with (
                suppress(httpx.HTTPError),
                httpx.Client(timeout=LONG) as http,
                http.stream("GET", f"{server.url}/api/v1/events", headers=headers) as answer,
            ):
                for line in answer.iter_lines():
                    if line.startswith("event: hello"):
                        opened.release()
            ended.set()

        listener = threading.Thread(target=listen)
        listener.start()
        assert opened.acquire(timeout=LONG)
        # A stream ends with its client alone: a server that waited for that would not end at all.
        assert server.end(how) == 0
        assert ended.wait(LONG)
        listener.join()


def test_64_clients_ask_and_decide_at_once_and_nobody_is_turned_away(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AGENT_CALLS", "AGENT_SAME_CALLS", "PERSON_DECISIONS"):
        monkeypatch.setenv(f"CLEARANCE_{name}", "0")  # this flood is wanted
    with _serving(desk.home, "--no-worker") as server:
        person, agent = _key(desk.home), _key(desk.home, agent="bot")
        answers: Counter[int] = Counter()
        lock = threading.Lock()

        def client(number: int) -> None:
            with httpx.Client(base_url=f"{server.url}/api/v1", timeout=LONG) as http:
                for turn in range(TURNS):
                    statuses = _whole_call(http, f"c{number}-{turn}", person=person, agent=agent)
                    with lock:
                        answers.update(statuses)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert answers == {200: CLIENTS * TURNS * 4}
        assert server.end(signal.SIGTERM) == 0
        assert "locked" not in server.errors()


def _whole_call(
    http: httpx.Client, key: str, *, person: Mapping[str, str], agent: Mapping[str, str]
) -> list[int]:
    """Bring one call from its proposal to its outcome, and return how each step was answered."""
    asked = http.post("/calls", json={"key": key, "tool": "pay", "arguments": {"n": 1}}, headers=agent)
    review = asked.json()["review_id"]
    decision = {"version": 1, "decisions": [{"type": "approve"}]}
    decided = http.post(f"/reviews/{review}/decide", json=decision, headers=person)
    taken = http.post(f"/calls/{key}/take", headers=agent)
    done = http.post(f"/calls/{key}/outcome", json={"attempt": 1, "ok": True}, headers=agent)
    return [each.status_code for each in (asked, decided, taken, done)]
