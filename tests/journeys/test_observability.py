"""What an operator sees: one trace for a run, the decision linked to it, and a log without what was said."""

import gzip
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import clearance
from clearance import logs
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.tracing import run_context
from clearance.workspace import Clearance
from tests.scripted import ScriptedModel, calls

pytestmark = pytest.mark.sqlite_by_day

SECRET = "iban-DE02-7711"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Where the spans of this process go; a provider is set once in a process."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    """The spans of one test."""
    exporter.clear()
    return exporter


@pytest.fixture
def workspace(migrated_database_url: str, tmp_path: Path) -> Iterator[Clearance]:
    """An open workspace with a worker, on each database."""
    with clearance.open(migrated_database_url, home=tmp_path, person="ann") as opened:
        yield opened


def chat(workspace: Clearance, *, fails: bool = False) -> ReviewedChat:
    """Return a chat whose one call waits."""

    @tool
    def pay(account: str) -> str:
        """Pay."""
        if fails:
            raise ValueError(f"no such account {account}")
        return f"paid {account}"

    model = ScriptedModel([calls(("pay", {"account": SECRET})), f"Paid {SECRET}."])
    agent = create_reviewed_agent(model, [pay], tools_requiring_approval=["pay"], using=workspace)
    return ReviewedChat(agent)


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """Return the last span of each name."""
    return {span.name: span for span in spans.get_finished_spans()}


def test_everything_that_a_run_did_stands_in_one_trace(
    workspace: Clearance, spans: InMemorySpanExporter
) -> None:
    talk = chat(workspace)
    pending: Any = talk.send_message("t1", "Pay.")["pending_review"]
    talk.submit_review("t1", [{"type": "approve"}])
    found = named(spans)
    run = run_context(pending["run_id"])
    for name in ("clearance.ask", "clearance.segment", "execute_tool pay"):
        context = found[name].context
        assert context is not None
        assert context.trace_id == run.trace_id
    said = found["execute_tool pay"].attributes
    assert said is not None
    assert said["gen_ai.tool.name"] == "pay"
    assert said["gen_ai.tool.call.id"] == "call_0"
    assert said["clearance.call.key"] == pending["action_requests"][0]["call"]


def test_a_decision_stands_in_the_trace_of_its_request_and_is_linked_to_the_run(
    workspace: Clearance, spans: InMemorySpanExporter
) -> None:
    talk = chat(workspace)
    pending: Any = talk.send_message("t1", "Pay.")["pending_review"]
    with trace.get_tracer("test").start_as_current_span("POST /decide") as request:
        talk.submit_review("t1", [{"type": "approve"}])
    decided = named(spans)["clearance.decide"]
    assert decided.context is not None
    assert decided.context.trace_id == request.get_span_context().trace_id
    assert [link.context.trace_id for link in decided.links] == [run_context(pending["run_id"]).trace_id]


def test_no_span_holds_an_argument(workspace: Clearance, spans: InMemorySpanExporter) -> None:
    talk = chat(workspace)
    talk.send_message("t1", f"Pay {SECRET}.")
    talk.submit_review("t1", [{"type": "approve"}])
    assert spans.get_finished_spans()
    assert not any(SECRET in span.to_json() for span in spans.get_finished_spans())


@pytest.fixture(params=["text", "json"])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the log writes, in each form, at the lowest level."""
    stream = io.StringIO()
    before, level = logging.root.handlers[:], logging.root.level
    monkeypatch.setattr("sys.stderr", stream)
    logs.configure(level="DEBUG", form=request.param)
    yield stream
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


@pytest.mark.parametrize("fails", [False, True])
def test_no_line_of_the_log_holds_an_argument_or_a_message(
    workspace: Clearance, written: io.StringIO, fails: bool
) -> None:
    talk = chat(workspace, fails=fails)
    talk.send_message("t1", f"Pay {SECRET}.")
    talk.submit_review("t1", [{"type": "approve", "message": f"fine by me, {SECRET}"}])
    logging.getLogger("clearance").warning("the log is on")
    assert "the log is on" in written.getvalue()
    assert SECRET not in written.getvalue()


def test_an_exception_is_logged_by_its_sort_and_places_alone(written: io.StringIO) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("clearance").exception("thread t1: the segment failed")
    text = written.getvalue()
    assert "ValueError" in text
    assert "test_observability.py" in text
    assert SECRET not in text
    if text.startswith("{"):
        assert json.loads(text)["event"] == "thread t1: the segment failed"


_SENDS = """
from clearance import tracing
tracing.configure()
with tracing.in_run("clearance.segment", "run-1"):
    pass
"""


def test_spans_go_to_the_collector_that_the_environment_names() -> None:
    got: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            content = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            got.append(f"{self.path} {content!r}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        subprocess.run([sys.executable, "-c", _SENDS], env=environment, check=True, timeout=60)
        server.shutdown()
    [sent] = got
    assert sent.startswith("/v1/traces ")
    assert "clearance.segment" in sent
