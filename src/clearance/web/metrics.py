"""Metrics: what Prometheus reads: how much waits, and how requests are answered."""

import time
from collections.abc import Iterable, Iterator

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearance.store.counting import Counts, counts
from clearance.web.access import PersonOnly, Workspace
from clearance.web.bodies import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["metrics"])

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "The text format of Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def metrics(request: Request, here: Workspace, _: PersonOnly) -> Response:
    """Tell how much waits in the workspace, and what this process has answered."""
    with here.database.read() as tx:
        found = counts(tx)
    registry = CollectorRegistry()
    registry.register(_Workspace(found))
    measured: CollectorRegistry = request.app.state.measured
    return Response(generate_latest(registry) + generate_latest(measured), media_type=CONTENT_TYPE_LATEST)


def add_measuring(app: FastAPI) -> None:
    """Count and time the requests of an application, in a registry of its own."""
    app.state.measured = CollectorRegistry()
    app.add_middleware(Measured, registry=app.state.measured)


class Measured:
    """Counts requests and times them, by the template of their route; a stream is timed to its first byte."""

    def __init__(self, app: ASGIApp, *, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter(
            "clearance_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "clearance_http_request_seconds",
            "Seconds until an answer began.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Only what we know: names that a client makes up would grow without bounds.
                route = getattr(scope.get("route"), "path", "none")
                method = scope["method"] if route != "none" and scope["method"] in _METHODS else "none"
                self._requests.labels(method, route, str(message["status"])).inc()
                self._seconds.labels(method, route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counted)


class _Workspace(Collector):
    """The counts of one moment, as Prometheus has them."""

    def __init__(self, found: Counts) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield _gauge(
            "clearance_reviews_waiting", "Reviews that wait, by risk.", "risk", self._found.reviews_waiting
        )
        yield _gauge(
            "clearance_runs_open", "Runs that have not ended, by state.", "state", self._found.runs_open
        )
        uncertain = GaugeMetricFamily("clearance_calls_uncertain", "Calls whose outcome is unknown.")
        uncertain.add_metric([], self._found.calls_uncertain)
        yield uncertain


def _gauge(name: str, help: str, label: str, values: Iterable[tuple[str, int]]) -> GaugeMetricFamily:
    made = GaugeMetricFamily(name, help, labels=[label])
    for value, count in values:
        made.add_metric([value], count)
    return made
