"""A one-time link: looking at it uses nothing up, a password does, and then it opens nothing."""

import pytest
from sqlalchemy import delete, select

from clearance.membership import Link, add_person, disable, first_link, invite, sign_in_link
from clearance.people import Role
from clearance.store.tables import entries, invitations, passwords, sessions
from tests.pages.site import OWNER, PASSWORD, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

NEW = "another four words in a row"


def _added(site: Site, name: str = "eva") -> Link:
    database = site.workspace.database
    return add_person(database, name, name=None, role=Role.REVIEWER, groups=(), by=OWNER)[1]


def test_a_link_says_whom_it_is_for_sets_the_password_and_signs_in(site: Site) -> None:
    link = _added(site)
    browser = site.browser()
    assert "This link is for eva, a reviewer here." in browser.page(link.path).text
    done = browser.send(link.path, link.path, password=NEW, repeated=NEW)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert browser.get("/me/sessions").status_code == 200
    assert site.browser().sign_in("eva", NEW).status_code == 303


def test_looking_at_a_link_uses_nothing_up(site: Site) -> None:
    link = _added(site)
    for _ in range(5):
        assert site.browser().get(link.path).status_code == 200
        assert site.browser().http.head(link.path).status_code == 200
        assert site.browser().http.options(link.path).status_code == 405
    with site.workspace.database.read() as tx:
        assert tx.execute(select(invitations.c.used_at)).scalars().all() == [None]
        assert tx.execute(select(sessions)).all() == []
    assert site.browser().send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303


def test_a_link_works_once(site: Site) -> None:
    link = _added(site)
    assert site.browser().send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303
    other = site.browser()
    again = other.post(link.path, {"password": PASSWORD, "repeated": PASSWORD})
    assert (again.status_code, other.token) == (404, None)
    assert "This link is not good any more" in Page(again.text).text
    assert other.get(link.path).status_code == 404
    assert site.browser().sign_in("eva", NEW).status_code == 303


@pytest.mark.parametrize(
    ("password", "repeated", "part"),
    [
        ("", "", "at least 12 characters"),
        ("elevenchars", "elevenchars", "at least 12 characters; this one has 11"),
        ("x" * 1025, "x" * 1025, "at most 1024"),
        (NEW, NEW + " ", "The two passwords differ"),
    ],
)
def test_what_cannot_be_a_password_leaves_the_link_good(
    site: Site, password: str, repeated: str, part: str
) -> None:
    link = _added(site)
    browser = site.browser()
    answer = browser.send(link.path, link.path, password=password, repeated=repeated)
    assert (answer.status_code, browser.token) == (422, None)
    assert part in Page(answer.text).text
    assert browser.send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303


@pytest.mark.parametrize("password", [" " * 12, "ü" * 12, "\U0001f512" * 12, "a\0" * 6, "x" * 1024])
def test_only_the_length_of_a_password_matters(site: Site, password: str) -> None:
    link = _added(site)
    assert site.browser().post(link.path, {"password": password, "repeated": password}).status_code == 303
    assert site.browser().sign_in("eva", password).status_code == 303


def test_a_link_ends_after_a_day(site: Site) -> None:
    clock = site.stop_the_clock()
    link = _added(site)
    clock.pass_(hours=23, minutes=59)
    assert site.browser().get(link.path).status_code == 200
    clock.pass_(minutes=1)
    assert site.browser().get(link.path).status_code == 404
    assert site.browser().post(link.path, {"password": NEW, "repeated": NEW}).status_code == 404


def test_a_new_password_by_a_link_ends_every_session_of_before(site: Site) -> None:
    site.add("eva")
    before = site.signed_in("eva")
    link = invite(site.workspace.database, "eva", by=OWNER)
    assert site.browser().send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303
    assert before.get("/me/sessions").status_code == 303
    assert site.browser().sign_in("eva", PASSWORD).status_code == 401


