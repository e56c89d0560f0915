"""What lies outside of the product in a case: a mail server, and a web server for chats and hooks.

A slow or lost mail server counts by the clock of the case, as deadlines do.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.journeys.processes import until
from tests.notices.mail import Mail, free_port, serving

_LOOK_EVERY = 0.05
TOKEN = "x" * 24


@dataclass
class MailServer(Mail):
    """A mail server that may be slow, or away for a while. `clock` gives the seconds of the case."""

    clock: Callable[[], float] = time.monotonic
    delay: float = 0.0
    away_until: float = 0.0
    held: int = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Take a mail, when it is time."""
        taken_at = self.clock() + self.delay
        self.held += 1
        try:
            while not self._is_away and self.clock() < taken_at:
                await asyncio.sleep(_LOOK_EVERY)
        finally:  # also when whoever sends it loses patience
            self.held -= 1
        if self._is_away:
            return "421 this server is away"
        return await super().handle_DATA(server, session, envelope)

    @property
    def _is_away(self) -> bool:
        return self.clock() < self.away_until

    def to(self, person: str) -> list[EmailMessage]:
        """Return the mails to a person, the oldest first."""
        return [mail for mail in self.messages if str(mail["to"]).strip("<>") == address_of(person)]


@dataclass
class Outside:
    """The mail server, and what was posted to the web server: `(path, body)`, the oldest first."""

    mail: MailServer
    posted: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def chat(self) -> str:
        """The address of the chat that all reviewers read: an incoming hook of the form that Slack has."""
        return f"mmost://127.0.0.1:{self.port}/{TOKEN}"

    @property
    def hook(self) -> str:
        """The address of a server that wants to be told."""
        return f"http://127.0.0.1:{self.port}/hook"

    def said_in_chat(self) -> list[str]:
        """Return what was posted to the chat, each with everything that its post held."""
        return [_texts(json.loads(body)) for path, body in list(self.posted) if path.startswith("/hooks/")]

    def told(self) -> list[str]:
        """Return what the other server was told."""
        return [body for path, body in list(self.posted) if path == "/hook"]


def address_of(person: str) -> str:
    """Return a person's mail address."""
    return f"{person}@corp.example"


@contextmanager
def opened(clock: Callable[[], float]) -> Iterator[Outside]:
    """Serve until the case is over."""
    # What this library logs goes to whatever a command of the case took for the terminal.
    logging.getLogger("mail.log").setLevel(logging.CRITICAL)
    with serving(MailServer(free_port(), clock=clock)) as mail:
        assert isinstance(mail, MailServer)
        outside = Outside(mail)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _writing_down(outside))
        outside.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield outside
        finally:
            mail.away_until = float("inf")  # whatever is held is let go
            until(lambda: mail.held == 0, what="the end of what is held")
            server.shutdown()
            server.server_close()
            thread.join()


def _writing_down(outside: Outside) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            outside.posted.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _texts(value: object) -> str:
    """Return every text in what was posted, with its keys: buttons would be there, too."""
    match value:
        case dict():
            return "\n".join(f"{name}: {_texts(item)}" for name, item in value.items())
        case list():
            return "\n".join(map(_texts, value))
        case _:
            return str(value)
