"""Attacks on the pages: what is put into addresses and forms, by whom and when; nothing gives way."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute

from clearance.membership import disable
from clearance.people import Role
from clearance.review import Review, ReviewStatus
from clearance.store import people
from clearance.web import pages
from clearance.web.pages.viewer import csrf_of
from tests.notices.visiting import link_to
from tests.pages.reviewing import asked, now, opened, sent, signed_in
from tests.pages.site import OWNER, Browser, Site

HOSTILE = (
    "a%00b",
    "%ff",
    "%ED%A0%80",
    "%E2%80%AE%0d%0aX:1",
    "9" * 400,
    "'%22%3E%3Cxss%20on=1%3E",
    "..%2F..%2Fx",
)
FIELDS = (
    "address", "after", "agent", "any", "back", "behind", "c1", "call", "channel", "d1", "event", "for",
    "groups", "id", "item", "key", "kind", "message", "min_risk", "mode", "name", "next", "number", "old",
    "password", "program", "q", "reason", "repeated", "review", "role", "rule", "s1", "seen", "serves",
    "session", "t1", "t1/amount", "text", "token", "uses", "version", "when", "where", "whom", "whose",
)  # fmt: skip
DEEDS = (
    "", "add", "apply", "approve", "check", "compare", "disable", "edit", "enable", "groups", "link",
    "reject", "release", "remember", "remove", "resume", "revoke", "role", "test", "claim", "1 add /tags",
)  # fmt: skip
FORM = {
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "text/html",
}


@pytest.fixture
def site(migrated_database_url: str, tmp_path: Path) -> Iterator[Site]:
    """Give a workspace without a worker, and its pages."""
    with Site.open(migrated_database_url, home=tmp_path) as found:
        yield found


def _routes() -> list[APIRoute]:
    """Return the routes of the pages, but for the endless one."""
    found = [each for router in pages.routers() for each in router.routes if isinstance(each, APIRoute)]
    return [each for each in found if not each.path.endswith("/events")]


def _methods(route: APIRoute) -> set[str]:
    return route.methods or set()


def _filled(path: str, value: str) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", value, path)


def _asks(route: APIRoute, review: Review) -> Iterator[str]:
    """Yield addresses of a route with something hostile in each of their parts."""
    real = _filled(route.path, quote(review.id))
    names = [each.alias for each in route.dependant.query_params]
    for value in HOSTILE:
        if "{" in route.path:
            yield _filled(route.path, value)
        if names:
            yield f"{real}?{'&'.join(f'{name}={value}' for name in names)}"


def _forms(token: str, review: Review) -> Iterator[str]:
    """Yield forms of this session, with something hostile in every field."""
    for place, deed in enumerate(DEEDS):
        value = HOSTILE[place % len(HOSTILE)]
        fields = "&".join(f"{quote(name, safe='')}={value}" for name in FIELDS)
        yield f"csrf={token}&{fields}&version={review.version}&do={quote(deed)}&decision={quote(deed)}"


def test_no_page_breaks_whatever_is_put_into_its_address(site: Site) -> None:
    browser, review = signed_in(site), asked(site.workspace)
    found = []
    for route in _routes():
        for address in _asks(route, review):
            for method in _methods(route) & {"GET", "HEAD"}:
                answer = browser.http.request(
                    method, address, headers={"Accept": "text/html"}, follow_redirects=False
                )
                found.append((answer.status_code, method, address))
                assert "<xss" not in answer.text
    assert [each for each in found if each[0] >= 500] == []
    assert len(found) > 100


def test_no_page_breaks_whatever_a_form_of_it_sends(site: Site) -> None:
    browser, review = signed_in(site), asked(site.workspace)
    assert browser.token is not None
    token = csrf_of(browser.token)
    found = []
    # Those that look at a password take their time for it, and end the session.
    slow = ("/login", "/logout", "/welcome/{token}")
    for route in [each for each in _routes() if "POST" in _methods(each) and each.path not in slow]:
        for form in _forms(token, review):
            address = _filled(route.path, quote(review.id))
            answer = browser.http.post(address, content=form, headers=FORM, follow_redirects=False)
            found.append((answer.status_code, address, form[-60:]))
            assert "<xss" not in answer.text
    assert [each for each in found if each[0] >= 500] == []
    assert len(found) > 100


def _at_once(*deeds: Callable[[], int]) -> list[int]:
    """Do all of these at the same moment, and return what each answered."""
    begin, answers = threading.Barrier(len(deeds)), [0] * len(deeds)

    def do(place: int, deed: Callable[[], int]) -> None:
        begin.wait()
        answers[place] = deed()

    doing = [threading.Thread(target=do, args=item) for item in enumerate(deeds)]
    for each in doing:
        each.start()
    for each in doing:
        each.join()
    return answers


def _press(browser: Browser, review: Review, answer: str) -> Callable[[], int]:
    page = opened(browser, review)
    return lambda: sent(browser, page, "decision", answer).status_code


def test_of_people_who_decide_at_once_on_pages_and_by_a_link_one_counts(site: Site) -> None:
    site.add("eva")
    site.add("ben")
    review = asked(site.workspace, ("send", '{"to":"x"}'))
    link = link_to(site.workspace, review, person="ben")
    by_link = site.browser()
    deeds = [
        _press(signed_in(site, "eva"), review, "approve"),
        _press(signed_in(site, "ben"), review, "reject"),
        _press(signed_in(site), review, "approve"),
        lambda: by_link.post(f"/l/{link}", {"answer": "reject"}).status_code,
    ]
    codes = _at_once(*deeds)
    [call] = now(site.workspace, review).calls
    assert len(call.decisions) == 1
    # Who said the same before, at another door, is told so as who said it.
    assert 1 <= len([code for code in codes if code in (200, 303)]) <= 2
    assert {200, 303, 409, 410} >= set(codes)


def test_who_is_disabled_at_the_moment_of_deciding_clears_nothing(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace, ("send", '{"to":"x"}'))
    browser = signed_in(site, "eva")
    press = _press(browser, review, "approve")

    def leave() -> int:
        disable(site.workspace.database, "eva", by=OWNER)
        return 0

    _at_once(press, leave)
    with site.workspace.database.read() as tx:
        assert people.person(tx, "eva").disabled
    after = now(site.workspace, review)
    if after.status is ReviewStatus.SETTLED:
        # She was faster. It is counted again before anything runs: see tests/store/test_execution.py.
        assert after.calls[0].decisions[0].by == "eva"
    assert browser.get("/").status_code == 303
    assert press() == 303
    assert now(site.workspace, review) == after


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
def test_who_lost_the_role_between_looking_and_pressing_decides_no_more(site: Site, role: Role) -> None:
    from clearance.membership import set_role

    site.add("eva", role=Role.OPERATOR)
    review = asked(site.workspace, ("send", '{"to":"x"}'))
    press = _press(signed_in(site, "eva"), review, "approve")
    set_role(site.workspace.database, "eva", role, by=OWNER)
    assert press() == (403 if role is Role.VIEWER else 303)
    assert (now(site.workspace, review) == review) is (role is Role.VIEWER)


@pytest.mark.parametrize("header", ["Referer", "HX-Current-URL"])
@pytest.mark.parametrize("address", ["http://[::1", "http://evil.example/x", "//evil.example", "/\\evil"])
def test_an_address_that_a_browser_says_it_is_at_leads_nowhere_else(
    site: Site, header: str, address: str
) -> None:
    headers = {header: address, "Sec-Fetch-Site": "none"}
    if header == "HX-Current-URL":
        answer = site.browser().get("/", headers={**headers, "HX-Request": "true"})
        assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/login?next=/")
    else:
        answer = site.browser().post("/logout", {}, headers=headers)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/login?next=/")
