"""A mail server on loopback that writes down what it is sent; with a certificate, it offers STARTTLS."""

import socket
import ssl
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
    """The server: where it is, who was let in, and the mails that it was sent, each encrypted or not."""

    port: int
    names: list[str] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:
        """Take a mail."""
        self.encrypted.append(session.ssl is not None)
        content = envelope.original_content or b""
        self.messages.append(message_from_bytes(content, policy=default))
        return "250 taken"

    def address(
        self, *, to: str = "ben@example.org", secret: str = "geheim-77", more: str = "&mode=insecure"
    ) -> str:
        """Return the address, as Apprise has it, by which this server is told to bring a mail to somebody."""
        scheme = "mailto" if "insecure" in more else "mailtos"
        return (
            f"{scheme}://robot:{secret}@127.0.0.1:{self.port}/?smtp=127.0.0.1&from=robot@example.org&to={to}"
            f"{more}"
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
def serving(mail: Mail, *, tls: ssl.SSLContext | None = None) -> Iterator[Mail]:
    """Have the server take mails. With `tls` it offers STARTTLS, and takes those that come without it too."""

    def let_in(
        _server: SMTP, _session: Session, _envelope: Envelope, _kind: str, shown: object
    ) -> AuthResult:
        login = getattr(shown, "login", b"")
        mail.names.append(login.decode())
        return AuthResult(success=True)

    controller = Controller(
        mail, "127.0.0.1", mail.port, authenticator=let_in, auth_require_tls=False, tls_context=tls
    )
    controller.start()
    try:
        yield mail
    finally:
        controller.stop()
