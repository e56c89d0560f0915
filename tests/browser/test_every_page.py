"""What holds for every page: everybody can use it, it is small, keeps to its policy, and needs no scripts."""

import pytest
from playwright.sync_api import expect

from tests.browser.every_page import PAGES, Case
from tests.browser.site import MOST_SENT, NARROW, WIDE, Open, Site, check, sent


@pytest.mark.parametrize("case", PAGES.values(), ids=PAGES.keys())
def test_a_page_is_small_and_can_be_used_by_everybody_with_and_without_scripts(
    open_tab: Open, site: Site, case: Case
) -> None:
    path = case.make(site)
    tab = open_tab(person=case.person)
    assert sent(tab.page, lambda: tab.open(path)) <= MOST_SENT
    case.then(site, tab.page)
    for width, height in (WIDE, NARROW):
        tab.page.set_viewport_size({"width": width, "height": height})
        check(tab.page)
    plain = open_tab(person=case.person, javascript=False)
    page = plain.open(path)
    case.then(site, page)
    expect(page.locator("h1")).to_be_visible()
    for form in page.locator("form[method=post]").all():
        assert form.get_attribute("action")
    if case.fails:
        for each in (tab, plain):
            each.complaints.clear()  # the browser itself complains of what was not there
