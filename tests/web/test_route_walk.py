"""Every route of the application, knocked at by everybody: who gets what, and nobody what is not theirs."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from tests.web.two_tenants import CALLERS, Tenants

TABLE = (Path(__file__).parent / "routes.txt").read_text(encoding="utf-8")
PUBLIC = {
    ("get", "/api/v1/openapi.json"),
    ("get", "/healthz"),
    ("get", "/l/{token}"),
    ("post", "/l/{token}"),
    ("get", "/login"),
    ("post", "/login"),
    ("get", "/login/callback"),
    ("get", "/login/provider"),
    ("get", "/readyz"),
    ("get", "/static/{digest}/{name:path}"),
    ("get", "/welcome/{token}"),
    ("post", "/welcome/{token}"),
}
"""Open to everybody, or to who holds a secret that is in the address; each has tests of its own."""

DECIDE = {"decisions": [{"type": "approve"}], "version": 1}
SENT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("post", "/api/v1/calls"): {"key": "k2", "tool": "pay", "arguments": {}},
    ("get", "/api/v1/calls/{key}"): {"?": "?agent={agent}"},
    ("post", "/api/v1/calls/{key}/outcome"): {"attempt": 1, "ok": True},
    ("post", "/api/v1/reviews/{review_id:path}/decide"): DECIDE,
    ("post", "/api/v1/standing-rules"): {
        "review_id": "{review_id}",
        "uses": 1,
        "for": "1h",
        "thread_only": True,
    },
    ("post", "/api/v1/threads/{thread_id:path}/messages"): {"text": "hello"},
    ("post", "/api/v1/threads/{thread_id:path}/review"): {"decisions": [{"type": "approve"}]},
    ("post", "/chat/{thread_id:path}/messages"): {"text": "hello"},
    ("post", "/chat/{thread_id:path}/review"): {"decisions": [{"type": "approve"}]},
    ("post", "/api/v1/channels"): {"name": "c", "address": "mailto://x", "serves": "person", "whom": "ann"},
    ("get", "/api/v1/events"): {"?": "?topics=run:{run_id}"},
    ("get", "/events"): {"?": "?topics=run:{run_id}"},
    ("post", "/api/v1/pipeline"): {"symbol": "BRCA1", "replay": "{run_id}", "offline": True},
    ("post", "/pipeline/start"): {"symbol": "BRCA1", "replay": "{run_id}", "offline": True},
    ("post", "/api/v1/pipeline/{run_id}/resume"): {"decision": "approve"},
    ("post", "/pipeline/{run_id}/resume"): {"decision": "approve"},
    ("get", "/reviews/{review_id:path}/moved"): {"?": "?version=1"},
    ("post", "/reviews/{review_id:path}/decide"): {"decision": "approve", "version": "1"},
    ("post", "/inbox"): {"item": '[["{review_id}", 1]]', "do": "approve"},
    ("post", "/l/{token}"): {"decision": "approve"},
    ("post", "/langgraph/threads/{thread_id}/history"): {"limit": 1},
    ("post", "/langgraph/threads/{thread_id}/runs"): {"assistant_id": "desk", "command": {"resume": []}},
    ("post", "/langgraph/threads/{thread_id}/runs/stream"): {
        "assistant_id": "desk",
        "command": {"resume": []},
    },
    ("post", "/langgraph/threads/search"): {},
    ("post", "/agui"): {
        "threadId": "{thread_id}",
        "runId": "r",
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        "messages": [{"id": "m", "role": "user", "content": "hello"}],
    },
    ("get", "/settings/rules/new"): {"?": "?review={review_id}"},
    ("post", "/settings/rules/new"): {"review": "{review_id}", "uses": "1", "for": "1h", "do": "draft"},
    ("post", "/settings/rules"): {"rule": "{rule_id}", "do": "revoke"},
}


def every_route(app: FastAPI) -> set[tuple[str, str]]:
    """Return each method and path that the application answers."""
    return set(_walked(app.routes))


def _walked(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _walked(inner.routes)
            continue
        for method in getattr(route, "methods", None) or {"(none)"}:
            if method not in ("HEAD", "OPTIONS"):
                yield method.lower(), getattr(route, "path", repr(route))


Row = tuple[tuple[str, str], dict[str, int]]


def _rows() -> Iterator[Row]:
    for line in TABLE.splitlines():
        if line and not line.startswith("#"):
            method, path, *statuses = line.split()
            yield (method, path), dict(zip(CALLERS, map(int, statuses), strict=True))


ROWS = dict(_rows())


def test_every_route_is_in_the_table(tenants: Tenants) -> None:
    assert every_route(tenants.app) == ROWS.keys() | PUBLIC


@pytest.mark.parametrize("route", ROWS, ids=" ".join)
def test_everybody_gets_what_the_table_says(tenants: Tenants, route: tuple[str, str]) -> None:
    got, told = {}, {}
    for who in CALLERS:
        ids = tenants.ids(route, SENT.get(route))
        answer = tenants.call(route, who, sent=SENT.get(route), ids=ids)
        got[who] = answer.status_code
        told[who] = [name for name in ("review_id", "run_id", "thread_id") if ids[name] in answer.text]
    assert got == ROWS[route]
    shown = {who: told[who] for who in ("nobody", "disabled", "agent", "outsider") if got[who] != 404}
    assert not any(shown.values()), shown


FOREIGN = [
    (route, who)
    for route, row in ROWS.items()
    for who in ("agent", "outsider")
    if row[who] == 404 and "{" in route[1]
]


@pytest.mark.parametrize(
    ("route", "who"), FOREIGN, ids=[f"{' '.join(route)} {who}" for route, who in FOREIGN]
)
def test_what_is_not_theirs_is_told_as_if_it_were_not_there(
    tenants: Tenants, route: tuple[str, str], who: str
) -> None:
    sent = SENT.get(route)
    ids = tenants.ids(route, sent)
    foreign = tenants.call(route, who, sent=sent, ids=ids)
    unknown = tenants.call(route, who, sent=sent, ids=dict.fromkeys(ids, "nowhere"))
    if unknown.status_code in (200, 202, 422):
        # A thread begins with its first message: in one that nobody has, everybody may write.
        assert route[1].endswith(("/messages", "/runs", "/runs/stream"))
        return
    assert foreign.status_code == unknown.status_code
    if "json" in foreign.headers["content-type"]:
        text = foreign.json()["detail"]
        for known in sorted(ids.values(), key=len, reverse=True):
            text = text.replace(known, "nowhere")
        assert text == unknown.json()["detail"]
