"""Who may call what: every route of the application, with every kind of key that should not open it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clearance.keyring import add_agent, new_credential, revoke_key
from clearance.membership import disable, enable
from clearance.people import Mode
from clearance.store import people
from clearance.web.records import Me
from tests.databases import Databases
from tests.web.asked import ask
from tests.web.researching import start
from tests.web.served import OWNER, Served

PUBLIC = {("get", "/healthz"), ("get", "/readyz")}
_DECISION = {"decisions": [{"type": "approve"}], "version": 1}


@dataclass(frozen=True)
class Way:
    """A route as one calls it: what is sent, and how it answers an agent that it is not for."""

    foreign: int
    body: Any = None
    query: str = ""


ROUTES = {
    ("get", "/api/v1/me"): Way(200),
    ("post", "/api/v1/calls"): Way(200, {"key": "k2", "tool": "pay", "arguments": {}}),
    ("get", "/api/v1/calls/{key}"): Way(404, query="?agent=bot"),
    ("post", "/api/v1/calls/{key}/take"): Way(404),
    ("post", "/api/v1/calls/{key}/outcome"): Way(404, {"attempt": 1, "ok": True}),
    ("get", "/api/v1/reviews"): Way(200),
    ("get", "/api/v1/reviews/{review_id}"): Way(404),
    ("post", "/api/v1/reviews/{review_id}/decide"): Way(404, _DECISION),
    ("post", "/api/v1/reviews/{review_id}/withdraw"): Way(404),
    ("post", "/api/v1/reviews/{review_id}/claim"): Way(404),
    ("post", "/api/v1/reviews/{review_id}/release"): Way(404),
    ("get", "/api/v1/standing-rules"): Way(200),
    ("post", "/api/v1/standing-rules"): Way(404, {"review_id": "{review_id}", "uses": 1, "for": "1h"}),
    ("post", "/api/v1/standing-rules/{rule_id}/approve"): Way(404),
    ("post", "/api/v1/standing-rules/{rule_id}/revoke"): Way(404),
    ("get", "/api/v1/agents/parked"): Way(200),
    ("post", "/api/v1/agents/{agent}/resume"): Way(403),
    ("post", "/api/v1/threads"): Way(200),
    ("get", "/api/v1/threads/{thread_id}"): Way(404),
    ("get", "/api/v1/threads/{thread_id}/messages"): Way(404),
    ("post", "/api/v1/threads/{thread_id}/messages"): Way(404, {"text": "hello"}),
    ("post", "/api/v1/threads/{thread_id}/review"): Way(404, {"decisions": [{"type": "approve"}]}),
    ("post", "/chat/{thread_id}/messages"): Way(404, {"text": "hello"}),
    ("post", "/chat/{thread_id}/review"): Way(404, {"decisions": [{"type": "approve"}]}),
    ("get", "/api/v1/runs"): Way(200),
    ("get", "/api/v1/runs/{run_id}"): Way(404),
    ("get", "/api/v1/runs/{run_id}/stream"): Way(404),
    ("post", "/api/v1/runs/{run_id}/cancel"): Way(404),
    ("get", "/api/v1/channels"): Way(403),
    ("post", "/api/v1/channels"): Way(
        403, {"name": "mail", "address": "mailto://x", "serves": "person", "whom": "ann"}
    ),
    ("post", "/api/v1/channels/{name}/test"): Way(403),
    ("post", "/api/v1/channels/{name}/enable"): Way(403),
    ("post", "/api/v1/channels/{name}/disable"): Way(403),
    ("delete", "/api/v1/channels/{name}"): Way(403),
    ("get", "/api/v1/deliveries"): Way(403),
    ("get", "/api/v1/audit"): Way(200),
    ("get", "/api/v1/audit/head"): Way(403),
    ("get", "/api/v1/audit/verify"): Way(403),
    ("get", "/api/v1/audit/export"): Way(403),
    ("get", "/api/v1/events"): Way(404, query="?topics=run:{run_id}"),
    ("get", "/metrics"): Way(403),
    ("get", "/api/v1/pipeline"): Way(200),
    ("post", "/api/v1/pipeline"): Way(404, {"symbol": "BRCA1", "replay": "{pipeline}"}),
    ("post", "/pipeline/start"): Way(404, {"symbol": "BRCA1", "replay": "{pipeline}"}),
    ("get", "/api/v1/pipeline/{run_id}"): Way(404),
    ("get", "/api/v1/pipeline/{run_id}/plan"): Way(404),
    ("get", "/api/v1/pipeline/{run_id}/diff"): Way(404),
    ("get", "/api/v1/pipeline/{run_id}/artifacts"): Way(404),
    ("get", "/api/v1/pipeline/{run_id}/artifacts/{name}"): Way(404),
    ("get", "/api/v1/pipeline/{run_id}/events"): Way(404),
    ("post", "/api/v1/pipeline/{run_id}/resume"): Way(404, {"decision": "approve"}),
    ("post", "/pipeline/{run_id}/resume"): Way(404, {"decision": "approve"}),
    ("post", "/api/v1/pipeline/{run_id}/cancel"): Way(404),
}


@dataclass(frozen=True)
class Door:
    """The application with something to be found in it, and keys that should open nothing of that."""

    served: Served
    ids: dict[str, str]
    keys: dict[str, bytes]

    def call(self, route: tuple[str, str], shown: bytes | None, *, where: str | None = None) -> Any:
        """Call a route about what the bot has asked for, or about something else in the place of it."""
        method, path = route
        way = ROUTES[route]
        ids = self.ids if where is None else dict.fromkeys(self.ids, where)
        if "/pipeline" in path:
            ids = {**ids, "run_id": ids["pipeline"]}
        body = way.body
        if isinstance(body, dict) and "replay" in body:
            body = {**body, "replay": ids["pipeline"]}
        if isinstance(body, dict) and "review_id" in body:
            body = {**body, "review_id": ids["review_id"]}
        headers = [] if shown is None else [(b"Authorization", shown)]
        return self.served.http.request(
            method,
            path.format(**ids) + way.query.format(**ids),
            headers=headers,
            json=body,
        )


@pytest.fixture(scope="module")
def door(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Serve a workspace in which an agent has asked for something, and another agent has a key."""
    folder: Path = tmp_path_factory.mktemp("door")
    with Served.open(databases.migrated("sqlite", folder), home=folder, research=True) as served:
        for agent in ("bot", "stranger", "gone"):
            served.add_agent(agent)
        review = ask(served, by="bot", thread="t1")
        remembered = served.http.post(
            "/api/v1/standing-rules",
            json={"review_id": review.id, "uses": 1, "for": "1h"},
            headers=served.key(),
        )
        served.http.post(
            "/api/v1/calls",
            json={"key": "k1", "tool": "pay", "arguments": {}},
            headers=served.key("bot"),
        )
        pipeline = start(served, by="bot")
        bearer = {name: served.key(name)["Authorization"] for name in ("stranger", "gone", OWNER)}
        revoke_key(served.workspace.database, "key of gone", by=OWNER)
        served.add("eva")
        disabled = served.key("eva")["Authorization"]
        with served.workspace.database.write() as tx:
            people.disable(tx, "eva")
        ids = {"review_id": review.id, "run_id": review.run_id, "thread_id": "t1", "key": "k1"}
        ids |= {"rule_id": remembered.json()["rule_id"], "agent": "bot"}
        ids |= {"pipeline": pipeline, "name": "sequence.json"}
        keys = {
            "unknown": f"Bearer {new_credential().text}",
            "revoked": bearer["gone"],
            "no key": "Bearer abc",
            "another scheme": f"Basic {bearer[OWNER].removeprefix('Bearer ')}",
            "not ASCII": "Bearer é",
            "stranger": bearer["stranger"],
            "disabled": disabled,
            "owner": bearer[OWNER],
        }
        yield Door(served, ids, {name: each.encode() for name, each in keys.items()})


