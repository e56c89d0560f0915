"""A provider that sends exactly the bytes that a test wrote down, for what no ready-made one can do."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One answer. `missing` bytes are announced and never sent; a status of 0 hangs up without a word."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0


def plain(body: object, *, status: int = 200, **headers: str) -> Answer:
    """Return an answer in JSON; `_` in a header's name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body), {"Content-Type": "application/json", **named})


def stream(*events: dict[str, Any]) -> Answer:
    """Return an answer in pieces, each a server-sent event named by its `type` where it has one."""
    text = "".join(
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return Answer(200, text, {"Content-Type": "text/event-stream"})


@dataclass
class Peer:
    """Where it listens, and what it was sent."""

    url: str
    bodies: list[dict[str, Any]]


@contextmanager
def answering(*answers: Answer) -> Iterator[Peer]:
    """Serve these answers in turn on loopback, the last one for ever."""
    left = list(answers)
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer.status:
                self._send(answer)
            self.close_connection = True

        def _send(self, answer: Answer) -> None:
            sent = answer.body.encode()
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent) + answer.missing))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Peer(f"http://127.0.0.1:{server.server_port}", bodies)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
