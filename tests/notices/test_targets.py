"""Which addresses may be told something: what only this machine or its network can reach is refused."""

from collections.abc import Sequence

import pytest

from clearance.errors import InvalidInputError, SettingsError
from clearance.notices.targets import Allowed, Resolve, check_url, find_target

NOBODY = Allowed()

PRIVATE = (
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0.0.0.0/",
    "http://10.1.2.3:8080/hook",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::ffff:0:a9fe:a9fe]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:db8::1]/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "http://[2a00:1450:4001:81c:0:5efe:127.0.0.1]/",
    "http://[2a00:1450:4001:81c:0:5efe:a00:1]/",
    "http://[2a00:1450:4001:81c:200:5efe:169.254.169.254]/",
    "http://[2a00:1450:4001:81c:300:5efe:192.168.1.1]/",
    "http://[fe80::5efe:8.8.8.8]/",
)
PUBLIC = (
    "http://8.8.8.8/",
    "http://[2a00:1450:4001:81c::200e]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[2a00:1450:4001:81c:0:5efe:8.8.8.8]/",
    "http://[2a00:1450:4001:81c:200:5efe:808:808]/",
    "http://[2a00:1450:4001:81c:0:5eff:127.0.0.1]/",
)
NO_ADDRESS = (
    "",
    "example.org",
    "ftp://example.org/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://",
    "http:///path",
    "http://example.org:99999/",
    "http://example.org:0/",
    "http://user:secret@example.org/",
    "http://example.org/#part",
    "http://exa\nmple.org/",
    "http://[::1/",
    "http://example.org/" + "x" * 3000,
)


def resolving(*addresses: str) -> Resolve:
    """Return a resolver that knows one answer."""

    def resolve(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolve


@pytest.mark.parametrize("url", PRIVATE)
def test_an_address_that_is_not_public_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="not public"):
        check_url(url, allowed=NOBODY)


@pytest.mark.parametrize("url", PUBLIC)
def test_a_public_address_is_taken_however_it_is_written(url: str) -> None:
    assert check_url(url, allowed=NOBODY).geturl() == url


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_of_a_web_server_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="webhook"):
        check_url(url, allowed=NOBODY)


def test_a_refusal_does_not_repeat_a_password() -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_url("http://user:secret@example.org/", allowed=NOBODY)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1", "169.254.169.254"])
def test_a_public_name_with_a_private_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="not public"):
        find_target("https://hooks.example.org/x", allowed=NOBODY, resolve=resolving("1.1.1.1", address))


def test_a_host_that_is_not_known_is_said() -> None:
    def unknown(_host: str, _port: int) -> Sequence[str]:
        raise OSError("no such host")

    with pytest.raises(InvalidInputError, match="not known"):
        find_target("https://hooks.example.org/x", allowed=NOBODY, resolve=unknown)


@pytest.mark.parametrize(
    ("url", "address", "wanted"),
    [
        ("https://hooks.example.org/x?y=1", "1.1.1.1", "https://1.1.1.1:443/x?y=1"),
        ("http://hooks.example.org:8080/", "2606:4700::1111", "http://[2606:4700::1111]:8080/"),
    ],
)
def test_the_connection_goes_to_the_address_that_was_checked(url: str, address: str, wanted: str) -> None:
    found = find_target(url, allowed=NOBODY, resolve=resolving(address))
    assert (found.url, found.host) == (wanted, "hooks.example.org")


@pytest.mark.parametrize("allowed", ["hooks.internal", "10.1.0.0/16", "other.example, 10.1.0.0/16"])
def test_what_the_administrator_allows_is_reached(allowed: str) -> None:
    found = find_target(
        "http://hooks.internal/",
        allowed=Allowed.read(allowed),
        resolve=resolving("10.1.2.3"),
    )
    assert found.url == "http://10.1.2.3:80/"


def test_what_is_allowed_is_no_more_than_that() -> None:
    with pytest.raises(InvalidInputError):
        check_url("http://10.2.0.1/", allowed=Allowed.read("hooks.internal, 10.1.0.0/16"))


@pytest.mark.parametrize("text", ["10.1.0.0/99", "::zz", "a/b"])
def test_a_setting_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="CLEARANCE_WEBHOOK_ALLOW"):
        Allowed.read(text)
