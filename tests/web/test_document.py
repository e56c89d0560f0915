"""The OpenAPI document: what it promises holds for whatever is sent, and no answer is left out of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from clearance.web.problems import MEDIA_TYPE
from tests.databases import Databases
from tests.web.asked import ask
from tests.web.served import Served
from tests.web.test_access import ROUTES

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 10
# Streams have tests of their own.
_ENDLESS = (
    "/api/v1/events",
    "/api/v1/runs/{run_id}/stream",
    "/api/v1/pipeline/{run_id}/events",
    "/pipeline/start",
    "/pipeline/{run_id}/resume",
)


@pytest.fixture(scope="module")
def served_once(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one workspace for all that is made up here."""
    folder: Path = tmp_path_factory.mktemp("document")
    with Served.open(databases.migrated("sqlite", folder), home=folder, research=True) as served:
        for _ in range(3):
            ask(served)
        yield served


@pytest.fixture(scope="module")
def described(served_once: Served) -> Any:
    """Give the document of the application, as schemathesis reads it."""
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", served_once.http.app)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=str)
@pytest.mark.parametrize("route", [each for each in ROUTES if each[1] not in _ENDLESS], ids=" ".join)
def test_whatever_is_sent_is_answered_as_the_document_says(
    described: Any, served_once: Served, route: tuple[str, str], mode: schemathesis.GenerationMode
) -> None:
    method, path = route

    @seed(7)
    @settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=described[path][method.upper()].as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if isinstance(case.body, dict) and "wait" in case.body:
            case.body["wait"] = 0
        if isinstance(case.body, dict) and "symbol" in case.body:
            # No test asks a service outside this machine.
            case.body["offline"] = True
        case.call_and_validate(headers=served_once.key(), checks=CHECKS)

    check()


def test_every_refusal_is_a_problem_and_every_route_says_which(served: Served) -> None:
    document = served.http.get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            refusals = {code: each for code, each in operation["responses"].items() if int(code) >= 400}
            assert all([*each["content"]] == [MEDIA_TYPE] for each in refusals.values()), (method, path)
            if path != "/healthz":
                assert "503" in refusals
            if operation.get("security"):
                assert {"401", "403"} <= refusals.keys()


def test_the_document_describes_no_shape_that_nothing_has(served: Served) -> None:
    document = served.http.get("/api/v1/openapi.json").json()
    shapes = document["components"]["schemas"]
    assert "HTTPValidationError" not in shapes
    used = served.http.get("/api/v1/openapi.json").text
    assert all(f"#/components/schemas/{name}" in used for name in shapes)
