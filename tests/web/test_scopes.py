"""How far a key goes: every route that changes something, with a key of each scope and with one of none."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from sqlalchemy import select

from clearance.credential import EVERY_SCOPE, Scope, in_words
from clearance.people import Role
from clearance.store.tables import entries
from clearance.web.access import Caller, needs
from clearance.web.app import create_app
from clearance.web.bodies import StrictRoute
from clearance.web.records import Me
from tests.house.sources import ROOT
from tests.scripted import ScriptedModel, calls
from tests.web.asked import ask
from tests.web.served import OWNER, Served
from tests.web.talking import talks
from tests.web.test_route_walk import ROWS, SENT
from tests.web.two_tenants import Tenants, is_page

Route = tuple[str, str]

PROPOSE, DECIDE, MANAGE = Scope
RUNS = "/langgraph/threads/{thread_id}/runs"
RESUMED = {"interruptId": "{review_id}@1#c", "status": "resolved", "payload": {"type": "approve"}}
ANSWERED = {"assistant_id": "desk", "command": {"resume": [{"type": "approve"}]}}
OPENED_BY: Mapping[Route, Scope | None] = {
    ("post", "/agui"): PROPOSE,
    ("post", "/api/v1/agents/{agent}/resume"): MANAGE,
    ("post", "/api/v1/calls"): PROPOSE,
    ("post", "/api/v1/calls/{key}/outcome"): PROPOSE,
    ("post", "/api/v1/calls/{key}/take"): PROPOSE,
    ("post", "/api/v1/channels"): MANAGE,
    ("delete", "/api/v1/channels/{name}"): MANAGE,
    ("post", "/api/v1/channels/{name}/disable"): MANAGE,
    ("post", "/api/v1/channels/{name}/enable"): MANAGE,
    ("post", "/api/v1/channels/{name}/test"): MANAGE,
    ("post", "/api/v1/pipeline"): PROPOSE,
    ("post", "/api/v1/pipeline/{run_id}/cancel"): MANAGE,
    ("post", "/api/v1/pipeline/{run_id}/resume"): DECIDE,
    ("post", "/api/v1/reviews/{review_id:path}/claim"): DECIDE,
    ("post", "/api/v1/reviews/{review_id:path}/decide"): DECIDE,
    ("post", "/api/v1/reviews/{review_id:path}/release"): DECIDE,
    ("post", "/api/v1/reviews/{review_id:path}/withdraw"): MANAGE,
    ("post", "/api/v1/runs/{run_id:path}/cancel"): MANAGE,
    ("post", "/api/v1/standing-rules"): DECIDE,
    ("post", "/api/v1/standing-rules/{rule_id}/approve"): DECIDE,
    ("post", "/api/v1/standing-rules/{rule_id}/revoke"): MANAGE,
    ("post", "/api/v1/threads"): PROPOSE,
    ("post", "/api/v1/threads/{thread_id:path}/messages"): PROPOSE,
    ("post", "/api/v1/threads/{thread_id:path}/review"): DECIDE,
    ("post", "/chat/{thread_id:path}/messages"): PROPOSE,
    ("post", "/chat/{thread_id:path}/review"): DECIDE,
    ("post", "/langgraph/threads"): PROPOSE,
    ("post", "/langgraph/threads/search"): None,
    ("post", "/langgraph/threads/{thread_id}/history"): None,
    ("post", RUNS): PROPOSE,
    ("post", f"{RUNS}/stream"): PROPOSE,
    ("post", "/langgraph/threads/{thread_id}/state"): PROPOSE,
    ("post", "/pipeline/start"): PROPOSE,
    ("post", "/pipeline/{run_id}/resume"): DECIDE,
}
"""What each route that changes something needs, with what `SENT` says about the work of others."""
ASKED = [(route, SENT.get(route), scope) for route, scope in OPENED_BY.items()] + [
    (("post", "/agui"), {**SENT["post", "/agui"], "messages": [], "resume": [RESUMED]}, DECIDE),
    (("post", RUNS), ANSWERED, DECIDE),
    (("post", f"{RUNS}/stream"), ANSWERED, DECIDE),
]
"""The same, and what else may be asked for at doors that take either."""
NAMES = [f"{' '.join(route)} {scope}" for route, _, scope in ASKED]
BY_KEY = [route for route in ROWS if not is_page(route[1])]


def test_every_route_that_changes_something_is_in_this_table() -> None:
    assert {route for route in BY_KEY if route[0] != "get"} == OPENED_BY.keys()


@pytest.mark.parametrize(("route", "sent", "scope"), ASKED, ids=NAMES)
def test_only_a_key_of_its_scope_opens_a_route(
    tenants: Tenants, route: Route, sent: Mapping[str, Any] | None, scope: Scope | None
) -> None:
    for shown in (frozenset[Scope](), *({each} for each in Scope), EVERY_SCOPE - {scope}, EVERY_SCOPE):
        ids = tenants.ids(route, sent)
        answer = tenants.call(route, "admin", sent=sent, ids=ids, scopes=shown)
        if scope is None or scope in shown:
            assert answer.status_code == _as_before(tenants, route, sent), (shown, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "key_scope"), (shown, answer.text)
            assert scope in answer.json()["scopes"]
            assert f"clearance keys add NAME --person {OWNER} --scope " in answer.json()["detail"]
            assert answer.headers["content-type"] == "application/problem+json"


def _as_before(tenants: Tenants, route: Route, sent: Mapping[str, Any] | None) -> int:
    """Return what somebody gets whose key goes as far as they may."""
    return tenants.call(route, "admin", sent=sent, ids=tenants.ids(route, sent)).status_code


@pytest.mark.parametrize("route", [route for route in BY_KEY if route[0] == "get"], ids=" ".join)
def test_a_key_without_a_scope_reads_what_its_holder_may_see(tenants: Tenants, route: Route) -> None:
    sent = SENT.get(route)
    for who in ("admin", "viewer", "agent"):
        answer = tenants.call(route, who, sent=sent, ids=tenants.ids(route, sent), scopes=())
        assert answer.status_code == ROWS[route][who], who


def test_a_scope_gives_nobody_what_their_role_does_not(served: Served) -> None:
    review = ask(served)
    served.add("vic", role=Role.VIEWER)
    for who, scopes in (("vic", EVERY_SCOPE), ("vic", {DECIDE})):
        answer = served.http.post(
            f"/api/v1/reviews/{review.id}/decide",
            json={"decisions": [{"type": "approve"}], "version": review.version},
            headers=served.key(who, scopes=scopes),
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("scopes", [{PROPOSE}, {DECIDE}, EVERY_SCOPE], ids=in_words)
def test_an_agent_decides_with_no_key_and_is_not_told_to_make_one(
    served: Served, scopes: frozenset[Scope]
) -> None:
    review = ask(served, by=served.add_agent("bot"))
    answer = served.http.post(
        f"/api/v1/reviews/{review.id}/decide",
        json={"decisions": [{"type": "approve"}], "version": review.version},
        headers=served.key("bot", scopes=scopes),
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert answer.json()["detail"] == "Agents propose; only people decide."


def test_an_agent_needs_no_more_than_to_propose(served: Served) -> None:
    served.add_agent("bot")
    key = served.key("bot", scopes={PROPOSE})
    body = {"key": "k1", "tool": "pay", "arguments": {}}
    asked = served.http.post("/api/v1/calls", json=body, headers=key).json()
    served.http.post(
        f"/api/v1/reviews/{asked['review_id']}/decide",
        json={"decisions": [{"type": "approve"}], "version": 1},
        headers=served.key(scopes={DECIDE}),
    ).raise_for_status()
    taken = served.http.post("/api/v1/calls/k1/take", headers=key).json()
    said = {"attempt": taken["attempt"], "ok": True, "result": "paid"}
    told = served.http.post("/api/v1/calls/k1/outcome", json=said, headers=key).json()
    assert (told["state"], told["result"]) == ("executed", "paid")


def test_one_key_says_what_another_decides(served: Served) -> None:
    talks(served.workspace, ScriptedModel([calls(("send_email", {"to": "ann"})), "It is sent."]))
    said = {"text": "Write her"}
    path = "/api/v1/threads/t1"
    waits = served.http.post(f"{path}/messages", json=said, headers=served.key(scopes={PROPOSE}))
    assert waits.json()["state"] == "waiting"
    decided = {"decisions": [{"type": "approve"}]}
    answer = served.http.post(f"{path}/review", json=decided, headers=served.key(scopes={DECIDE}))
    assert answer.json()["answer"] == "It is sent."


@pytest.mark.parametrize(
    ("asked_by", "scope", "code"),
    [
        (OWNER, PROPOSE, 200),
        (OWNER, MANAGE, 403),
        ("bot", PROPOSE, 200),
        ("bot", MANAGE, 403),
        ("eva", PROPOSE, 403),
        ("eva", MANAGE, 200),
    ],
)
@pytest.mark.parametrize("verb", ["reviews", "runs"])
def test_taking_back_what_others_asked_for_is_managing(
    served: Served, verb: str, asked_by: str, scope: Scope, code: int
) -> None:
    served.add("eva")
    served.add_agent("bot")
    review = ask(served, by=asked_by)
    path = f"reviews/{review.id}/withdraw" if verb == "reviews" else f"runs/{review.run_id}/cancel"
    answer = served.http.post(f"/api/v1/{path}", headers=served.key(scopes={scope}))
    assert answer.status_code == code, answer.text


def test_the_page_of_the_api_tells_what_each_scope_opens() -> None:
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n### Scopes\n")
    rows = re.findall(r"\n\| `(\w+)` \|", section.partition("\n## ")[0])
    assert rows == [each.value for each in Scope]


def test_me_says_how_far_the_key_goes(served: Served) -> None:
    for scopes in ((), (DECIDE, PROPOSE), EVERY_SCOPE):
        answer = served.http.get("/api/v1/me", headers=served.key(scopes=scopes))
        assert Me.model_validate_json(answer.text).scopes == [each for each in Scope if each in scopes]


def test_a_route_of_a_program_that_does_not_say_what_it_needs_wants_the_widest(served: Served) -> None:
    router = APIRouter(prefix="/own", route_class=StrictRoute)
    plain = APIRouter(prefix="/plain")

    def silent(by: Caller) -> str:
        return by.id

    async def waiting(by: Caller) -> str:
        return by.id

    @needs()
    def looking(by: Caller) -> str:
        return by.id

    for name, endpoint in (("silent", silent), ("waiting", waiting), ("looking", looking)):
        for each in (router, plain):
            each.add_api_route(f"/{name}", endpoint, methods=["POST", "PUT", "PATCH", "DELETE"])
    app = create_app(served.workspace, routers=(router, plain))
    http = TestClient(app)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/own/silent", "/own/waiting", "/plain/silent", "/plain/waiting"):
            for scopes, code in ((EVERY_SCOPE - {MANAGE}, 403), ({MANAGE}, 200)):
                answer = http.request(method, path, headers=served.key(scopes=scopes))
                assert answer.status_code == code, (method, path, scopes)
        for path in ("/own/looking", "/plain/looking"):
            assert http.request(method, path, headers=served.key(scopes=())).status_code == 200


def test_the_trail_tells_how_far_each_key_goes(served: Served) -> None:
    for scopes in (EVERY_SCOPE, {PROPOSE}, ()):
        served.key(scopes=scopes)
    query = select(entries.c.facts).where(entries.c.kind == "key:added").order_by(entries.c.id)
    with served.workspace.database.read() as tx:
        told = [facts["scopes"] for facts in tx.execute(query).scalars()]
    assert told == [["decide", "manage", "propose"], ["propose"], []]
