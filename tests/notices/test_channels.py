"""Channels: who may see to them, which addresses they take, and that no door shows an address."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearance.audit import AuditKind
from clearance.channel import Channel, ChannelKind, Serves
from clearance.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from clearance.notices import channels as verbs
from clearance.notices.channels import add_channel
from clearance.notices.sender import _FORBIDDEN, _Guard
from clearance.notices.sending import SCHEMES, check_address
from clearance.notices.targets import Allowed
from clearance.store import channels
from tests.house.sources import ROOT
from tests.notices.mail import Mail
from tests.notices.office import Office, opened
from tests.ways_in.desk import PERSON, Desk
from tests.web.served import Served

pytestmark = pytest.mark.sqlite_by_day

SLACK = "slack://TAAAAAAAA/BBBBBBBBB/cccccccccccccccccccccccc/#payments"
BAD = (
    "",
    "slack",
    "file:///etc/passwd",
    "syslog://",
    "dbus://",
    "gnome://",
    "macosx://",
    "growl://127.0.0.1",
    "mqtt://127.0.0.1/topic",
    "apprise://127.0.0.1/token",
    "http://example.org/",
    "slack://",
    f"{SLACK}\nmailto://x",
    f"{SLACK}?template=/etc/passwd",
    f"{SLACK}?footer=no;template=/etc/passwd",
    f"{SLACK}?footer=no&amp;Templat%65=/etc/passwd",
    f"{SLACK}?TEMPLATE=file:///etc/passwd",
    "mailto://a:b@example.org?pgpkey=/etc/passwd",
    "json://example.org/?attach=/etc/passwd",
    "json://example.org/" + "x" * 3000,
)


@pytest.fixture
def office(migrated_database_url: str, tmp_path: Path) -> Iterator[Office]:
    """An office with ann, ben and cleo."""
    with opened(migrated_database_url, tmp_path) as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A workspace for the command line."""
    found = Desk(tmp_path / "desk")
    found.open().close()
    return found


@pytest.mark.parametrize("address", BAD)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_address(address)
    assert len(address) < 10 or address not in str(refused.value)


