"""Whoever is alone signs in by a link and has no password: what they can still do, and what they are told."""

import pytest
from sqlalchemy import delete, select

from clearance.membership import invite, sign_in_link
from clearance.review import Answer
from clearance.signing_in import SignedIn
from clearance.store import identities
from clearance.store.tables import entries, passwords
from tests.pages.reviewing import asked, now, opened, sent
from tests.pages.setting import press
from tests.pages.site import OWNER, PASSWORD, Browser, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

NEW = "another four words in a row"
COMMAND = "clearance people link ann"


def _alone(site: Site) -> Browser:
    """Return a browser in which the only person has just signed in by a link."""
    database = site.workspace.database
    with database.write() as tx:
        tx.execute(delete(passwords))
    link = sign_in_link(database, by=OWNER)
    assert link is not None
    browser = site.browser()
    assert browser.send(link.path, link.path).status_code == 303
    return browser


def _sets(browser: Browser, password: str = NEW) -> int:
    csrf = dict(browser.page("/me/password").form("/logout").values)["csrf"]
    form = {"csrf": csrf, "password": password, "repeated": password}
    return browser.post("/me/password", form).status_code


def _has_password(site: Site) -> bool:
    with site.workspace.database.read() as tx:
        return bool(tx.execute(select(passwords)).all())


def test_a_second_critical_decision_leads_to_what_really_makes_it_possible(site: Site) -> None:
    browser = _alone(site)
    first, second = asked(site.workspace, ("fire", "{}")), asked(site.workspace, ("fire", "{}"))
    assert sent(browser, opened(browser, first), "decision", "approve").status_code == 303
    assert sent(browser, opened(browser, second), "decision", "approve").status_code == 403
    page = browser.page(f"/login?again=1&next=/reviews/{second.id}")
    assert COMMAND in page.text
    assert not [each for each in page.forms if each.action == "/login"], "nobody can fill that form"
    assert "Nobody can sign in here yet" not in page.text
    # What the page says works: the link sets a password, which every later decision can ask for.
    link = invite(site.workspace.database, OWNER, by=OWNER)
    again = site.browser()
    assert again.send(link.path, link.path, password=PASSWORD, repeated=PASSWORD).status_code == 303
    shown = opened(again, second)
    assert sent(again, shown, "decision", "approve", password=PASSWORD).status_code == 303
    assert [each.state for each in now(site.workspace, second).calls] == [Answer.APPROVED]


def test_whoever_has_just_come_by_a_link_sets_their_first_password(site: Site) -> None:
    browser = _alone(site)
    page = browser.page("/me/password")
    assert "identity provider" not in page.text
    done = browser.send("/me/password", "/me/password", password=NEW, repeated=NEW)
    assert (done.status_code, done.headers["location"]) == (303, "/me/sessions?changed=1")
    assert site.browser().sign_in(OWNER, NEW).status_code == 303
    with site.workspace.database.read() as tx:
        kinds = tx.execute(select(entries.c.kind)).scalars().all()
    assert kinds.count("person:password-set") == 1


def test_the_first_password_ends_every_other_session(site: Site) -> None:
    browser = _alone(site)
    other = _opens(site, site.session(OWNER, how="link"))
    assert _sets(browser) == 303
    assert other.get("/me/sessions").status_code == 303
    assert browser.get("/me/sessions").status_code == 200


def test_an_older_session_sets_no_password_and_the_page_names_the_command(site: Site) -> None:
    clock = site.stop_the_clock()
    browser = _alone(site)
    clock.pass_(minutes=5)
    page = browser.page("/me/password")
    assert COMMAND in page.text
    assert not [each for each in page.forms if each.action == "/me/password"]
    assert (_sets(browser), _has_password(site)) == (403, False)


def test_a_link_whose_sign_in_was_used_up_sets_no_password(site: Site) -> None:
    browser = _alone(site)
    review = asked(site.workspace, ("fire", "{}"))
    assert sent(browser, opened(browser, review), "decision", "approve").status_code == 303
    assert COMMAND in browser.page("/me/password").text
    assert (_sets(browser), _has_password(site)) == (403, False)


def test_a_password_that_cannot_be_one_uses_nothing_up(site: Site) -> None:
    browser = _alone(site)
    assert (_sets(browser, "short"), _has_password(site)) == (422, False)
    assert _sets(browser) == 303


def test_setting_a_password_uses_the_sign_in_by_the_link_up(site: Site) -> None:
    browser = _alone(site)
    review = asked(site.workspace, ("fire", "{}"))
    assert _sets(browser) == 303
    shown = opened(browser, review)
    assert sent(browser, shown, "decision", "approve").status_code == 403
    assert sent(browser, shown, "decision", "approve", password=NEW).status_code == 303


def test_the_first_password_is_set_once(site: Site) -> None:
    browser = _alone(site)
    assert _sets(browser) == 303
    assert _sets(browser, "quite other words here") == 403
    assert site.browser().sign_in(OWNER, NEW).status_code == 303


def test_whoever_signs_in_by_a_provider_sets_no_password(site: Site) -> None:
    browser = _alone(site)
    with site.workspace.database.write() as tx:
        at = site.workspace.database.now(tx)
        identities.add(tx, OWNER, issuer="https://id.example.org", subject="ann", now=at)
    assert "identity provider" in browser.page("/me/password").text
    assert (_sets(browser), _has_password(site)) == (403, False)


def test_the_settings_lead_to_the_same_words(site: Site) -> None:
    clock = site.stop_the_clock()
    browser = _alone(site)
    clock.pass_(minutes=5)
    answer = press(browser, "/settings/keys", do="add", name="k", whose="of:ann")
    assert answer.status_code == 403
    assert "/login?again=1&amp;next=/settings/keys" in answer.text
    assert COMMAND in browser.page("/login?again=1&next=/settings/keys").text


def _opens(site: Site, session: SignedIn) -> Browser:
    browser = site.browser()
    browser.http.cookies.set("clearance", session.token)
    assert browser.get("/me/sessions").status_code == 200
    return browser
