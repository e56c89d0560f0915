"""The doors over HTTP under attack, by callers who hold a key: of an agent, or of nobody who matters."""

import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from clearance import turns
from clearance.adapters import foreign
from clearance.adapters.proposal import Proposal
from clearance.errors import ConflictError
from clearance.notices import webhook
from clearance.notices.targets import Allowed
from clearance.notices.webhook import Courier, new_secret
from clearance.people import Person
from clearance.policy import Effect, Policy, Rule
from clearance.run import Run, RunState
from clearance.store import callbacks, policies, runs
from clearance.store.callbacks import Callback
from tests.web.asked import ask
from tests.web.live import serving
from tests.web.served import Served

pytestmark = pytest.mark.sqlite_by_day

AGENT = "mailer"
EVIL = "(a+)+$"


@pytest.fixture
def served(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """A workspace with two agents, and the application over it."""
    with Served.open(migrated_database_url, home=tmp_path) as found:
        found.add_agent(AGENT)
        found.add_agent("other")
        yield found


def propose(served: Served, **more: Any) -> Any:
    """Let the agent propose a call, and return the answer."""
    body = {"key": "m-1", "tool": "send", "arguments": {"to": "ana"}, **more}
    return served.http.post("/api/v1/calls", json=body, headers=served.key(AGENT))


def say(served: Served, thread: str, *, by: str, **more: Any) -> Any:
    """Write in a thread, and return the answer."""
    body = {"text": "Go on.", "wait": 0, **more}
    return served.http.post(f"/api/v1/threads/{thread}/messages", json=body, headers=served.key(by))


def _doubling() -> dict[str, Any]:
    """Return a schema of a few lines that asks for a million million checks."""
    parts = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$defs": {**parts, "a40": {"type": "object"}}, "$ref": "#/$defs/a0"}


def _chained() -> dict[str, Any]:
    """Return a schema whose defaults ask for as much: each level is completed by two others."""
    inner = {"properties": {"x": {"$ref": "#/$defs/a"}}}
    return {"$defs": {"a": {**inner, "$ref": "#/$defs/b"}, "b": inner}, "$ref": "#/$defs/a"}


def _deep() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(40):
        found = {"x": found}
    return found


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (_doubling(), {"to": "ana"}),
        (_chained(), _deep()),
        ({"properties": {"to": {"uniqueItems": True}}}, {"to": [{} for _ in range(50_000)]}),
        ({"default": {"pattern": EVIL}, "properties": {"to": {"$ref": "#/default"}}}, {"to": "a" * 50 + "!"}),
        ({"enum": [{"patternProperties": {EVIL: {}}}], "$ref": "#/enum/0"}, {"a" * 50 + "!": 1}),
        ({"properties": {"pattern": EVIL}, "$ref": "#/properties"}, {"to": "a" * 50 + "!"}),
    ],
    ids=["doubling", "defaults", "unique", "pattern in a value", "patterns in a value", "pattern by name"],
)
def test_a_schema_that_would_never_end_is_refused(
    served: Served, schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    answer = propose(served, schema=schema, arguments=arguments)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    with served.workspace.database.read() as tx:
        assert runs.list_runs(tx, states=(), limit=1) == []


def test_text_that_a_database_does_not_keep_is_refused_and_not_a_bug(served: Served) -> None:
    ask(served, thread="t")
    about = {"decisions": [], "review_id": "a\0b"}
    sent = [
        propose(served, description="a\0b"),
        say(served, "u", by="ann", program="a\0b"),
        served.http.post("/api/v1/threads/t/review", json=about, headers=served.key()),
    ]
    assert [answer.status_code for answer in sent] == [422, 422, 422]


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "1e400"])
def test_nobody_waits_for_ever(served: Served, wait: str) -> None:
    propose(served)
    answer = served.http.get(f"/api/v1/calls/m-1?wait={wait}", headers=served.key(AGENT))
    assert answer.status_code == 422


def test_methods_that_are_made_up_do_not_make_the_metrics_grow(served: Served) -> None:
    for n in range(5):
        served.http.request(f"MADEUP{n}", "/api/v1/reviews")
    told = served.http.get("/metrics", headers=served.key()).text
    assert "MADEUP" not in told
    assert 'method="none"' in told


