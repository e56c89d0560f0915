"""What holds for every page: everybody can use it, it is small, keeps to its policy, and needs no scripts."""

import pytest
from playwright.sync_api import expect

from tests.browser.every_page import PAGES, Case
from tests.browser.site import MOST_SENT, NARROW, WIDE, Open, Site, check, sent

CASES = pytest.mark.parametrize("case", PAGES.values(), ids=PAGES.keys())


@CASES
def test_a_page_can_be_used_by_everybody_at_both_widths_in_light_and_dark(
    open_tab: Open, site: Site, case: Case
) -> None:
    path = case.make(site)
    for size in (WIDE, NARROW):
        tab = open_tab(size, person=case.person)
        check(tab.open(path))
        if case.fails:
            tab.complaints.clear()  # the browser itself complains of what was not there


@CASES
def test_a_page_needs_little(open_tab: Open, site: Site, case: Case) -> None:
    path = case.make(site)
    tab = open_tab(person=case.person)
    assert sent(tab.page, lambda: tab.open(path)) <= MOST_SENT
    if case.fails:
        tab.complaints.clear()


@CASES
def test_a_page_is_whole_without_scripts(open_tab: Open, site: Site, case: Case) -> None:
    path = case.make(site)
    tab = open_tab(person=case.person, javascript=False)
    page = tab.open(path)
    expect(page.locator("h1")).to_be_visible()
    for form in page.locator("form[method=post]").all():
        assert form.get_attribute("action")
    if case.fails:
        tab.complaints.clear()
