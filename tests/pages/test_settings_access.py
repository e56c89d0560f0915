"""Who may do what in the settings: every page and every action, as somebody of each role."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from httpx2 import Response

from clearance.keyring import add_agent, add_key, new_credential
from clearance.people import Role
from clearance.remembering import draft
from clearance.standing import Terms
from clearance.store.parking import Parked, park
from clearance.web.pages.settings.policies import WITHIN
from tests.pages.reviewing import asked
from tests.pages.setting import ROLES, WHO, crowd, press
from tests.pages.site import OWNER, Browser, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

VIEWER, REVIEWER, OPERATOR, ADMIN = ROLES
SEND = ("send", '{"to":"ann@example.org"}')
TEXT = 'default = "hold"\n'


@dataclass(frozen=True)
class Deed:
    """Something that is done in the settings, each time anew for the role that tries it, and its answers."""

    do: Callable[[Site, Browser, str], Response]
    codes: Mapping[Role, int]


def _codes(*codes: int) -> Mapping[Role, int]:
    return dict(zip(ROLES, codes, strict=True))


def _get(path: str) -> Callable[[Site, Browser, str], Response]:
    return lambda _site, browser, _who: browser.get(path)


def _policy(do: str) -> Callable[[Site, Browser, str], Response]:
    return lambda _site, browser, _who: press(browser, "/settings/policies", program="bank", do=do, text=TEXT)


def _apply(_: Site, browser: Browser, who: str) -> Response:
    # Each another text: what is active already is no change.
    form = {"program": "bank", "text": f"# by {who}\n{TEXT}"}
    compared = press(browser, "/settings/policies", do="compare", **form)
    seen = re.findall(r'name="seen" value="(\w+)"', compared.text)
    password = "four words in a row"
    return press(
        browser, "/settings/policies", do="apply", seen=seen[0] if seen else "", password=password, **form
    )


def _add_person(_: Site, browser: Browser, who: str) -> Response:
    return press(browser, "/settings/people", id=f"new-{who}", role="viewer")


def _person(do: str, **typed: str) -> Callable[[Site, Browser, str], Response]:
    def done(site: Site, browser: Browser, who: str) -> Response:
        site.add(f"other-{who}")
        return press(browser, f"/settings/people/other-{who}", do=do, **typed)

    return done


def _resume(site: Site, browser: Browser, who: str) -> Response:
    database = site.workspace.database
    agent = add_agent(database, f"bot-{who}", behind=OWNER, by=OWNER)
    with database.write() as tx:
        park(tx, Parked(agent.id, "it proposed too much", database.now(tx)))
    return press(browser, f"/settings/people/{agent.id}", do="resume")


def _add_channel(_: Site, browser: Browser, who: str) -> Response:
    return press(browser, "/settings/channels", ("event", "asked"), do="add", **_channel(f"for-{who}"))


def _add_mail(for_: str) -> Callable[[Site, Browser, str], Response]:
    """Add a channel whose messages let their reader decide."""

    def done(_: Site, browser: Browser, who: str) -> Response:
        more = {"kind": "apprise", "address": "ntfys://ntfy.example.org/topic", "whom": for_.format(who)}
        form = {**_channel(f"mail-{who}"), **more}
        return press(browser, "/settings/channels", ("event", "asked"), do="add", **form)

    return done


def _channel(name: str) -> dict[str, str]:
    address = "https://hooks.example.org/"
    return {
        "name": name,
        "kind": "webhook",
        "address": address,
        "serves": "person",
        "whom": OWNER,
        "min_risk": "low",
    }


def _to_channel(do: str) -> Callable[[Site, Browser, str], Response]:
    def done(site: Site, browser: Browser, who: str) -> Response:
        from clearance.channel import ChannelKind, Serves
        from clearance.notices.channels import add_channel
        from clearance.notices.targets import Allowed

        add_channel(
            site.workspace.database, f"to-{who}", kind=ChannelKind.WEBHOOK, address="https://h.example.org/",
            serves=Serves.PERSON, whom=OWNER, by=OWNER, id=f"id-{who}", allowed=Allowed(),
        )  # fmt: skip
        return press(browser, "/settings/channels", do=do, channel=f"to-{who}")

    return done


def _key_for(whose: str, **more: str) -> Callable[[Site, Browser, str], Response]:
    return lambda _site, browser, who: press(
        browser, "/settings/keys", do="add", name=f"key-{who}", whose=whose.format(who), **more
    )


def _revoke_key_of(whose: str) -> Callable[[Site, Browser, str], Response]:
    def done(site: Site, browser: Browser, who: str) -> Response:
        name = f"key-{who}"
        key = add_key(
            site.workspace.database, name, person=whose.format(who), by=OWNER, made=new_credential()
        )
        return press(browser, "/settings/keys", do="revoke", key=key.id)

    return done


def _remember(site: Site, browser: Browser, _: str) -> Response:
    review = asked(site.workspace, SEND)
    typed = {"review": review.id, "call": review.calls[0].key, "uses": "3", "for": "1h", "when": ""}
    return press(browser, "/settings/rules/new", do="remember", **typed)


def _drafted(site: Site, by: str, *, to: str = "ann") -> str:
    """Have somebody remember a call, and return the rule's id."""
    review = asked(site.workspace, ("send", f'{{"to":"{to}@example.net"}}'))
    return draft(site.workspace.database, review.id, Terms(3, WITHIN), by=by, rule_id=review.id, call=None).id


def _revoke_rule(site: Site, browser: Browser, who: str) -> Response:
    return press(browser, "/settings/rules", do="revoke", rule=_drafted(site, "rita", to=who))


