"""Somebody elsewhere who is told things: a web server and a mail server on loopback."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.notices.mail import Mail, free_port, serving
from tests.web.served import Served


@dataclass
class Heard:
    """What the server was sent: headers and bodies. `answers` are the statuses that it gives, then 204.

    `came` is set by each message; while `held` is not set, nothing is answered.
    """

    address: str = ""
    answers: list[int] = field(default_factory=list)
    messages: list[tuple[dict[str, str], str]] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def elsewhere() -> Iterator[Heard]:
    """A server that writes down what it is sent; a redirect leads to itself."""
    heard = Heard()
    heard.held.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            heard.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
            heard.came.set()
            heard.held.wait()
            self.send_response(heard.answers.pop(0) if heard.answers else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    heard.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield heard
    heard.held.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def mail() -> Iterator[Mail]:
    """A mail server that takes mails."""
    with serving(Mail(free_port())) as found:
        yield found


@pytest.fixture
def served(migrated_database_url: str, tmp_path: Path) -> Iterator[Served]:
    """A workspace with a worker, and the application over it."""
    with Served.open(migrated_database_url, home=tmp_path) as found:
        yield found
