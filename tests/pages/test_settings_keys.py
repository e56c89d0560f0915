"""Keys in the settings: shown once, good from then on, and revoked; each sees their own."""

import re

import pytest

from clearance.keyring import add_agent, add_key, new_credential
from clearance.people import Kind
from clearance.store import keys, people
from tests.pages.setting import crowd, press, trail
from tests.pages.site import OWNER, Browser, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PATH = "/settings/keys"


def _made(browser: Browser, name: str = "laptop", whose: str = f"of:{OWNER}") -> str:
    answer = press(browser, PATH, do="add", name=name, whose=whose)
    assert answer.status_code == 201, answer.text
    [found] = re.findall(r'<pre class="value"[^>]*>\n([^<]+)</pre>', answer.text)
    return str(found)


def _who(site: Site, key: str) -> str | int:
    answer = site.browser().http.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
    return str(answer.json()["id"]) if answer.status_code == 200 else answer.status_code


def test_a_key_is_shown_once_and_opens_the_api_until_it_is_revoked(site: Site) -> None:
    browser = site.signed_in()
    key = _made(browser)
    assert _who(site, key) == OWNER
    assert key not in browser.get(PATH).text
    [kept] = _listed(site)
    assert press(browser, PATH, do="revoke", key=kept.id).status_code == 303
    assert _who(site, key) == 401
    assert trail(site, "key:added", "key:revoked") == [
        ("key:added", kept.id, OWNER),
        ("key:revoked", kept.id, OWNER),
    ]
    assert "Revoked: 1" in browser.page(PATH).text


@pytest.mark.parametrize(
    ("ticked", "scopes", "said"),
    [
        (("propose", "decide", "manage"), {"propose", "decide", "manage"}, "propose, decide, manage"),
        (("decide",), {"decide"}, "decide"),
        ((), set(), "read only"),
        (("everything", "Propose"), set(), "read only"),
    ],
)
def test_a_key_goes_as_far_as_was_ticked_and_the_page_says_so(
    site: Site, ticked: tuple[str, ...], scopes: set[str], said: str
) -> None:
    browser = site.signed_in()
    ticks = [("scope", each) for each in ticked]
    assert press(browser, PATH, *ticks, do="add", name="laptop", whose=f"of:{OWNER}").status_code == 201
    assert [key.scopes for key in _listed(site)] == [scopes]
    assert f'<td data-label="May">{said}</td>' in browser.get(PATH).text


def _ticked(text: str) -> list[str]:
    return re.findall(r'name="scope" value="(\w+)" checked', text)


def test_the_form_is_ticked_for_all_and_keeps_what_was_unticked(site: Site) -> None:
    browser = site.signed_in()
    assert _ticked(browser.get(PATH).text) == ["propose", "decide", "manage"]
    answer = press(browser, PATH, ("scope", "propose"), do="add", name="", whose="agent")
    assert (answer.status_code, _ticked(answer.text)) == (422, ["propose"])


def _listed(site: Site) -> list[keys.Key]:
    with site.workspace.database.read() as tx:
        return keys.listed(tx)


def test_an_agent_is_made_with_its_key_and_acts_for_who_made_it(site: Site) -> None:
    site.add("ben")
    key = _made(site.signed_in("ben"), "bot", "agent")
    assert _who(site, key) == "bot"
    with site.workspace.database.read() as tx:
        found = people.person(tx, "bot")
    assert (found.kind, found.behind) == (Kind.AGENT, "ben")
    assert _who(site, _made(site.signed_in("ben"), "bot again", "of:bot")) == "bot"


@pytest.mark.parametrize(
    ("typed", "code", "field", "said"),
    [
        ({"name": ""}, 422, "name", "A name has 1 to 100"),
        ({"name": "a/b"}, 422, "name", "A name has 1 to 100"),
        ({"name": "taken"}, 409, "name", "There is a key taken already"),
        ({"name": "ben", "whose": "agent"}, 409, "name", "ben is known here already"),
        ({"whose": "of:nobody"}, 422, "whose", "Choose whose key it is"),
        ({"whose": OWNER}, 422, "whose", "Choose whose key it is"),
        ({"whose": ""}, 422, "whose", "Choose whose key it is"),
        ({"whose": "agent", "behind": "nobody"}, 422, "behind", "Nobody here is called nobody"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_what_was_typed_is_kept(
    site: Site, typed: dict[str, str], code: int, field: str, said: str
) -> None:
    site.add("ben")
    add_key(site.workspace.database, "taken", person=OWNER, by=OWNER, made=new_credential())
    form = {"name": "laptop", "whose": f"of:{OWNER}", "behind": "", **typed}
    answer = press(site.signed_in(), PATH, do="add", **form)
    assert answer.status_code == code
    assert re.search(rf'id="{field}-error">[^<]*{said}', answer.text)
    assert f'value="{form["name"]}"' in answer.text
    assert [key.name for key in _listed(site)] == ["taken"]


def test_each_sees_their_own_keys_and_those_of_their_agents_and_an_admin_all(site: Site) -> None:
    browsers = crowd(site)
    database = site.workspace.database
    add_agent(database, "bot", behind="ben", by=OWNER)
    for name, whose in (("desk", "ben"), ("robot", "bot"), ("phone", "vic")):
        add_key(database, name, person=whose, by=OWNER, made=new_credential())
    seen = {
        role: {name for name in ("desk", "robot", "phone") if f"Revoke {name}" in browser.page(PATH).text}
        for role, browser in browsers.items()
    }
    assert seen == {
        "viewer": {"phone"},
        "reviewer": {"desk", "robot"},
        "operator": set(),
        "admin": {"desk", "robot", "phone"},
    }


def test_nobody_makes_an_agent_that_acts_for_another(site: Site) -> None:
    site.add("ben")
    answer = press(site.signed_in("ben"), PATH, do="add", name="bot", whose="agent", behind=OWNER)
    assert answer.status_code == 403
    with site.workspace.database.read() as tx:
        assert people.by_id(tx, ["bot"]) == {}


def test_a_key_that_is_called_as_another_ones_id_does_not_stand_in_for_it(site: Site) -> None:
    database = site.workspace.database
    first = add_key(database, "first", person=OWNER, by=OWNER, made=new_credential())
    add_key(database, first.id, person=OWNER, by=OWNER, made=new_credential())
    press(site.signed_in(), PATH, do="revoke", key=first.id)
    assert [key.id for key in _listed(site) if key.revoked_at is not None] == [first.id]


def test_who_has_no_keys_is_told_what_they_are_for(site: Site) -> None:
    assert "There are no keys." in Page(site.signed_in().get(PATH).text).text
