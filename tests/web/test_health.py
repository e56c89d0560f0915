"""Whether the process answers, and its database."""

import pytest

from tests.web.served import Served


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_told_to_everybody(served: Served, path: str) -> None:
    answer = served.http.get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_an_address_that_is_not_there_is_a_problem_with_a_code(served: Served) -> None:
    answer = served.http.get("/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"
