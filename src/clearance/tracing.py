"""Tracing: OpenTelemetry spans for what is asked, decided and executed; they cost nothing without its SDK.

A run's trace has an id that follows from the run's own, so that every process adds to the same trace and
nothing is kept for it. What a person does belongs to that person's request, and is linked to the run's trace.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext

NAME = "clearance"


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