DEEDS = {
    "see what there is": Deed(_get("/settings"), _codes(200, 200, 200, 200)),
    "see policies": Deed(_get("/settings/policies"), _codes(200, 200, 200, 200)),
    "see people": Deed(_get("/settings/people"), _codes(403, 403, 200, 200)),
    "see a person": Deed(_get("/settings/people/ann"), _codes(403, 403, 200, 200)),
    "see channels": Deed(_get("/settings/channels"), _codes(403, 403, 200, 200)),
    "see keys": Deed(_get("/settings/keys"), _codes(200, 200, 200, 200)),
    "see standing rules": Deed(_get("/settings/rules"), _codes(200, 200, 200, 200)),
    "check a policy": Deed(_policy("check"), _codes(403, 403, 200, 200)),
    "test a policy": Deed(_policy("test"), _codes(403, 403, 200, 200)),
    "compare a policy": Deed(_policy("compare"), _codes(403, 403, 403, 200)),
    "apply a policy": Deed(_apply, _codes(403, 403, 403, 303)),
    "add a person": Deed(_add_person, _codes(403, 403, 403, 201)),
    "change a role": Deed(_person("role", role="viewer"), _codes(403, 403, 403, 303)),
    "change groups": Deed(_person("groups", groups="a, b"), _codes(403, 403, 403, 303)),
    "disable somebody": Deed(_person("disable"), _codes(403, 403, 403, 303)),
    "make a link": Deed(_person("link"), _codes(403, 403, 403, 201)),
    "resume an agent": Deed(_resume, _codes(403, 403, 303, 303)),
    "add a channel": Deed(_add_channel, _codes(403, 403, 201, 201)),
    "add a channel by which one decides": Deed(_add_mail("{}"), _codes(403, 403, 201, 201)),
    "add a channel by which another decides": Deed(_add_mail("rita"), _codes(403, 403, 403, 201)),
    "test a channel": Deed(_to_channel("test"), _codes(403, 403, 200, 200)),
    "disable a channel": Deed(_to_channel("disable"), _codes(403, 403, 303, 303)),
    "enable a channel": Deed(_to_channel("enable"), _codes(403, 403, 303, 303)),
    "remove a channel": Deed(_to_channel("remove"), _codes(403, 403, 303, 303)),
    "make an own key": Deed(_key_for("of:{}"), _codes(201, 201, 201, 201)),
    "make a key of another": Deed(_key_for("of:rita"), _codes(422, 422, 422, 201)),
    "make an agent of one's own": Deed(_key_for("agent"), _codes(201, 201, 201, 201)),
    "make an agent of another": Deed(_key_for("agent", behind="rita"), _codes(403, 403, 403, 201)),
    "revoke an own key": Deed(_revoke_key_of("{}"), _codes(303, 303, 303, 303)),
    "revoke a key of another": Deed(_revoke_key_of("rita"), _codes(404, 404, 404, 303)),
    "remember a call": Deed(_remember, _codes(403, 303, 303, 303)),
    "revoke a rule of another": Deed(_revoke_rule, _codes(403, 403, 303, 303)),
}


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS.keys())
def test_who_may_do_it_does_it_and_the_others_are_refused(site: Site, deed: Deed) -> None:
    browsers = crowd(site)
    site.add("rita")
    asked(site.workspace, SEND)
    found = {role: deed.do(site, browsers[role], WHO[role]).status_code for role in ROLES}
    assert found == deed.codes


def test_a_rule_of_ones_own_can_be_revoked_by_a_reviewer(site: Site) -> None:
    browsers = crowd(site)
    rule = _drafted(site, WHO[REVIEWER])
    assert press(browsers[REVIEWER], "/settings/rules", do="revoke", rule=rule).status_code == 303


FORMS = ("policies", "people", "people/ann", "channels", "keys", "rules", "rules/new")


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_another_session_or_site_does_nothing(site: Site, path: str) -> None:
    browser = crowd(site)[ADMIN]
    assert browser.post(f"/settings/{path}", {"csrf": "0" * 64}).status_code == 403
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert browser.post(f"/settings/{path}", {}, headers=foreign).status_code == 403


@pytest.mark.parametrize("path", ["", *(f"/{each}" for each in FORMS)])
def test_who_is_not_signed_in_is_sent_to_do_so(site: Site, path: str) -> None:
    answer = site.browser().get(f"/settings{path}")
    assert (answer.status_code, answer.headers["location"].startswith("/login?next=/settings")) == (303, True)


@pytest.mark.parametrize("path", FORMS)
def test_a_button_that_nobody_offered_does_nothing(site: Site, path: str) -> None:
    browser = crowd(site)[ADMIN]
    asked(site.workspace, SEND)
    answer = press(browser, f"/settings/{path}", do="everything", program="bank")
    assert answer.status_code in (404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "people/no%00body",
        "people/nobody",
        "policies?program=no%00ne",
        "policies?program=none",
        "rules/new?review=no%00ne",
        "rules/new",
    ],
)
def test_what_is_not_there_is_not_found(site: Site, path: str) -> None:
    asked(site.workspace, SEND)
    assert crowd(site)[ADMIN].get(f"/settings/{path}").status_code == 404


def test_only_what_one_may_open_is_offered(site: Site) -> None:
    browsers = crowd(site)
    for role in ROLES:
        text = browsers[role].get("/settings").text
        assert ("/settings/people" in text) is (role in (OPERATOR, ADMIN))
        assert ("/settings/channels" in text) is (role in (OPERATOR, ADMIN))
