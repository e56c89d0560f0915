"""Tracing: OpenTelemetry spans for what is asked, decided and executed; they cost nothing without its SDK.

A run's trace has an id that follows from the run's own, so that every process adds to the same trace and
nothing is kept for it. What a person does belongs to that person's request, and is linked to the run's trace.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clearance.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

NAME = "clearance"
_PATIENCE_MS = 2000
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def configure() -> None:
    """Send spans where OpenTelemetry's own variables say, if they say so.

    Raises `SettingsError` when they do and the extra `otel` is not installed.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            f"{_ENDPOINTS[0]} is set, and the SDK is not installed. Install it: pip install clearance[otel]"
        ) from None
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": NAME}
    provider = TracerProvider(resource=Resource.create(named))
    # At the end of the process the provider sends what it still has.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def flush() -> None:
    """Send what was recorded and not sent yet, before a process ends that does not end by itself."""
    from opentelemetry import trace

    send = getattr(trace.get_tracer_provider(), "force_flush", None)
    if send is not None:
        send(_PATIENCE_MS)


@contextmanager
def in_run(name: str, run_id: str, **attributes: str | int) -> Iterator[None]:
    """Record what happens inside as a span of the run's trace."""
    from opentelemetry import trace

    # Also where another trace is going on: what a run did stands in one place, whoever moved it on.
    links = [trace.Link(here)] if (here := trace.get_current_span().get_span_context()).is_valid else []
    given = {"clearance.run.id": run_id, **_dotted(attributes)}
    tracer = trace.get_tracer(NAME)
    with tracer.start_as_current_span(name, context=_context(run_id), attributes=given, links=links):
        yield


@contextmanager
def about_run(name: str, run_id: str, **attributes: str | int) -> Iterator[None]:
    """Record what happens inside as a span of the caller's own trace, linked to the run's."""
    from opentelemetry import trace

    given = {"clearance.run.id": run_id, **_dotted(attributes)}
    link = trace.Link(run_context(run_id))
    with trace.get_tracer(NAME).start_as_current_span(name, attributes=given, links=[link]):
        yield


def run_context(run_id: str) -> "SpanContext":
    """Return where in the world of traces a run is: the same for every process."""
    from opentelemetry import trace

    digest = hashlib.sha256(run_id.encode()).digest()
    return trace.SpanContext(
        trace_id=int.from_bytes(digest[:16]),
        span_id=int.from_bytes(digest[16:24]),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )


def _context(run_id: str) -> "Context":
    from opentelemetry import trace

    return trace.set_span_in_context(trace.NonRecordingSpan(run_context(run_id)))


def _dotted(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    """Return attributes under their names in OpenTelemetry: `gen_ai__tool__name` is `gen_ai.tool.name`."""
    return {name.replace("__", "."): value for name, value in attributes.items()}