def test_every_route_is_in_this_table(door: Door) -> None:
    document = door.served.http.get("/api/v1/openapi.json").json()
    routes = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == ROUTES.keys() | PUBLIC


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_answers_nobody_without_a_key(door: Door, route: tuple[str, str]) -> None:
    answer = door.call(route, None)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("key", ["unknown", "revoked", "no key", "another scheme", "not ASCII"])
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_answers_no_key_that_opens_nothing(door: Door, route: tuple[str, str], key: str) -> None:
    answer = door.call(route, door.keys[key])
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_answers_nobody_who_is_disabled(door: Door, route: tuple[str, str]) -> None:
    answer = door.call(route, door.keys["disabled"])
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_an_agent_gets_nothing_of_what_another_asked_for(door: Door, route: tuple[str, str]) -> None:
    answer = door.call(route, door.keys["stranger"])
    assert answer.status_code == ROUTES[route].foreign, answer.text
    if answer.status_code == 200:
        # The call of that key which the stranger made is its own.
        shown = answer.text.replace('"stranger', "")
        assert not any(door.ids[name] in shown for name in ("review_id", "run_id", "pipeline"))


@pytest.mark.parametrize(
    "route", [route for route, way in ROUTES.items() if way.foreign == 404], ids=" ".join
)
def test_what_is_not_theirs_is_told_as_if_it_were_not_there(door: Door, route: tuple[str, str]) -> None:
    foreign = door.call(route, door.keys["stranger"])
    unknown = door.call(route, door.keys["stranger"], where="nowhere")
    if unknown.status_code != 404:
        # A thread begins with its first message: in one that nobody has, an agent may write.
        assert route[1].endswith("/messages")
        return
    told = foreign.json()["detail"]
    for known in sorted(door.ids.values(), key=len, reverse=True):
        told = told.replace(known, "nowhere")
    assert told == unknown.json()["detail"]


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_no_answer_holds_the_key_that_was_shown(door: Door, route: tuple[str, str]) -> None:
    secret = door.keys["unknown"].decode().removeprefix("Bearer ")
    assert secret not in door.call(route, door.keys["unknown"]).text


