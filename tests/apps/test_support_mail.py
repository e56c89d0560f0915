"""The support desk's mail: whole files in the outbox, or handed to a server, and never a guess."""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clearance.apps.chat.support.errors import SupportError
from clearance.apps.chat.support.outbox import SmtpSettings
from clearance.apps.chat.support.tools import support_tools
from clearance.errors import CallUncertainError

BODY = "Line 1\n.\nLine 3 – ok\n"
MAIL = {"to": "ana@example.org", "subject": "Vaša lampa 灯", "body": BODY}


def sent_with(folder: Path, smtp: SmtpSettings | None = None) -> dict[str, Any]:
    """Send the mail by the tool, as an agent does, and return the object that its text is."""
    tool = next(tool for tool in support_tools(folder, smtp=smtp) if tool.name == "send_email")
    result: dict[str, Any] = json.loads(tool.invoke(MAIL))
    return result


def mails(folder: Path) -> list[EmailMessage]:
    """Read the mails in the outbox with the standard library's own parser."""
    files = sorted((folder / "outbox").iterdir())
    assert all(file.suffix == ".eml" for file in files)
    return [parsed(file.read_bytes()) for file in files]


def parsed(content: bytes) -> EmailMessage:
    """Return the mail that these bytes are."""
    return message_from_bytes(content, policy=policy.default)


def text_of(mail: EmailMessage) -> str:
    """Return the text of a mail; on its way each line ends with a return and a line feed."""
    text: str = mail.get_content()
    return text.replace("\r\n", "\n")


# Mail to the outbox


def test_a_mail_is_one_whole_file_that_any_mail_program_reads(
    tmp_path: Path,
) -> None:
    sent = sent_with(tmp_path)
    [mail] = mails(tmp_path)
    assert sent["handed_to"] == f"outbox/{next((tmp_path / 'outbox').iterdir()).name}"
    assert (mail["To"], mail["Subject"]) == (MAIL["to"], MAIL["subject"])
    assert mail["Message-ID"] == sent["message_id"]
    assert text_of(mail) == BODY


def test_two_equal_mails_are_two_files(tmp_path: Path) -> None:
    assert sent_with(tmp_path)["message_id"] != sent_with(tmp_path)["message_id"]
    assert len(mails(tmp_path)) == 2


def test_an_outbox_that_cannot_be_written_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("a file stands where the folder should be")
    with pytest.raises(SupportError, match="The mail was not sent"):
        sent_with(tmp_path)


# Mail by SMTP, to an independent server


class Postbox:
    """What an `aiosmtpd` server on the loopback address does with mail: keep it, or answer oddly."""

    def __init__(self, *, recipient: str = "250 OK", data: str | None = "250 OK") -> None:
        self.recipient = recipient
        self.data = data
        self.kept: list[tuple[str | None, list[str], EmailMessage]] = []
        self.port = 0

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        envelope.rcpt_tos.append(address)
        return self.recipient

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        del session
        assert isinstance(envelope.content, bytes)
        self.kept.append((envelope.mail_from, envelope.rcpt_tos, parsed(envelope.content)))
        if self.data is None:  # the line is cut before the answer
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return self.data or ""


@contextmanager
def serving(box: Postbox, **options: Any) -> Iterator[Postbox]:
    """Run a mail server for the postbox on a free port of this machine."""
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(
        loop.create_server(lambda: SMTP(box, loop=loop, **options), "127.0.0.1", 0)
    )
    box.port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def end() -> None:
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield box
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


def test_a_mail_is_handed_to_the_server_whole(tmp_path: Path) -> None:
    with serving(Postbox()) as box:
        smtp = SmtpSettings(host="127.0.0.1", port=box.port, sender="desk@shop.example")
        sent = sent_with(tmp_path, smtp)
    [(sender, recipients, mail)] = box.kept
    assert (sender, recipients) == ("desk@shop.example", ["ana@example.org"])
    assert (mail["From"], mail["Subject"]) == ("desk@shop.example", MAIL["subject"])
    assert text_of(mail) == BODY
    assert (mail["Message-ID"], sent["handed_to"]) == (sent["message_id"], "127.0.0.1")
    assert not (tmp_path / "outbox").exists()


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (Postbox(recipient="550 no such user"), r"it was not sent\. \(code 550\)"),
        (Postbox(data="554 not wanted"), r"it was not sent\. \(code 554\)"),
    ],
)
def test_a_refused_mail_was_surely_not_sent(tmp_path: Path, box: Postbox, message: str) -> None:
    with serving(box), pytest.raises(SupportError, match=message):
        sent_with(tmp_path, SmtpSettings(host="127.0.0.1", port=box.port))


def test_a_server_that_is_not_there_was_surely_not_given_the_mail(tmp_path: Path) -> None:
    with serving(Postbox()) as box:
        pass
    with pytest.raises(SupportError, match="was not sent"):
        sent_with(tmp_path, SmtpSettings(host="127.0.0.1", port=box.port))


def test_a_line_cut_before_the_last_answer_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    with serving(Postbox(data=None)) as box, pytest.raises(CallUncertainError, match="may have"):
        sent_with(tmp_path, SmtpSettings(host="127.0.0.1", port=box.port))
    assert len(box.kept) == 1


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The server's side of TLS, with a certificate that this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = tmp_path / "server.pem"
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    both.write_bytes(public + private)
    monkeypatch.setenv("SSL_CERT_FILE", str(both))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context


def login(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    """Let the support desk in with its password."""
    del server, session, envelope, mechanism
    return AuthResult(success=data == LoginPassword(b"desk", b"right"), handled=False)


def test_a_login_travels_behind_tls(tmp_path: Path, tls: ssl.SSLContext) -> None:
    secure = {"tls_context": tls, "require_starttls": True, "authenticator": login}
    with serving(Postbox(), auth_required=True, **secure) as box:
        right = SmtpSettings(
            host="localhost", port=box.port, starttls=True, username="desk", password="right"
        )
        sent_with(tmp_path, right)
        wrong = SmtpSettings(
            host="localhost", port=box.port, starttls=True, username="desk", password="wr0ng"
        )
        with pytest.raises(SupportError, match=r"\(code 535\)") as refused:
            sent_with(tmp_path, wrong)
    assert len(box.kept) == 1
    assert "wr0ng" not in str(refused.value) + repr(wrong)


def test_a_server_that_nobody_vouches_for_gets_nothing(
    tmp_path: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(Postbox(), tls_context=tls) as box, pytest.raises(SupportError, match="not sent"):
        sent_with(tmp_path, SmtpSettings(host="localhost", port=box.port, starttls=True))
    assert not box.kept


@pytest.mark.parametrize(
    "login",
    [
        {"username": "desk"},
        {"password": "p", "starttls": True},
        {"username": "desk", "password": "p"},
    ],
)
def test_settings_that_would_show_a_password_are_refused(login: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="password"):
        SmtpSettings(host="mail.example", **login)
