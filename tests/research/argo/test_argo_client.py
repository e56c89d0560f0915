"""The client of the Argo Server: its settings, and what it does with answers that are none."""

import threading
from collections.abc import Callable

import pytest

from clearance.apps.research.executors.argo_client import (
    LARGEST_ANSWER,
    ArgoClient,
    ArgoError,
    ArgoRefusedError,
    ArgoUnclearError,
    ArgoUnreachableError,
)
from clearance.errors import SettingsError
from tests.research.local_server import Answer, serve


@pytest.mark.parametrize(
    ("environment", "namespace"),
    [
        ({"ARGO_SERVER": "argo.example.org:2746", "ARGO_TOKEN": "t"}, "argo"),
        ({"ARGO_SERVER": "https://argo.example.org", "ARGO_TOKEN": "Bearer t"}, "argo"),
        ({"ARGO_SERVER": "http://localhost:2746", "ARGO_TOKEN": "t", "ARGO_NAMESPACE": "genes"}, "genes"),
        ({"ARGO_SERVER": "http://argo.example.org"}, "argo"),
    ],
)
def test_a_client_is_made_from_the_environment(environment: dict[str, str], namespace: str) -> None:
    with ArgoClient.from_environment(environment) as client:
        assert client.namespace == namespace


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({}, "Set ARGO_SERVER"),
        ({"ARGO_SERVER": " "}, "Set ARGO_SERVER"),
        ({"ARGO_SERVER": "ftp://argo"}, "must be an address"),
        ({"ARGO_SERVER": "https://"}, "must be an address"),
        ({"ARGO_SERVER": "http://argo.example.org", "ARGO_TOKEN": "secret"}, "must be https://"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(environment: dict[str, str], error: str) -> None:
    with pytest.raises(SettingsError, match=error) as raised:
        ArgoClient.from_environment(environment)
    assert "secret" not in str(raised.value)


def test_the_token_goes_out_once_with_its_prefix() -> None:
    with serve() as services, ArgoClient(services.url, token="Bearer t") as client:
        services.answer("/api/v1/workflows/argo/w", b"{}")
        client.workflow("w")
        assert services.asked[0].headers["Authorization"] == "Bearer t"


def _workflow(client: ArgoClient) -> object:
    return client.workflow("w")


def _artifact(client: ArgoClient) -> object:
    return client.artifact("w", node="n", artifact="outputs", largest=10)


PLACES: dict[Callable[[ArgoClient], object], str] = {
    _workflow: "/api/v1/workflows/argo/w",
    _artifact: "/artifact-files/argo/workflows/w/n/outputs/outputs",
}

ANSWERS: list[tuple[Callable[[ArgoClient], object], Answer, type[ArgoError], str]] = [
    (_workflow, Answer(b"{", 200), ArgoUnclearError, "is no JSON object"),
    (_workflow, Answer(b"[]", 200), ArgoUnclearError, "is no JSON object"),
    (_workflow, Answer(b"x" * (LARGEST_ANSWER + 1), 200), ArgoUnclearError, "larger than it may be"),
    (_workflow, Answer(b"{}", 200, cut=9), ArgoUnclearError, "was lost"),
    (_workflow, Answer(b"", 502), ArgoUnclearError, "status 502"),
    (_workflow, Answer(b"", 429), ArgoUnclearError, "status 429"),
    (_workflow, Answer(b"", 302, {"Location": "http://127.0.0.1:9/"}), ArgoRefusedError, "status 302"),
    (_workflow, Answer(b'{"message": "a\\u001b[31m\\n b."}', 400), ArgoRefusedError, r"400\): a \[31m b\.$"),
    (_workflow, Answer(b'{"message": "the token is t-o-k"}', 400), ArgoRefusedError, "the token is …"),
    (_workflow, Answer(b"<html>", 403), ArgoRefusedError, r"\(status 403\)\. Look at ARGO_TOKEN"),
    (_artifact, Answer(b"x" * 11, 200), ArgoUnclearError, "larger than it may be"),
    (_artifact, Answer(b"", 404), ArgoRefusedError, "is not there"),
    (_artifact, Answer(b"", 307, {"Location": "/x/"}), ArgoRefusedError, "status 307"),
]


@pytest.mark.parametrize(("ask", "answer", "kind", "message"), ANSWERS)
def test_an_answer_that_is_none_is_an_error_of_its_kind(
    ask: Callable[[ArgoClient], object], answer: Answer, kind: type[ArgoError], message: str
) -> None:
    with serve() as services, ArgoClient(services.url, token="t-o-k") as client:
        services.answer(PLACES[ask], answer)
        with pytest.raises(kind, match=message):
            ask(client)


def test_what_is_not_there_is_none() -> None:
    with serve() as services, ArgoClient(services.url) as client:
        assert client.workflow("w") is None
        assert client.template("t") is None
        assert client.last_line("w") == ""


def test_a_server_that_is_away_is_unreachable() -> None:
    with ArgoClient("http://127.0.0.1:9") as client, pytest.raises(ArgoUnreachableError):
        client.workflow("w")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", ""),
        (
            b'{"result": {"content": "one"}}\n{"result": {"content": "two"}}\n{"result": {"content": " "}}',
            "two",
        ),
        (b'data: {"result": {"content": "one"}}\n\ndata: [1]\nnoise', "one"),
        (b'{"error": {"message": "no"}}', ""),
    ],
)
def test_the_last_line_of_a_log_is_read_from_either_form(body: bytes, line: str) -> None:
    with serve() as services, ArgoClient(services.url) as client:
        services.answer("/api/v1/workflows/argo/w/log", body)
        assert client.last_line("w") == line


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"result": {"type": "DELETED", "object": {}}}\n\n',
        b'data: {"result": {"type": "MODIFIED", "object": {"status": {"phase": "Failed"}}}}\n\n',
        b'{"result": {"type": "ADDED", "object": {"status": {"phase": "Succeeded"}}}}\n',
    ],
)
def test_the_watch_wakes_at_an_end(body: bytes) -> None:
    with serve() as services, ArgoClient(services.url) as client:
        services.answer("/api/v1/workflow-events/argo", body)
        # Would wait for an hour.
        client.wait_for_change("w", seconds=3600, stop=threading.Event())


@pytest.mark.parametrize("answer", [Answer(b"", 500), Answer(b": a comment\n\n"), Answer(b"{}", cut=5)])
def test_a_watch_that_is_lost_waits_instead(answer: Answer) -> None:
    stop = threading.Event()
    stop.set()
    with serve() as services, ArgoClient(services.url) as client:
        services.answer("/api/v1/workflow-events/argo", answer)
        client.wait_for_change("w", seconds=3600, stop=stop)


def test_names_cannot_leave_their_place() -> None:
    with serve() as services, ArgoClient(services.url) as client:
        client.workflow("../../secrets?x=1")
        assert services.asked[0].path == "/api/v1/workflows/argo/..%2F..%2Fsecrets%3Fx%3D1"
