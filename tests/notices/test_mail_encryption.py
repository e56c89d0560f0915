"""Mail travels encrypted, to a server that shows a certificate for its name, or not at all."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clearance.audit import AuditKind
from clearance.errors import InvalidInputError
from clearance.notices.sending import Outgoing, check_address, send_all
from clearance.notices.webhook import PAUSES
from clearance.notices.wording import Message
from clearance.store.deliveries import DeliveryStatus
from tests.notices.mail import Mail, free_port, serving
from tests.notices.office import LOOPBACK, Office, opened

pytestmark = pytest.mark.sqlite_by_day

NOT_TAKEN = "The service did not take it."


@dataclass(frozen=True)
class Shown:
    """A certificate that a server shows, and the file by which it is trusted."""

    tls: ssl.SSLContext
    trusted_by: Path

    @classmethod
    def of(cls, address: str, folder: Path) -> "Shown":
        """Make one for a server at this address, signed by itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"mail at {address}")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        folder.mkdir()
        certificate, private = folder / "certificate.pem", folder / "key.pem"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, private)
        return cls(tls, certificate)


@pytest.fixture
def right(tmp_path: Path) -> Shown:
    """A certificate for the server's own address."""
    return Shown.of("127.0.0.1", tmp_path / "right")


@pytest.fixture
def wrong(tmp_path: Path) -> Shown:
    """A certificate for another server."""
    return Shown.of("127.0.0.2", tmp_path / "wrong")


@pytest.fixture
def mail() -> Mail:
    """A mail server that nobody has started yet."""
    return Mail(free_port())


@pytest.fixture
def office(migrated_database_url: str, tmp_path: Path) -> Iterator[Office]:
    """An office with ann, ben and cleo."""
    with opened(migrated_database_url, tmp_path) as found:
        yield found


def sent(mail: Mail, *, more: str = "") -> str | None:
    """Send one mail to the server, and return why it did not arrive."""
    outgoing = Outgoing("1", mail.address(more=more), Message("a subject", "a body", {}))
    return send_all([outgoing], allowed=LOOPBACK)["1"]


def trust(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    """Have this machine trust a certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(shown.trusted_by))


def test_mail_goes_over_starttls(mail: Mail, right: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch, right)
    with serving(mail, tls=right.tls):
        assert sent(mail) is None
    assert (len(mail.messages), mail.encrypted, mail.names) == (1, [True], ["robot"])


def test_nothing_is_sent_in_the_open_where_the_server_offers_no_starttls(mail: Mail) -> None:
    with serving(mail):
        assert sent(mail) == NOT_TAKEN
    assert (mail.messages, mail.names) == ([], [])


def test_mail_to_a_server_whose_certificate_nobody_trusts_is_not_sent(mail: Mail, right: Shown) -> None:
    with serving(mail, tls=right.tls):
        assert sent(mail) == NOT_TAKEN
    assert (mail.messages, mail.names) == ([], [])


def test_mail_to_a_server_with_the_certificate_of_another_is_not_sent(
    mail: Mail, wrong: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, wrong)
    with serving(mail, tls=wrong.tls):
        assert sent(mail) == NOT_TAKEN
    assert (mail.messages, mail.names) == ([], [])


@pytest.mark.parametrize("said", ["&verify=yes", "&verifyy=no"])
def test_only_verify_no_takes_any_certificate(mail: Mail, wrong: Shown, said: str) -> None:
    with serving(mail, tls=wrong.tls):
        assert sent(mail, more=said) == NOT_TAKEN
        assert sent(mail, more="&verify=no") is None
    assert mail.encrypted == [True]


@pytest.mark.parametrize("said", ["", "perhaps", "true", "YES!", "%6Eope"])
@pytest.mark.parametrize("name", ["verify", "Verify", "%76erify", "verify+"])
def test_an_address_that_says_neither_yes_nor_no_is_refused(mail: Mail, name: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match="verify is yes"):
        check_address(mail.address(more=f"&{name}={said}"))


@pytest.mark.parametrize("said", ["yes", "no", "No"])
def test_an_address_that_says_yes_or_no_is_taken(mail: Mail, said: str) -> None:
    check_address(mail.address(more=f"&verify={said}"))


def test_a_wrong_certificate_is_seen_as_undelivered(office: Office, mail: Mail, wrong: Shown) -> None:
    channel = office.channel(mail.address(more=""))
    office.ask()
    with serving(mail, tls=wrong.tls):
        for pause in (*PAUSES, 0):
            assert office.turn() == 1
            office.pass_time(seconds=pause)
    [delivery] = office.deliveries()
    assert (delivery.status, delivery.error) == (DeliveryStatus.UNDELIVERED, NOT_TAKEN)
    told = [each.subject for each in office.trail() if each.kind == AuditKind.NOTICE_UNDELIVERED]
    assert told == [channel.id]
    assert mail.messages == []
