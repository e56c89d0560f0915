"""The guard before the pages: what other sites send changes nothing, and what browsers may do with a page."""

from collections.abc import Mapping

import pytest
from sqlalchemy import select

from clearance.store.tables import people, sessions
from clearance.web.pages.failures import FROM_ELSEWHERE, TITLES
from tests.pages.site import OWNER, PLAIN, Browser, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

HOST = PLAIN.removeprefix("http://")


def _open_sessions(site: Site) -> int:
    with site.workspace.database.read() as tx:
        return len(tx.execute(select(sessions.c.id).where(sessions.c.revoked_at.is_(None))).all())


def _csrf(browser: Browser) -> str:
    return dict(browser.page("/me/sessions").form("/logout").values)["csrf"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": PLAIN},
        {"Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "Same-Origin"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": f"http://evil.example@{HOST}"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site", "Authorization": "Basic YTpi"},
        {"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer clr_x"},
        {"Sec-Fetch-Site": "cross-site", "X-Api-Key": "clr_x"},
    ],
    ids=str,
)
def test_what_another_site_sends_is_refused_though_its_token_is_right(
    site: Site, headers: Mapping[str, str]
) -> None:
    browser = site.signed_in()
    data = {"csrf": _csrf(browser)}
    for path in ("/logout", "/login", "/welcome/x", "/me/sessions", "/me/password", "/nowhere"):
        answer = browser.post(path, data, headers=headers)
        assert (answer.status_code, "from a page of another site" in answer.text) == (403, True), path
        assert "set-cookie" not in answer.headers
    assert _open_sessions(site) == 1
    assert browser.get("/me/sessions").status_code == 200


def test_a_browser_is_told_so_by_a_page_like_those_of_other_failures(site: Site) -> None:
    browser = site.signed_in()
    headers = {"Sec-Fetch-Site": "cross-site", "Accept": "text/html"}
    answer = browser.post("/logout", {"csrf": _csrf(browser)}, headers=headers)
    assert answer.status_code == 403
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    told = Page(answer.text).text
    assert TITLES[403] in told
    assert FROM_ELSEWHERE in told
    assert OWNER not in told
    assert _open_sessions(site) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
        {"Origin": PLAIN},
        {},
    ],
    ids=str,
)
def test_what_our_own_page_sends_is_taken(site: Site, headers: Mapping[str, str]) -> None:
    browser = site.signed_in()
    answer = browser.post("/logout", {"csrf": _csrf(browser)}, headers=headers)
    assert answer.status_code == 303
    assert _open_sessions(site) == 0


@pytest.mark.parametrize("sort", ["none", "empty", "wrong", "of another session", "of before", "not ASCII"])
def test_a_form_that_is_not_of_this_session_is_refused(site: Site, sort: str) -> None:
    before = site.signed_in()
    of_before = _csrf(before)
    before.post("/logout", {"csrf": of_before})
    other, browser = site.signed_in(), site.signed_in()
    tokens = {
        "empty": "",
        "wrong": "0" * 64,
        "of another session": _csrf(other),
        "of before": of_before,
        "not ASCII": "é",
    }
    data = {"session": "", **({} if sort == "none" else {"csrf": tokens[sort]})}
    for path in ("/logout", "/me/sessions", "/me/password"):
        answer = browser.post(path, data)
        assert answer.status_code == 403
        assert "This form is not of your present sign-in" in Page(answer.text).text
    assert _open_sessions(site) == 2


def test_the_token_of_the_forms_does_not_give_the_cookie_away(site: Site) -> None:
    browser = site.signed_in()
    token = browser.token
    assert token is not None
    page = browser.get("/me/sessions").text
    assert _csrf(browser) in page
    assert token not in page


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_looking_changes_nothing(site: Site, method: str) -> None:
    browser = site.signed_in()
    csrf = _csrf(browser)
    with site.workspace.database.read() as tx:
        before = [*tx.execute(select(sessions)), *tx.execute(select(people))]
    for path in ("/logout", "/me/sessions", "/me/password", "/login"):
        browser.http.request(
            method, path, params={"csrf": csrf, "session": "x", "again": "1"}, follow_redirects=False
        )
    with site.workspace.database.read() as tx:
        after = [*tx.execute(select(sessions)), *tx.execute(select(people))]
    assert after == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
def test_no_other_method_passes_from_another_site(site: Site, method: str) -> None:
    answer = site.signed_in().http.request(
        method, "/me/sessions", headers={"Sec-Fetch-Site": "cross-site"}, follow_redirects=False
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/login", "/me/sessions", "/welcome/none", "/nowhere"])
def test_every_page_says_what_a_browser_may_do_with_it(site: Site, path: str) -> None:
    browser = site.signed_in()
    first, second = browser.get(path).headers, browser.get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in first["content-security-policy"].split(";"))
    nonce = policy.pop("script-src")
    assert policy == {
        "default-src": "'none'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    assert nonce.startswith("'nonce-")
    assert len(nonce) >= len("'nonce-'") + 22
    assert nonce not in second["content-security-policy"]
    assert first["x-content-type-options"] == "nosniff"
    assert first["referrer-policy"] == ("no-referrer" if path.startswith("/welcome") else "same-origin")
    assert first["cache-control"] == "no-store"


def test_the_nonce_of_the_policy_is_that_of_the_scripts(site: Site) -> None:
    answer = site.signed_in().get("/me/sessions")
    nonce = answer.headers["content-security-policy"].partition("'nonce-")[2].partition("'")[0]
    assert answer.text.count("<script") == answer.text.count(f'nonce="{nonce}"') > 0


def test_doors_for_keys_are_left_alone(site: Site) -> None:
    answer = site.browser().http.post(
        "/api/v1/calls", json={}, headers={"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}
    )
    assert answer.status_code == 401
    assert "content-security-policy" not in answer.headers
