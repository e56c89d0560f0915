"""The settings in a real browser: a policy is tried and applied, and a call remembered, by keys alone."""

from playwright.sync_api import expect

from clearance.review import ReviewStatus
from clearance.store import policies, standing
from tests.browser.keyboard import press
from tests.browser.settings_pages import SEND, TEXT
from tests.browser.site import Site, Tab, check
from tests.pages.reviewing import asked, now


def test_a_policy_is_tried_and_applied_by_keys_alone(tab: Tab, site: Site) -> None:
    asked(site.workspace, SEND)
    site.add("ben", groups=("finance", "leads"))
    site.add("eve", groups=("finance",))
    page = tab.open("/")
    press(page, "link", "Settings")
    press(page, "link", "Policies")
    box = page.get_by_label("policy.toml")
    box.focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(TEXT + 'effect = "alow"\n')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Line 22, column 10: effect is one of")).to_be_visible()
    assert all("422" in said for said in tab.complaints), tab.complaints
    tab.complaints.clear()
    expect(box).to_have_value(TEXT + 'effect = "alow"\n')
    box.focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(TEXT + 'effect = "allow"\n')
    press(page, "button", "Test on the last 30 days")
    expect(page.get_by_text("0 of 1 calls would have waited for people")).to_be_visible()
    box.focus()
    press(page, "button", "Compare, then apply")
    expect(page.locator("ins", has_text='+ effect = "allow"')).to_be_visible()
    check(page)
    press(page, "button", "Apply to bank")
    expect(page.get_by_text("This policy is active now.")).to_be_visible()
    with site.workspace.database.read() as tx:
        assert policies.history(tx, "bank")[0].text == TEXT + 'effect = "allow"\n'


def test_a_call_is_approved_and_remembered_by_keys_alone(tab: Tab, site: Site) -> None:
    review = asked(site.workspace, SEND)
    page = tab.open(f"/reviews/{review.id}")
    press(page, "link", "Approve and remember")
    free = page.get_by_label("any value of body")
    free.focus()
    page.keyboard.press("Space")
    page.get_by_label("How many calls").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("You have decided this")).to_be_visible()
    assert now(site.workspace, review).status is ReviewStatus.SETTLED
    with site.workspace.database.read() as tx:
        [rule] = standing.page(tx, every=False, limit=10)
    assert (rule.uses, rule.free, rule.thread_id) == (3, ("body",), review.thread_id)