def test_me_says_whose_key_was_shown_and_what_holds_here(served: Served) -> None:
    served.add_agent("bot")
    answer = served.http.get("/api/v1/me", headers=served.key("bot"))
    found = Me.model_validate_json(answer.text)
    assert (found.id, found.kind, found.behind, found.mode) == ("bot", "agent", OWNER, Mode.SINGLE_USER)


def test_nothing_acts_for_somebody_who_is_disabled(served: Served) -> None:
    served.add("eva")
    for agent, behind in (("bot", "eva"), ("helper", "bot")):
        add_agent(served.workspace.database, agent, behind=behind, by=OWNER)
    keys = [served.key(name) for name in ("bot", "helper")]
    assert [served.http.get("/api/v1/me", headers=key).status_code for key in keys] == [200, 200]
    disable(served.workspace.database, "eva", by=OWNER)
    for key in keys:
        answer = served.http.get("/api/v1/me", headers=key)
        assert (answer.status_code, answer.json()["detail"]) == (403, "eva is disabled here.")
    enable(served.workspace.database, "eva", by=OWNER)
    assert [served.http.get("/api/v1/me", headers=key).status_code for key in keys] == [200, 200]


def test_a_key_that_is_revoked_opens_nothing_from_the_next_request_on(served: Served) -> None:
    served.add("eva")
    headers = served.key("eva")
    assert served.http.get("/api/v1/me", headers=headers).status_code == 200
    revoke_key(served.workspace.database, "key of eva", by=OWNER)
    assert served.http.get("/api/v1/me", headers=headers).status_code == 401
