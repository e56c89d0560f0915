"""Metrics: what waits, and how requests were answered, as Prometheus reads it."""

from prometheus_client.parser import text_string_to_metric_families

from tests.web.asked import ask, decide
from tests.web.served import Served


def _samples(served: Served) -> dict[tuple[str, tuple[str, ...]], float]:
    answer = served.http.get("/metrics", headers=served.key())
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_what_waits_is_counted_by_risk_and_state(served: Served) -> None:
    settled = ask(served)
    ask(served, ("pay", "{}"))
    decide(served, settled)
    found = _samples(served)
    assert found["clearance_reviews_waiting", ("high",)] == 1
    assert found["clearance_reviews_waiting", ("medium",)] == 0
    assert found["clearance_runs_open", ("waiting",)] == 1
    assert found["clearance_runs_open", ("queued",)] == 1
    assert found["clearance_calls_uncertain", ()] == 0


def test_requests_are_counted_by_the_template_of_their_route(served: Served) -> None:
    review = ask(served)
    served.http.get(f"/api/v1/reviews/{review.id}", headers=served.key())
    served.http.get("/api/v1/reviews/none", headers=served.key())
    decide(served, review)
    for made_up in ("/a", "/b"):
        served.http.get(made_up)
    found = _samples(served)
    path = "/api/v1/reviews/{review_id:path}"
    assert found["clearance_http_requests_total", ("GET", path, "200")] == 1
    assert found["clearance_http_requests_total", ("GET", path, "404")] == 1
    assert found["clearance_http_requests_total", ("POST", f"{path}/decide", "200")] == 1
    assert found["clearance_http_requests_total", ("none", "none", "404")] == 2
    assert found["clearance_http_request_seconds_count", ("POST", f"{path}/decide")] == 1