def test_what_lies_in_the_folder_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("apprise", "clearance", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    check_address(SLACK)
    assert not (tmp_path / "ran").exists()


def test_addresses_of_mail_and_slack_are_taken(office: Office) -> None:
    for address in (SLACK, "mailtos://robot:secret@mail.example.org?to=ben@example.org"):
        assert office.channel(address).enabled


def test_the_guide_names_every_service_that_is_known() -> None:
    guide = (ROOT / "docs" / "how-to" / "notices.md").read_text(encoding="utf-8")
    missing = [
        each for each in SCHEMES if f"`{each}`" not in guide and f"`{each.removesuffix('s')}(s)`" not in guide
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("serves", "whom", "error"),
    [
        (Serves.PERSON, "nobody", NotFoundError),
        (Serves.ROLE, "king", InvalidInputError),
        (Serves.GROUP, " ", InvalidInputError),
    ],
)
def test_a_channel_is_for_somebody_there_is(
    office: Office, serves: Serves, whom: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        office.channel(SLACK, serves=serves, whom=whom)


@pytest.mark.parametrize("name", ["", " x", "a/b", "a\nb", "x" * 101])
def test_a_name_that_cannot_be_used_is_refused(office: Office, name: str) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        add(office, name)


def test_a_name_is_given_once(office: Office) -> None:
    add(office, "hooks")
    with pytest.raises(ConflictError, match="already"):
        add(office, "hooks")


def test_only_operators_see_to_channels(office: Office) -> None:
    add(office, "hooks")
    database = office.workspace.database
    for act in (
        lambda: add(office, "others", by="ben"),
        lambda: verbs.set_enabled(database, "hooks", enabled=False, by="ben"),
        lambda: verbs.remove_channel(database, "hooks", by="ben"),
        lambda: verbs.try_channel(database, "hooks", by="ben", id="1", allowed=Allowed()),
    ):
        with pytest.raises(ForbiddenError, match="operators"):
            act()
    with database.read() as tx:
        assert [each.name for each in channels.listed(tx)] == ["hooks"]


def test_what_is_done_to_a_channel_is_in_the_trail_without_its_address(office: Office) -> None:
    made = add(office, "hooks")
    database = office.workspace.database
    for enabled in (False, False, True):
        verbs.set_enabled(database, "hooks", enabled=enabled, by="ann")
    verbs.remove_channel(database, "hooks", by="ann")
    found = [each for each in office.trail() if each.subject == made.id]
    kinds = [AuditKind.CHANNEL_ADDED, AuditKind.CHANNEL_DISABLED, AuditKind.CHANNEL_ENABLED]
    assert [each.kind for each in found] == [*kinds, AuditKind.CHANNEL_REMOVED]
    assert made.secret is not None
    assert not any(secret in str(found) for secret in ("geheim", made.secret))


def test_a_webhook_that_is_not_public_is_refused_when_it_is_added(office: Office) -> None:
    with pytest.raises(InvalidInputError, match="not public"):
        add(office, "inside", address="http://169.254.169.254/latest")


def test_the_guard_of_the_sender_lets_out_nothing_but_public_connections() -> None:
    guard = _Guard(Allowed.read("10.1.0.0/16"))
    refused: list[tuple[str, tuple[object, ...]]] = []
    refused += [("socket.connect", (None, each)) for each in (("127.0.0.1", 25), ("::1", 25, 0, 0))]
    refused += [("socket.connect", (None, each)) for each in (("example.org", 25), "/run/bus", b"\0x", None)]
    refused += [("socket.connect", (None, ("fe80::1%eth0", 25, 0, 2)))]
    refused += [(event, ()) for event in _FORBIDDEN]
    for event, arguments in refused:
        guard.begin()
        with pytest.raises(PermissionError):
            guard(event, arguments)
        assert guard.refused
    guard.begin()
    for address in (("1.1.1.1", 443), ("10.1.2.3", 25), ("2606:4700::1111", 443, 0, 0)):
        guard("socket.connect", (None, address))
    guard("open", ("x", "r", 0))
    assert not guard.refused


def test_a_channel_is_added_from_a_file_and_listed_without_its_address(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "address"
    file.write_text("mailtos://robot:geheim-1@mail.example.org?to=ana@example.org\n")
    done = desk.run("channels", "add", "mail", "--person", PERSON, "--address-file", str(file))
    assert done.exit_code == 0, done.output
    shown = [desk.run("channels", "list").output, json.dumps(desk.json("channels", "list")), done.output]
    assert "mailtos://***" in shown[0]
    assert not any("geheim-1" in each or "mail.example.org" in each for each in shown)


def test_an_address_comes_from_standard_input_and_a_secret_is_printed_alone(desk: Desk) -> None:
    done = desk.run(
        *("channels", "add", "hooks", "--kind", "webhook", "--role", "operator", "--on", "asked"),
        typed="https://1.1.1.1/geheim\n",
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("whsec_")
    assert "geheim" not in done.output
    assert desk.json("channels", "list")["channels"][0]["events"] == ["asked"]


def test_a_channel_is_disabled_enabled_and_removed(desk: Desk) -> None:
    desk.run("channels", "add", "s", "--group", "finance", "--min-risk", "high", typed=SLACK)
    assert desk.json("channels", "disable", "s")["enabled"] is False
    assert "disabled" in desk.run("channels", "list").output
    assert desk.json("channels", "enable", "s")["enabled"] is True
    assert desk.json("channels", "deliveries") == {"deliveries": []}
    assert desk.json("channels", "remove", "s")["name"] == "s"
    assert desk.json("channels", "list") == {"channels": []}


@pytest.mark.parametrize(
    "words",
    [
        ("add", "x"),
        ("add", "x", "--person", PERSON, "--group", "g"),
        ("add", "x", "--person", PERSON, "--kind", "pigeon"),
        ("add", "x", "--person", PERSON, "--on", "never"),
        ("add", "x", "--person", PERSON, "--min-risk", "none"),
        ("add", "x", "--person", PERSON, "--address-file", "nowhere"),
    ],
)
def test_what_makes_no_channel_is_told_in_a_sentence(desk: Desk, words: tuple[str, ...]) -> None:
    done = desk.run("channels", *words, typed=SLACK)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_a_test_that_is_not_taken_says_why_and_exits_with_1(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, mail: Mail
) -> None:
    desk.run("channels", "add", "mail", "--person", PERSON, typed=mail.address())
    refused = desk.run("channels", "test", "mail")
    assert (refused.exit_code, mail.messages) == (1, [])
    assert "not public" in refused.output
    monkeypatch.setenv("CLEARANCE_WEBHOOK_ALLOW", "127.0.0.1")
    assert desk.run("channels", "test", "mail").exit_code == 0
    assert len(mail.messages) == 1


def test_channels_over_http_are_for_operators(served: Served) -> None:
    served.add("eva")
    body = {"name": "s", "address": SLACK, "serves": "person", "whom": "eva"}
    for method, path in (("GET", "channels"), ("POST", "channels"), ("GET", "deliveries")):
        json_body = body if method == "POST" else None
        answer = served.http.request(method, f"/api/v1/{path}", headers=served.key("eva"), json=json_body)
        assert answer.status_code == 403
    made = served.http.post("/api/v1/channels", headers=served.key(), json=body)
    assert (made.status_code, made.json()["address"]) == (200, "slack://***")
    hook = {**body, "name": "h", "kind": "webhook", "address": "https://1.1.1.1/geheim"}
    secret = served.http.post("/api/v1/channels", headers=served.key(), json=hook).json()["secret"]
    assert secret.startswith("whsec_")
    listed = served.http.get("/api/v1/channels", headers=served.key())
    assert [each["name"] for each in listed.json()["channels"]] == ["h", "s"]
    assert not any(each in listed.text for each in (secret, "geheim", "cccccc"))
    assert served.http.post("/api/v1/channels/s/disable", headers=served.key()).json()["enabled"] is False
    assert served.http.post("/api/v1/channels/s/enable", headers=served.key()).json()["enabled"] is True
    assert served.http.delete("/api/v1/channels/s", headers=served.key()).status_code == 200
    assert served.http.delete("/api/v1/channels/s", headers=served.key()).status_code == 404


def test_an_agent_does_not_see_channels(served: Served) -> None:
    served.add_agent("bot")
    assert served.http.get("/api/v1/channels", headers=served.key("bot")).status_code == 403


def add(office: Office, name: str, *, address: str = "https://1.1.1.1/geheim", by: str = "ann") -> Channel:
    """Add a webhook."""
    return add_channel(
        office.workspace.database,
        name,
        kind=ChannelKind.WEBHOOK,
        address=address,
        serves=Serves.ROLE,
        whom="operator",
        by=by,
        id=f"id-{name}",
        allowed=Allowed(),
    )
