"""Channels in the settings: added, tried and switched; their addresses are not shown again."""

import re
import socket
from dataclasses import replace

import pytest

from clearance.channel import Event
from clearance.notices.targets import Allowed
from clearance.store import channels, deliveries
from clearance.store.deliveries import Delivery, DeliveryStatus
from tests.pages.setting import press, trail
from tests.pages.site import OWNER, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PATH = "/settings/channels"
ADDRESS = "https://hooks.example.org/a/secret/path"
FORM = {
    "do": "add", "name": "office", "kind": "webhook", "address": ADDRESS, "serves": "person", "whom": OWNER,
    "min_risk": "high",
}  # fmt: skip
ASKED = ("event", "asked")


def test_a_webhook_is_added_its_secret_shown_once_and_its_address_never(site: Site) -> None:
    browser = site.signed_in()
    done = press(browser, PATH, ASKED, ("event", "failed"), **FORM)
    with site.workspace.database.read() as tx:
        kept = channels.named(tx, "office")
    assert (done.status_code, kept.secret is not None and kept.secret in done.text) == (201, True)
    assert (kept.address, kept.events, kept.min_risk) == (ADDRESS, (Event.ASKED, Event.FAILED), "high")
    page = browser.get(PATH).text
    assert "https://***" in page
    assert "secret/path" not in page + done.text
    assert str(kept.secret) not in page
    assert trail(site, "channel:added") == [("channel:added", kept.id, OWNER)]


@pytest.mark.parametrize(
    ("typed", "code", "field", "said"),
    [
        ({"name": ""}, 422, "name", "A channel&#39;s name has"),
        ({"name": "a/b"}, 422, "name", "A channel&#39;s name has"),
        ({"name": "taken"}, 409, "name", "There is a channel taken already"),
        ({"kind": "pigeon"}, 422, "kind", "This is one of apprise, webhook"),
        ({"address": "http://"}, 422, "address", "."),
        ({"address": "https://127.0.0.1/"}, 422, "address", "."),
        ({"kind": "apprise", "address": "pigeon://x"}, 422, "address", "The address must be one of"),
        ({"serves": "nobody"}, 422, "serves", "This is one of person, group, role"),
        ({"whom": "nobody"}, 422, "whom", "Nobody here is called nobody"),
        ({"serves": "group", "whom": " "}, 422, "whom", "Name the group"),
        ({"serves": "role", "whom": "king"}, 422, "whom", "There is no role king"),
        ({"min_risk": "some"}, 422, "min_risk", "This is one of low"),
        ({"event": ""}, 422, "events", "at least one event"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_what_was_typed_is_kept(
    site: Site, typed: dict[str, str], code: int, field: str, said: str
) -> None:
    browser = site.signed_in()
    press(browser, PATH, ASKED, **{**FORM, "name": "taken"})
    events = [] if "event" in typed else [ASKED]
    form = {**FORM, **typed}
    answer = press(browser, PATH, *events, **form)
    assert answer.status_code == code
    assert re.search(rf'id="{field}-error">[^<]*{said}', answer.text)
    for name in ("name", "address", "whom"):
        assert f'value="{form[name].strip()}"' in answer.text
    assert len(trail(site, "channel:added")) == 1


def test_a_channel_is_switched_and_removed_each_with_its_entry(site: Site) -> None:
    browser = site.signed_in()
    press(browser, PATH, ASKED, **FORM)
    for do in ("disable", "enable", "remove"):
        assert press(browser, PATH, do=do, channel="office").status_code == 303
    kinds = ("channel:disabled", "channel:enabled", "channel:removed")
    assert [kind for kind, _, _ in trail(site, *kinds)] == list(kinds)
    assert "There are no channels." in browser.page(PATH).text
    assert press(browser, PATH, do="remove", channel="office").status_code == 404


def test_a_test_message_says_in_words_why_it_did_not_arrive(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    worker = site.workspace.worker
    worker.messenger = replace(worker.messenger, allowed=Allowed.read("127.0.0.0/8"))
    browser = site.signed_in()
    press(browser, PATH, ASKED, **{**FORM, "address": f"http://127.0.0.1:{port}/"})
    answer = press(browser, PATH, do="test", channel="office")
    assert answer.status_code == 200
    assert "The test message was not taken by office: " in Page(answer.text).text


def test_what_could_not_be_delivered_is_shown_with_the_reason(site: Site) -> None:
    browser = site.signed_in()
    assert "Every message was delivered" in browser.page(PATH).text
    press(browser, PATH, ASKED, **FORM)
    database = site.workspace.database
    with database.write() as tx:
        now, channel = database.now(tx), channels.named(tx, "office").id
        lost = Delivery(
            7, channel, OWNER, Event.ASKED, "r/1/1", now, DeliveryStatus.UNDELIVERED, None, 8, now,
            error="The <server> said no.",
        )  # fmt: skip
        deliveries.add(tx, lost)
    text = browser.page(PATH).text
    assert "asked r/1/1 office, to ann 8" in text
    assert "The <server> said no." in text
