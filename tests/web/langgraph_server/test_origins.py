"""Which pages a browser lets read what the doors for front ends answer: of named origins and no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import clearance
from clearance.errors import SettingsError
from clearance.settings import Settings
from clearance.web.app import create_app

ORIGIN = "http://localhost:3000"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-api-key,x-auth-scheme",
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """Serve a workspace that names one origin."""
    with (
        clearance.open(f"sqlite:///{tmp_path}/c.db", home=tmp_path, person="ann", worker=False) as workspace,
        TestClient(create_app(workspace, origins=[ORIGIN])) as http,
    ):
        yield http


@pytest.mark.parametrize("path", ["/langgraph/info", "/langgraph/threads/t1/runs/stream", "/agui"])
def test_a_named_origin_may_ask_and_read(client: TestClient, path: str) -> None:
    asked = client.options(path, headers={"Origin": ORIGIN, **PREFLIGHT})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert "x-api-key" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in asked.headers
    # A refusal can be read too, or the person would not learn why.
    refused = client.post(path, json={}, headers={"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"})
    assert refused.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("origin", ["http://localhost:3001", "https://localhost:3000", "null"])
def test_no_other_origin_may(client: TestClient, origin: str) -> None:
    asked = client.options("/langgraph/info", headers={"Origin": origin, **PREFLIGHT})
    assert asked.status_code == 400
    got = client.get("/langgraph/info", headers={"Origin": origin})
    assert "access-control-allow-origin" not in asked.headers | got.headers


@pytest.mark.parametrize("path", ["/api/v1/reviews", "/healthz", "/langgraphs", "/"])
def test_nothing_else_is_opened_to_a_named_origin(client: TestClient, path: str) -> None:
    for answer in (
        client.options(path, headers={"Origin": ORIGIN, **PREFLIGHT}),
        client.get(path, headers={"Origin": ORIGIN}, follow_redirects=False),
    ):
        assert "access-control-allow-origin" not in answer.headers


def test_a_key_in_its_header_is_no_forged_form(client: TestClient) -> None:
    headers = {"X-Api-Key": "clr_nothing", "Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
    answer = client.post("/langgraph/threads", json={}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


def test_origins_are_named_in_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.read().origins == ()
    monkeypatch.setenv("CLEARANCE_CORS_ORIGINS", "http://localhost:3000, https://chat.example.org")
    assert Settings.read().origins == ("http://localhost:3000", "https://chat.example.org")


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "http://*",
        "https://*.example.org",
        "localhost:3000",
        "http://a/b",
        "http://a/",
        "http://",
        "null",
    ],
)
def test_an_origin_that_is_not_written_out_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CLEARANCE_CORS_ORIGINS", text)
    with pytest.raises(SettingsError, match="CLEARANCE_CORS_ORIGINS"):
        Settings.read()
