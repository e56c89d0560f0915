"""Failures: a browser gets a page with words, everybody else a problem, and neither gets a stack trace."""

import pytest

from clearance.web.pages.failures import TITLES
from tests.pages.site import Page, Site

BROWSER = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Site": "same-origin"}


def test_a_browser_gets_a_page_in_words_where_nothing_is(site: Site) -> None:
    answer = site.browser().get("/no/such/page", headers=BROWSER)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert TITLES[404] in Page(answer.text).text


def test_another_client_gets_a_problem(site: Site) -> None:
    answer = site.browser().get("/no/such/page", headers={"Accept": "application/json"})
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"


def test_the_api_answers_a_browser_by_a_problem_too(site: Site) -> None:
    answer = site.browser().get("/api/v1/reviews", headers=BROWSER)
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_method_that_a_page_does_not_take_is_said_with_those_that_it_takes(site: Site) -> None:
    answer = site.browser().http.put("/", headers=BROWSER)
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]
    assert TITLES[405] in Page(answer.text).text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 422),
        ({"item": "nonsense", "do": "approve"}, 422),
        ({"item": '[["no/1/1",1]]', "do": "approve"}, 422),
        ({"item": '[["a\\u0000b",1]]', "do": "approve"}, 422),
        ({"item": '[["no/1/1",1]]', "do": "unknown"}, 422),
        ({"item": '[["no/1/1",1]]', "do": "approve", "csrf": "of another session"}, 403),
    ],
)
def test_a_form_that_cannot_be_taken_is_answered_in_words(
    site: Site, fields: dict[str, str], status: int
) -> None:
    browser = site.signed_in()
    sent = {"csrf": dict(browser.page("/").form("/logout").values)["csrf"], **fields}
    answer = browser.post("/inbox", sent, headers=BROWSER)
    assert answer.status_code == status
    assert TITLES[status] in Page(answer.text).text


def test_a_mistake_of_ours_is_a_page_without_a_trace(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    @site.app.get("/broken")
    def broken() -> None:
        raise KeyError("a secret")

    answer = site.browser().get("/broken", headers=BROWSER)
    assert answer.status_code == 500
    assert TITLES[500] in Page(answer.text).text
    assert "secret" not in answer.text
    assert "KeyError" in caplog.text
    # It is answered outside of the guard, and browsers are told the same about it.
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_part_that_cannot_be_renewed_stays_as_it_is(site: Site) -> None:
    htmx = {**BROWSER, "HX-Request": "true", "HX-Request-Type": "partial"}
    answer = site.browser().get("/no/such/page", headers=htmx)
    assert answer.status_code == 404
    assert answer.headers["HX-Reswap"] == "none"
