"""A mail server on loopback that writes down what it is sent."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session


@dataclass
class Mail:
    """The server: where it is, who was let in, and the mails that it was sent."""

    port: int
    names: list[str] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        """Take a mail."""
        content = envelope.original_content or b""
        self.messages.append(message_from_bytes(content, policy=default))
        return "250 taken"

    def address(self, *, to: str = "ben@example.org", secret: str = "geheim-77") -> str:
        """Return the address, as Apprise has it, by which this server is told to bring a mail to somebody."""
        return (
            f"mailto://robot:{secret}@127.0.0.1:{self.port}/?smtp=127.0.0.1&from=robot@example.org&to={to}"
            "&mode=insecure"
        )

    @property
    def texts(self) -> list[str]:
        """The mails in plain text: subject and body."""
        found = []
        for each in self.messages:
            body = each.get_body(("plain", "html"))
            found.append(f"{each['subject']}\n{body.get_content() if body else ''}")
        return found


def free_port() -> int:
    """Return a port of loopback where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def serving(mail: Mail) -> Iterator[Mail]:
    """Have the server take mails."""

    def let_in(
        _server: SMTP, _session: Session, _envelope: Envelope, _kind: str, shown: object
    ) -> AuthResult:
        login = getattr(shown, "login", b"")
        mail.names.append(login.decode())
        return AuthResult(success=True)

    controller = Controller(mail, "127.0.0.1", mail.port, authenticator=let_in, auth_require_tls=False)
    controller.start()
    try:
        yield mail
    finally:
        controller.stop()