def test_the_link_of_a_disabled_person_opens_nothing(site: Site) -> None:
    link = _added(site)
    disable(site.workspace.database, "eva", by=OWNER)
    assert site.browser().get(link.path).status_code == 404
    assert site.browser().post(link.path, {"password": NEW, "repeated": NEW}).status_code == 404


def test_guessing_links_gets_slow(site: Site) -> None:
    site.stop_the_clock()
    browser = site.browser(address="192.0.2.1")
    answers = [browser.post(f"/welcome/{n}", {"password": NEW, "repeated": NEW}) for n in range(22)]
    assert [answer.status_code for answer in answers] == [404] * 20 + [429] * 2
    assert "Try again in" in Page(answers[-1].text).text
    assert "retry-after" in answers[-1].headers


def test_a_link_and_a_password_are_kept_as_digests_alone(site: Site) -> None:
    from clearance.store.tables import metadata

    link = _added(site)
    assert site.browser().send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303
    with site.workspace.database.read() as tx:
        kept = [str(row) for table in metadata.sorted_tables for row in tx.execute(select(table))]
        kinds = tx.execute(select(entries.c.kind).where(entries.c.subject == "eva")).scalars().all()
    assert not any(link.token in each or NEW in each for each in kept)
    assert link.token not in repr(link)
    assert {"person:added", "person:invited", "person:password-set", "person:signed-in"} <= set(kinds)


def test_a_new_workspace_gives_its_admin_a_link_until_somebody_can_sign_in(site: Site) -> None:
    database = site.workspace.database
    assert first_link(database, by=OWNER) is None
    with database.write() as tx:
        tx.execute(delete(passwords))
    older, link = first_link(database, by="stranger"), first_link(database, by=OWNER)
    assert older is not None
    assert link is not None
    assert (older.person.id, link.person.id) == (OWNER, OWNER)
    assert site.browser().get(older.path).status_code == 404
    assert "This link is for ann, an admin here." in site.browser().page(link.path).text
    assert site.browser().send(link.path, link.path, password=NEW, repeated=NEW).status_code == 303
    assert first_link(database, by=OWNER) is None


def _alone(site: Site) -> Link:
    """Give the link of a workspace whose one person has nothing to sign in with."""
    with site.workspace.database.write() as tx:
        tx.execute(delete(passwords))
    link = sign_in_link(site.workspace.database, by=OWNER)
    assert link is not None
    return link


def test_who_is_alone_signs_in_by_a_link_that_sets_nothing(site: Site) -> None:
    link = _alone(site)
    browser = site.browser()
    page = browser.page(link.path)
    assert "Sign in as ann" in page.text
    assert page.form(link.path).values == [("person", "ann")]
    assert site.browser().http.head(link.path).status_code == 200
    done = browser.send(link.path, link.path)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert browser.get("/me/sessions").status_code == 200
    with site.workspace.database.read() as tx:
        assert tx.execute(select(passwords)).all() == []
    again = site.browser().post(link.path, {"password": NEW, "repeated": NEW})
    assert again.status_code == 404


def test_a_link_that_sets_nothing_is_good_for_an_hour(site: Site) -> None:
    clock = site.stop_the_clock()
    link = _alone(site)
    clock.pass_(minutes=60)
    assert site.browser().get(link.path).status_code == 404
    assert site.browser().post(link.path, {"person": OWNER}).status_code == 404


def test_a_link_that_sets_nothing_is_sent_from_a_page_here_alone(site: Site) -> None:
    link = _alone(site)
    foreign = site.browser().post(link.path, {"person": OWNER}, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert site.browser().send(link.path, link.path).status_code == 303


def test_no_link_that_sets_nothing_is_made_where_others_are_or_a_password_is(site: Site) -> None:
    database = site.workspace.database
    assert sign_in_link(database, by=OWNER) is None
    _alone(site)
    add_person(database, "eva", name=None, role=Role.REVIEWER, groups=(), by=OWNER)
    assert sign_in_link(database, by=OWNER) is None
