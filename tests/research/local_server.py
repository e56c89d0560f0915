"""A local server that answers as other services do, with their faults: nothing here leaves the machine."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Answer:
    """One answer. `cut` bytes of the body are promised and never sent; `bare` promises no length at all."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    bare: bool = False


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]


class Services:
    """Answers by path, in turn; the last one is given from then on. An unknown path is a 404."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.url = ""
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        self._lock = threading.Lock()

    def answer(self, path: str, *answers: Answer | bytes) -> None:
        """Give these answers to the path, in place of those before; `path?name=value` is more special."""
        self._answers[path] = [Answer(each) if isinstance(each, bytes) else each for each in answers]

    def count(self, path: str) -> int:
        """How often a path was asked."""
        return sum(each.path == path for each in self.asked)

    def take(self, asked: Asked) -> Answer:
        """Return the answer that is due."""
        with self._lock:
            self.asked.append(asked)
            special = [f"{asked.path}?{name}={value}" for name, value in asked.params.items()]
            for path in (*special, asked.path):
                if answers := self._answers.get(path):
                    return answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(b'{"error": "not found"}', status=404)


@contextmanager
def serve() -> Iterator[Services]:
    """Serve on a free port of this machine."""
    services = Services()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            params = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            answer = services.take(Asked(parts.path, params, dict(self.headers)))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if not answer.bare:
                self.send_header("Content-Length", str(len(answer.body) + answer.cut))
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    services.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield services
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
