"""Mail of the support desk: to a folder of `.eml` files, or by SMTP where that is set up."""

import os
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Any
from uuid import uuid4

from clearance.apps.chat.support.errors import SupportError
from clearance.errors import CallUncertainError

FOLDER_NAME = "outbox"
SENDER = "support@example.org"


@dataclass(frozen=True)
class SmtpSettings:
    """The server that mail is handed to. A name and password are sent only behind STARTTLS.

    `timeout` is in seconds, for each step of the conversation.
    """

    host: str
    port: int = 25
    sender: str = SENDER
    starttls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 20.0

    def __post_init__(self) -> None:
        """Raise `ValueError` for half of a login, or one that would travel in the clear."""
        if (self.username is None) != (self.password is None):
            raise ValueError("Give the mail server's user name and password together, or neither.")
        if self.username is not None and not self.starttls:
            raise ValueError("A mail password is sent only behind STARTTLS. Turn STARTTLS on.")


def send(
    folder: Path, to: str, *, subject: str, body: str, smtp: SmtpSettings | None = None
) -> dict[str, Any]:
    """Send one mail, and return its address, subject, message id and what it was handed to.

    Without `smtp` it is written whole to a new file in the outbox folder. Raises `SupportError`
    when it was surely not sent, `CallUncertainError` when the server's last word did not arrive.
    """
    message = _message(to, subject=subject, body=body, sender=smtp.sender if smtp else SENDER)
    place = _hand_over(message, smtp) if smtp else _write(message, folder / FOLDER_NAME)
    return {
        "to": to,
        "subject": subject,
        "message_id": str(message["Message-ID"]),
        "handed_to": place,
    }


def _message(to: str, *, subject: str, body: str, sender: str) -> EmailMessage:
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = sender
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    message.set_content(body)
    return message


def _write(message: EmailMessage, outbox: Path) -> str:
    """Write the mail to a file that appears whole or not at all, and return its place."""
    name = f"{message['Date'].datetime:%Y%m%dT%H%M%SZ}-{uuid4().hex}.eml"
    draft = outbox / f".{name}.draft"
    try:
        outbox.mkdir(parents=True, exist_ok=True)
        with open(draft, "xb", opener=_private) as file:
            file.write(message.as_bytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, outbox / name)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise SupportError(
            f"The mail was not sent: the outbox cannot be written ({type(error).__name__})."
        ) from error
    _sync_folder(outbox)
    return f"{outbox.name}/{name}"


def _private(path: str, flags: int) -> int:
    """Open a file that only this user can read."""
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    """Make the file's name last through a power cut, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _hand_over(message: EmailMessage, settings: SmtpSettings) -> str:
    """Hand the mail to the server, and return the server's name.

    A refusal means that it was not sent. A connection lost after the content went out means that
    nobody here knows.
    """
    server = _connect(settings)
    try:
        server.send_message(message)
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        raise SupportError(f"The mail server refused the mail; it was not sent. {_code(error)}") from error
    except smtplib.SMTPNotSupportedError as error:
        raise SupportError("The mail server cannot carry this mail; it was not sent.") from error
    except (smtplib.SMTPException, OSError) as error:
        raise CallUncertainError(
            "The mail server did not confirm the mail. It may have been sent; it is not sent again."
        ) from error
    finally:
        with suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()
    return settings.host


def _connect(settings: SmtpSettings) -> smtplib.SMTP:
    """Return a connection on which nothing of the mail was sent yet."""
    server: smtplib.SMTP | None = None
    try:
        server = smtplib.SMTP(settings.host, settings.port, timeout=settings.timeout)
        if settings.starttls:
            server.starttls(context=ssl.create_default_context())
        if settings.username is not None and settings.password is not None:
            server.login(settings.username, settings.password)
    except (smtplib.SMTPException, OSError) as error:
        if server is not None:
            server.close()
        raise SupportError(
            f"The mail server cannot be used; the mail was not sent. {_code(error)}"
        ) from error
    return server


def _code(error: Exception) -> str:
    """Return the server's code or the kind of the error: texts may hold the mail or the login."""
    if isinstance(error, smtplib.SMTPResponseException):
        return f"(code {error.smtp_code})"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = sorted({code for code, _ in error.recipients.values()})
        return f"(code {', '.join(map(str, codes))})"
    return f"({type(error).__name__})"