def test_an_agent_cannot_take_the_place_of_a_call_of_another(served: Served) -> None:
    ask(served)
    for program in ("desk", f"agent:{AGENT}", None):
        assert say(served, f"{AGENT}:m-1", by="other", program=program).status_code == 422
    assert propose(served).status_code == 200
    assert say(served, f"{AGENT}:m-1", by="other").status_code == 404
    assert say(served, f"{AGENT}:m-1", by=AGENT).status_code == 422
    assert say(served, "t", by="ann", program=f"agent:{AGENT}").status_code == 422


def test_a_graph_driven_by_hand_cannot_end_a_call_of_an_agent_nor_the_other_way_round(served: Served) -> None:
    ledger = served.workspace.ledger
    new = {"state": RunState.RUNNING, "requester": "ann", "input": None, "created_at": datetime.now(UTC)}
    by_hand = Run(id="h1", thread_id=f"{AGENT}:m-2", program="desk", **new)  # type: ignore[arg-type]
    turns.start_by_caller(ledger, by_hand)
    assert propose(served, key="m-2").json()["code"] == "conflict"
    assert propose(served).status_code == 200
    with pytest.raises(ConflictError):
        turns.start_by_caller(ledger, Run(id="h2", thread_id=f"{AGENT}:m-1", program="desk", **new))  # type: ignore[arg-type]
    with ledger.database.read() as tx:
        assert runs.run(tx, "h1").is_open
        assert runs.run(tx, f"{AGENT}:m-1").is_open


def test_a_call_whose_run_was_cancelled_is_not_offered_any_more(served: Served) -> None:
    database = served.workspace.database
    with database.write() as tx:
        allow = Policy(rules=(Rule("send", effect=Effect.ALLOW),))
        policies.activate(tx, f"agent:{AGENT}", allow, now=database.now(tx))
    assert propose(served).json()["may_take"]
    served.http.post(f"/api/v1/runs/{AGENT}:m-1/cancel", headers=served.key(AGENT))
    told = served.http.get("/api/v1/calls/m-1", headers=served.key(AGENT)).json()
    assert (told["state"], told["may_take"]) == ("rejected", False)
    assert served.http.post("/api/v1/calls/m-1/take", headers=served.key(AGENT)).status_code == 409


@pytest.mark.parametrize("key", ["é:%", "%2F", "mailer:m-1", "?a=b#c", "😀" * 40])
def test_a_call_is_found_by_its_ids_whatever_its_key_holds(served: Served, key: str) -> None:
    review_id = propose(served, key=key).json()["review_id"]
    run_id = review_id.rsplit("/", 2)[0]
    with serving(served.workspace) as address, httpx.Client(base_url=f"{address}/api/v1") as client:
        found = [
            client.get(f"/{kind}/{quote(name, safe='/')}", headers=served.key())
            for kind, name in (("reviews", review_id), ("runs", run_id), ("threads", run_id))
        ]
        found.append(client.get(f"/calls/{quote(key, safe='')}", headers=served.key(AGENT)))
    assert [answer.status_code for answer in found] == [200] * 4
    assert found[-1].json()["key"] == key


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of somebody who answers one letter after the other, and never comes to an end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def drip(caller: socket.socket) -> None:
            with caller:
                caller.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                while not over.wait(0.02):
                    try:
                        caller.sendall(b"x")
                    except OSError:
                        return

        def serve() -> None:
            while not over.is_set():
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=drip, args=(caller,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        over.set()


def test_who_answers_a_webhook_slowly_keeps_nobody_else_waiting(
    served: Served, dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.workspace.worker.stop()
    timeout, count = 2.0, 8
    monkeypatch.setattr(webhook, "TIMEOUT", timeout)
    for n in range(count):
        made = Callback("", dripping, new_secret(), created_at=datetime.now(UTC))
        proposal = Proposal(f"m-{n}", "send", "{}", {"type": "object"})
        review = foreign.propose(served.workspace, proposal, by=Person(AGENT, AGENT), callback=made).pending
        assert review is not None
        served.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=1)
    began = time.monotonic()
    assert Courier(served.workspace.database, Allowed.read("127.0.0.0/8")).turn() == count
    assert time.monotonic() - began < count * timeout, "one waited for the other"
    with served.workspace.database.read() as tx:
        told = [callbacks.of_run(tx, f"{AGENT}:m-{n}") for n in range(count)]
    assert {(each.tries, each.error) for each in told if each is not None} == {
        (1, "It could not be reached: TimeoutError.")
    }
