"""What people do with their own sign-in: another password, and sessions that they end."""

from pathlib import Path

import pytest

from tests.databases import Databases
from tests.pages.site import OWNER, PASSWORD, Page, Site
from tests.people.identity_provider import provider_at_work

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

NEW = "another four words in a row"
WRONG = "not the right words"


def test_a_changed_password_ends_the_other_sessions_and_keeps_this_one(site: Site) -> None:
    browser, other = site.signed_in(), site.signed_in()
    done = browser.send("/me/password", "/me/password", old=PASSWORD, password=NEW, repeated=NEW)
    assert (done.status_code, done.headers["location"]) == (303, "/me/sessions?changed=1")
    assert "The password is changed" in browser.page(done.headers["location"]).text
    assert other.get("/me/sessions").status_code == 303
    assert site.browser().sign_in(OWNER, PASSWORD).status_code == 401
    assert site.browser().sign_in(OWNER, NEW).status_code == 303


@pytest.mark.parametrize(
    ("old", "password", "repeated", "code", "part"),
    [
        (WRONG, NEW, NEW, 403, "This is not your password"),
        ("", NEW, NEW, 403, "This is not your password"),
        (PASSWORD, "short", "short", 422, "at least 12 characters"),
        (PASSWORD, NEW, PASSWORD, 422, "The two new passwords differ"),
    ],
)
def test_a_password_is_changed_only_by_who_knows_it(
    site: Site, old: str, password: str, repeated: str, code: int, part: str
) -> None:
    browser, other = site.signed_in(), site.signed_in()
    answer = browser.send("/me/password", "/me/password", old=old, password=password, repeated=repeated)
    assert (answer.status_code, part in Page(answer.text).text) == (code, True)
    assert other.get("/me/sessions").status_code == 200
    assert site.browser().sign_in(OWNER, PASSWORD).status_code == 303


def test_a_stolen_session_cannot_guess_the_password(site: Site) -> None:
    clock = site.stop_the_clock()
    browser = site.signed_in()

    def typed(old: str) -> int:
        answer = browser.send("/me/password", "/me/password", old=old, password=NEW, repeated=NEW)
        return answer.status_code

    codes = [typed(WRONG) for _ in range(6)]
    assert codes == [403] * 5 + [429]
    assert site.browser().sign_in().status_code == 303
    clock.pass_(seconds=1)
    assert typed(PASSWORD) == 303


def test_a_session_is_ended_from_another_browser(site: Site) -> None:
    browser, other = site.signed_in(), site.signed_in()
    forms = [each for each in browser.page("/me/sessions").forms if each.action == "/me/sessions"]
    mine = {dict(each.values).get("session") for each in Page(other.get("/me/sessions").text).forms}
    assert len(mine - {None}) == 2
    data = next(dict(each.values) for each in forms if _of(browser) != dict(each.values).get("session", "-"))
    assert browser.post("/me/sessions", data).status_code == 303
    assert browser.get("/me/sessions").status_code == 200
    assert other.get("/me/sessions").status_code == 303


def test_all_but_this_one_are_ended_at_once(site: Site) -> None:
    browser, others = site.signed_in(), [site.signed_in() for _ in range(3)]
    [data] = [
        dict(each.values)
        for each in browser.page("/me/sessions").forms
        if each.action == "/me/sessions" and "session" not in dict(each.values)
    ]
    assert browser.post("/me/sessions", data).status_code == 303
    assert [each.get("/me/sessions").status_code for each in others] == [303] * 3
    assert "End all but this one" not in browser.page("/me/sessions").text


def test_nobody_sees_or_ends_the_session_of_another(site: Site) -> None:
    site.add("eva")
    browser = site.signed_in("eva")
    foreign = site.session(OWNER)
    page = browser.page("/me/sessions")
    assert foreign.session.id not in browser.get("/me/sessions").text
    csrf = dict(page.form("/logout").values)["csrf"]
    answer = browser.post("/me/sessions", {"csrf": csrf, "session": foreign.session.id})
    assert answer.status_code == 404
    cookie = {"Cookie": f"clearance={foreign.token}"}
    assert site.browser().get("/me/sessions", headers=cookie).status_code == 200


def test_what_a_browser_says_it_is_is_shown_as_text(site: Site) -> None:
    browser = site.browser()
    browser.http.headers["user-agent"] = "<script>alert(1)</script>" + "x" * 500
    assert browser.sign_in().status_code == 303
    answer = browser.get("/me/sessions")
    assert "<script>alert" not in answer.text
    assert "x" * 150 not in answer.text


def _of(browser: object) -> str:
    """Return the id of the session that a browser is in: the one that it offers no button for."""
    from tests.pages.site import Browser

    assert isinstance(browser, Browser)
    text = browser.get("/me/sessions").text
    ahead = text.partition("(this one)")[0]
    return ahead.rpartition('name="session" value="')[2].partition('"')[0]


def test_who_has_a_password_beside_a_provider_is_told_what_it_still_opens(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_at_work("RS256") as provider:
        for name, value in provider.settings(default_role="reviewer").items():
            monkeypatch.setenv(name, value)
        with Site.open(databases.migrated("sqlite", tmp_path), home=tmp_path) as site:
            site.add("gus")
            said = site.signed_in("gus").page("/me/password").text
    assert "This password signs you in here beside single sign-on, also once single sign-on lets you" in said


def test_where_no_provider_is_set_nothing_is_said_of_one(site: Site) -> None:
    site.add("eva")
    assert "beside" not in site.signed_in("eva").page("/me/password").text
