"""A live server: the application behind uvicorn on a loopback port, and clients that read its streams."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import APIRouter

from clearance.cli.serve import server_of
from clearance.web.app import create_app
from clearance.workspace import Clearance

LONG = 120.0
"""Seconds after which something that should happen never will."""


@contextmanager
def serving(workspace: Clearance, *, routers: Sequence[APIRouter] = ()) -> Iterator[str]:
    """Serve a workspace from a thread of this process; give the address."""
    server = server_of(create_app(workspace, routers=routers))
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(LONG)
            assert not thread.is_alive()


@dataclass(frozen=True)
class Frame:
    """One frame of a stream."""

    event: str
    id: str
    data: dict[str, Any]


class Stream:
    """A stream as a client reads it, frame by frame."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self.retry = ""
        self._answer = answer
        self._lines = answer.iter_lines()

    def next(self) -> Frame | None:
        """Return the next frame; None when the stream has ended. Pings and `retry` are passed over."""
        fields: dict[str, str] = {}
        until = time.monotonic() + LONG
        for line in self._lines:
            assert time.monotonic() < until, "nothing but pings came"
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            self.retry = fields.get("retry", self.retry)
            if "data" in fields:
                return Frame(fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"]))
            fields = {}
        return None

    def wait_for(self, event: str) -> Frame:
        """Return the next frame of this kind."""
        while True:
            found = self.next()
            assert found is not None, f"the stream ended before {event}"
            if found.event == event:
                return found


@contextmanager
def stream(
    address: str,
    topics: str,
    *,
    headers: Mapping[str, str],
    seen: str | None = None,
    path: str = "/api/v1/events",
) -> Iterator[Stream]:
    """Open the event stream of a door, perhaps after the frame that was seen last."""
    more = {} if seen is None else {"Last-Event-ID": seen}
    with (
        httpx.Client(timeout=LONG) as http,
        http.stream(
            "GET", f"{address}{path}", params={"topics": topics}, headers={**headers, **more}
        ) as answer,
    ):
        yield Stream(answer)
