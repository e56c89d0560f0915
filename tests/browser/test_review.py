"""A review in a real browser: read exactly, edited without harm to what nobody touched, decided once."""

import json

import pytest
from playwright.sync_api import Page, expect

from clearance.review import Answer, ReviewStatus
from clearance.visible import visible
from tests.browser.site import NARROW, WIDE, Open, Site, Tab, check
from tests.pages.reviewing import ARGUMENTS, asked, now

SCRIPTS = pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no scripts"])
HARD = [
    "x" * 10_000,
    "<b>bold</b> <script>alert(1)</script> </pre></textarea>",
    "# heading\n\n- a\n- **b**",
    "a\u200bb \u202eabc\ufeff",
    "\n\nbegins with two empty lines",
    "one\r\ntwo\rthree\n",
    "tab\there  \nspaces before the end",
]


def _refused(tab: Tab) -> None:
    """Take back what the browser itself says about an answer that is a refusal."""
    assert all("the server responded with a status of" in said for said in tab.complaints), tab.complaints
    tab.complaints.clear()


def _decided(page: Page) -> None:
    expect(page.get_by_text("You have decided this")).to_be_visible()


@pytest.mark.parametrize("text", HARD)
def test_an_argument_is_shown_and_given_back_character_for_character(
    open_tab: Open, site: Site, text: str
) -> None:
    arguments = json.dumps({"to": "ann", "body": text}, ensure_ascii=False)
    review = asked(site.workspace, ("send", arguments))
    tab = open_tab()
    page = tab.open(f"/reviews/{review.id}")
    assert page.locator("pre.value").all_text_contents() == ["ann", visible(text, lines=True)]
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("to", exact=True).fill("bob")
    page.get_by_role("button", name="Approve").click()
    _decided(page)
    assert now(site.workspace, review).calls[0].arguments == json.dumps(
        {"to": "bob", "body": text}, ensure_ascii=False, separators=(",", ":")
    )


@SCRIPTS
def test_an_edit_of_one_field_leaves_the_others_byte_equal(
    open_tab: Open, site: Site, javascript: bool
) -> None:
    review = asked(site.workspace)
    page = open_tab(javascript=javascript).open(f"/reviews/{review.id}?edit=1")
    page.get_by_label("lines").fill("one\nthree")
    page.get_by_role("button", name="Approve").click()
    _decided(page)
    [call] = now(site.workspace, review).calls
    assert call.arguments == ARGUMENTS.replace("one\\ntwo", "one\\nthree")


@SCRIPTS
@pytest.mark.parametrize("mode", ["", "?edit=1", "?raw=1"])
def test_what_nobody_touched_is_approved_as_the_same_bytes(
    open_tab: Open, site: Site, javascript: bool, mode: str
) -> None:
    review = asked(site.workspace)
    page = open_tab(javascript=javascript).open(f"/reviews/{review.id}{mode}")
    page.get_by_role("button", name="Approve").click()
    _decided(page)
    [call] = now(site.workspace, review).calls
    assert (call.arguments, call.edited) == (ARGUMENTS, False)


@SCRIPTS
def test_an_edit_that_does_not_fit_is_said_at_its_field_and_nothing_runs(
    open_tab: Open, site: Site, javascript: bool
) -> None:
    review = asked(site.workspace)
    tab = open_tab(javascript=javascript)
    page = tab.open(f"/reviews/{review.id}?edit=1")
    page.get_by_label("amount").fill("lots")
    page.get_by_label("Comment").fill("my reason")
    page.get_by_role("button", name="Approve").click()
    field = page.get_by_label("amount")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("must be a number, such as 48250.0")
    expect(field).to_have_value("lots")
    expect(page.get_by_label("Comment")).to_have_value("my reason")
    if javascript:  # what checks a page is a script
        check(page)
    _refused(tab)
    assert now(site.workspace, review) == review


def test_while_somebody_types_the_button_counts_their_edits(page: Page, tab: Tab, site: Site) -> None:
    review = asked(site.workspace)
    tab.open(f"/reviews/{review.id}?edit=1")
    amount = page.get_by_label("amount")
    amount.fill("1.50")
    expect(page.get_by_role("button", name="Approve with 1 edit")).to_be_visible()
    page.get_by_label("by").select_option("card")
    expect(page.get_by_role("button", name="Approve with 2 edits")).to_be_visible()
    expect(page.locator(".changes pre.value")).to_have_text(["48250.0", "1.50", "bank", "card"])
    expect(amount).to_have_value("1.50")
    assert now(site.workspace, review) == review


