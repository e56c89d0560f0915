"""The link of a message in a real browser: looking changes nothing, however often; its button works once."""

from playwright.sync_api import expect

from clearance.review import ReviewStatus
from tests.browser.keyboard import press
from tests.browser.site import Open, Site
from tests.notices.visiting import link_to
from tests.pages.reviewing import now
from tests.web.asked import ask


def test_looking_changes_nothing_and_pressing_works_once(open_tab: Open, site: Site) -> None:
    review = ask(site.workspace)
    path = f"/l/{link_to(site.workspace, review, person=site.add('ben'))}"
    tabs = [open_tab(person=None), open_tab(person=None, javascript=False)]
    first, second = (tab.page for tab in tabs)
    for _ in range(5):
        tabs[0].open(path)
    assert first.request.head(site.url + path).ok
    tabs[1].open(path)
    assert now(site.workspace, review).status is ReviewStatus.PENDING
    press(first, "button", "Approve")
    assert now(site.workspace, review).status is ReviewStatus.SETTLED
    press(second, "button", "Reject")
    expect(second.get_by_role("button", name="Reject")).to_have_count(0)
    assert [item.by for call in now(site.workspace, review).calls for item in call.decisions] == ["ben"]
    for tab in tabs:
        assert all("status of 4" in said for said in tab.complaints)
        tab.complaints.clear()  # the browser itself says that who came second was refused
