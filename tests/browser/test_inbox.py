"""The inbox in a browser: it renews itself under the hands of who works in it, and can be worked by keys."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from clearance.review import Answer, ReviewStatus
from clearance.store import reviews
from tests.browser.site import NARROW, Open, Site, Tab, check
from tests.web.asked import ask


def rows(page: Page) -> Locator:
    """Return the rows that can be seen."""
    return page.locator(".rows .row:visible")


def focused(page: Page) -> str:
    """Return the review whose row has the focus; empty: none has."""
    found: str = page.evaluate("document.activeElement.closest('.row')?.id ?? ''")
    return found


def status(site: Site, review_id: str) -> ReviewStatus:
    """Return what became of a review."""
    with site.workspace.database.read() as tx:
        return reviews.review(tx, review_id).status


def test_a_new_review_appears_without_reloading_and_everything_stays_as_it_was(tab: Tab, site: Site) -> None:
    asked = [ask(site.workspace, ("send", f'{{"to":"{n}"}}'), by=f"agent-{n}") for n in range(30)]
    page = tab.live()
    page.evaluate("window.same = true")
    box = page.locator(".row").nth(20).locator("input[name=item]")
    box.check()
    link = page.locator(".row").nth(21).locator("a.what")
    link.focus()
    page.locator("input[name=comment]").evaluate("box => { box.value = 'half a sentence' }")
    top = link.bounding_box()
    page.evaluate("window.scrolled = scrollY")

    new = ask(site.workspace, ("note", "{}"), by="agent-x")
    expect(page.locator(f"[id='{new.id}']")).to_be_attached()
    expect(page.locator("#count")).to_have_text("31")
    assert page.evaluate("window.same && scrollY === window.scrolled")
    assert link.bounding_box() == top
    assert focused(page) == asked[21].id
    expect(box).to_be_checked()
    expect(page.locator("#selected")).to_have_text("1 selected")
    expect(page.locator("input[name=comment]")).to_have_value("half a sentence")


def test_every_open_tab_is_told_and_what_is_decided_elsewhere_goes(open_tab: Open, site: Site) -> None:
    review = ask(site.workspace, by="agent")
    site.add("bob")
    pages = [open_tab(person=person).live() for person in ("ann", "bob")]
    for page in pages:
        expect(rows(page)).to_have_count(1)
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="bob", version=review.version)
    for page in pages:
        expect(page.get_by_text("Nothing waits for you")).to_be_visible()


def test_a_hidden_tab_misses_nothing(tab: Tab, site: Site) -> None:
    page = tab.live()
    hide = "hidden => { Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    review = ask(site.workspace)
    with page.expect_response(lambda answer: "/events" in answer.url):
        page.evaluate(hide, False)
    expect(page.locator(f"[id='{review.id}']")).to_be_attached()


def test_the_first_row_is_the_most_urgent_and_a_filter_stays_in_the_address(tab: Tab, site: Site) -> None:
    for tool in ("note", "wipe", "pay"):
        ask(site.workspace, (tool, "{}"))
    page = tab.open()
    expect(rows(page).locator(".risk")).to_have_text(["▲▲ Critical", "▲ High", "● Low"])
    with page.expect_navigation():
        page.get_by_label("Risk").select_option("high")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("searchbox").fill("money")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "risk=high" in page.url
    assert "q=money" in page.url
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Risk")).to_have_value("high")


def test_keys_go_through_the_rows_and_nothing_happens_while_typing(tab: Tab, site: Site) -> None:
    first, second = ask(site.workspace, by="agent"), ask(site.workspace, by="other")
    page = tab.open()
    page.keyboard.press("j")
    assert focused(page) == first.id
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert focused(page) == second.id
    page.keyboard.press("k")
    page.keyboard.press("x")
    boxes = page.locator("input[name=item]")
    expect(boxes.nth(0)).to_be_checked()
    page.keyboard.press("/")
    page.keyboard.type("jxck?")
    expect(page.get_by_role("searchbox")).to_have_value("jxck?")
    expect(boxes.nth(0)).to_be_checked()
    expect(boxes.nth(1)).not_to_be_checked()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_c_claims_and_the_row_keeps_the_place(tab: Tab, site: Site) -> None:
    review = ask(site.workspace, by="agent")
    page = tab.open()
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("c")
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    assert page.url.endswith(f"#{review.id}")


@pytest.mark.parametrize("key", ["a", "r", "e", " ", "Control+Enter"])
def test_no_key_decides(tab: Tab, site: Site, key: str) -> None:
    review = ask(site.workspace, by="agent")
    page = tab.open()
    page.locator("input[name=item]").focus()
    page.keyboard.press("x")
    page.keyboard.press(key)
    page.locator("input[name=comment]").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    page.goto(site.url)
    assert status(site, review.id) is ReviewStatus.PENDING


def test_single_keys_can_be_turned_off(tab: Tab, site: Site) -> None:
    ask(site.workspace)
    page = tab.open()
    page.keyboard.press("?")
    page.get_by_label("Use single keys in this browser").uncheck()
    check(page)
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("j")
    assert focused(page) == ""


def test_several_are_approved_by_keyboard_alone(tab: Tab, site: Site) -> None:
    asked = [ask(site.workspace, ("note", f'{{"n":{n}}}'), by="agent") for n in range(3)]
    page = tab.open()
    page.keyboard.press("j")
    page.keyboard.press("Enter")  # opens the similar ones
    expect(rows(page)).to_have_count(4)
    page.keyboard.press("x")
    expect(page.locator("#selected")).to_have_text("3 selected")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "approve":
            break
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("Approved: it runs once"))).to_have_count(3)
    check(page)
    with site.workspace.database.read() as tx:
        assert {reviews.review(tx, each.id).calls[0].state for each in asked} == {Answer.APPROVED}


def test_what_is_not_decided_together_says_why_before_anything_is_sent(tab: Tab, site: Site) -> None:
    ask(site.workspace, ("send", '{"to":"a"}'), by="agent")
    ask(site.workspace, ("note", "{}"), by="agent")
    ask(site.workspace, ("pay", "{}"), by="agent")
    page = tab.open()
    approve, why = page.get_by_role("button", name="Approve all"), page.locator("#why-not")
    expect(approve).to_be_disabled()
    page.locator("input[name=item]").nth(1).check()
    expect(approve).to_be_enabled()
    page.locator("input[name=item]").nth(2).check()
    expect(approve).to_be_disabled()
    expect(why).to_contain_text("One kind at a time")
    page.locator("input[name=item]").nth(2).uncheck()
    page.locator("input[name=item]").nth(0).check()
    expect(why).to_contain_text("High and critical risk")
    expect(page.get_by_role("button", name="Claim all")).to_be_enabled()


def test_without_scripts_several_are_decided_and_claimed(open_tab: Open, site: Site) -> None:
    asked = [ask(site.workspace, by=f"agent-{n}") for n in range(2)]
    page = open_tab(NARROW, javascript=False).open()
    page.get_by_role("button", name="Claim", exact=True).first.click()
    expect(page.get_by_role("button", name="Release")).to_have_count(1)
    for box in page.locator("input[name=item]").all():
        box.check()
    page.get_by_role("button", name="Reject all").click()
    expect(page.locator(".outcome")).to_have_count(2)
    assert {status(site, each.id) for each in asked} == {ReviewStatus.SETTLED}


def test_a_session_that_ends_is_told_by_the_way_to_sign_in(tab: Tab, site: Site) -> None:
    page = tab.live()
    page.context.clear_cookies()
    ask(site.workspace)
    page.wait_for_url(re.compile("/login"))
    tab.complaints.clear()  # the browser itself complains of the refused request