def test_a_review_that_is_decided_elsewhere_says_so_at_once_and_refuses(tab: Tab, site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    page = tab.live(f"/reviews/{review.id}")
    page.get_by_label("Comment").fill("still typing")
    site.workspace.gate.decide(review.id, [{"type": "reject", "message": "no"}], by="eva", version=1)
    expect(page.get_by_role("alert")).to_contain_text("eva: reject pay")
    expect(page.get_by_label("Comment")).to_have_value("still typing")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Your decision was not taken")).to_be_visible()
    _refused(tab)
    assert now(site.workspace, review).calls[0].state is Answer.REJECTED


def test_without_scripts_who_comes_too_late_is_told_who_decided(open_tab: Open, site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    tab = open_tab(javascript=False)
    page = tab.open(f"/reviews/{review.id}")
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="eva", version=1)
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert").first).to_contain_text("eva: approve pay")
    _refused(tab)


@SCRIPTS
def test_a_rejection_needs_a_reason_where_the_rule_says_so(
    open_tab: Open, site: Site, javascript: bool
) -> None:
    review = asked(site.workspace, ("refund", '{"amount":3.50}'))
    tab = open_tab(javascript=javascript)
    page = tab.open(f"/reviews/{review.id}")
    page.get_by_role("button", name="Reject").click()
    comment = page.get_by_label("Comment")
    expect(comment).to_have_attribute("aria-invalid", "true")
    _refused(tab)
    comment.fill("not ours")
    page.get_by_role("button", name="Reject").click()
    _decided(page)
    assert now(site.workspace, review).calls[0].decisions[0].message == "not ours"


@SCRIPTS
def test_a_quorum_of_two_needs_two_people(open_tab: Open, site: Site, javascript: bool) -> None:
    site.add("eva")
    review = asked(site.workspace, ("wipe", "{}"))
    for person, left in (("ann", ReviewStatus.PENDING), ("eva", ReviewStatus.SETTLED)):
        page = open_tab(person=person, javascript=javascript).open(f"/reviews/{review.id}")
        page.get_by_role("button", name="Approve").click()
        _decided(page)
        assert now(site.workspace, review).status is left


@SCRIPTS
def test_several_calls_are_decided_in_one_go(open_tab: Open, site: Site, javascript: bool) -> None:
    review = asked(site.workspace, ("send", '{"to":"a"}'), ("refund", '{"amount":3.50}'))
    page = open_tab(javascript=javascript).open(f"/reviews/{review.id}")
    page.get_by_role("group", name="Decide call 1").get_by_label("Approve").check()
    page.get_by_role("group", name="Decide call 2").get_by_label("Reject").check()
    page.locator("#c2").fill("no")
    page.get_by_role("button", name="Decide all 2 calls").click()
    _decided(page)
    assert [call.state for call in now(site.workspace, review).calls] == [Answer.APPROVED, Answer.REJECTED]


@SCRIPTS
def test_a_double_click_decides_once(open_tab: Open, site: Site, javascript: bool) -> None:
    review = asked(site.workspace)
    page = open_tab(javascript=javascript).open(f"/reviews/{review.id}")
    page.get_by_role("button", name="Approve").dblclick()
    _decided(page)
    assert len(now(site.workspace, review).calls[0].decisions) == 1


def test_return_in_a_field_decides_nothing(tab: Tab, site: Site) -> None:
    review = asked(site.workspace)
    page = tab.open(f"/reviews/{review.id}?edit=1")
    page.get_by_label("amount").fill("1.0")
    page.get_by_label("amount").press("Enter")
    expect(page.get_by_role("button", name="Approve with 1 edit")).to_be_visible()
    assert now(site.workspace, review) == review


def test_a_review_is_decided_by_the_keyboard_alone(tab: Tab, site: Site) -> None:
    first, second = asked(site.workspace), asked(site.workspace, ("refund", '{"amount":1}'))
    page = tab.open("/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.keyboard.press("j")
    expect(page).to_have_url(f"{site.url}/reviews/{second.id}")
    page.keyboard.press("k")
    expect(page).to_have_url(f"{site.url}/reviews/{first.id}")
    for key in "aer":
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Reject")).to_be_focused()
    assert now(site.workspace, first) == first
    page.keyboard.press("e")
    page.keyboard.press("Enter")
    page.get_by_label("amount").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2.5a")
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+Enter")
    _decided(page)
    assert json.loads(now(site.workspace, first).calls[0].arguments)["amount"] == 2.5


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_state_of_a_review_can_be_used_by_everybody(
    open_tab: Open, site: Site, size: tuple[int, int]
) -> None:
    site.add("eva")
    text = json.dumps({"to": "a" * 300, "body": "<b>\u202ehidden</b>" + "x" * 400})
    several = asked(
        site.workspace, ("send", text), ("refund", '{"amount":3.50}'), message="**Do** it.\n\n- now"
    )
    quorum = asked(site.workspace, ("wipe", '{"a":[{"b":1e2}]}'))
    site.workspace.gate.decide(quorum.id, [{"type": "approve", "message": "fine"}], by="eva", version=1)
    ended, waits = asked(site.workspace), asked(site.workspace)
    edit = {"name": "pay", "args": ARGUMENTS.replace("48250.0", "1.0")}
    site.workspace.gate.decide(ended.id, [{"type": "edit", "edited_action": edit}], by="eva", version=1)
    tab = open_tab(size)
    for path in (
        waits.id, f"{waits.id}?edit=1", f"{waits.id}?raw=1",
        several.id, f"{several.id}?edit=1", quorum.id, ended.id,
    ):  # fmt: skip
        check(tab.open(f"/reviews/{path}"))
