"""The trail and the runs in a browser: the check says where it was changed, and lists renew themselves."""

import re

from playwright.sync_api import expect
from sqlalchemy import text

from clearance.run import RunState
from clearance.store import runs
from tests.browser.every_page import numbered
from tests.browser.site import NARROW, Open, Site, Tab, check
from tests.web.asked import ask
from tests.web.talking import until


def test_the_check_is_green_until_a_row_is_altered_and_then_names_the_first_such_entry(
    tab: Tab, site: Site
) -> None:
    for _ in range(3):
        review = ask(site.workspace, ("note", "{}"), by="agent")
        site.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    until(lambda: numbered(site))
    page = tab.open("/audit")
    page.get_by_role("button", name="Verify").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Nothing was altered")).to_have_text(
        re.compile(r"✓ \d+ entries, the last seal is \d+ \([0-9a-f]{6}…\), 0 not yet sealed")
    )
    with site.workspace.database.write() as tx:
        tx.execute(text("update entries set subject = 'another' where seq in (4, 7)"))
    page.get_by_role("button", name="Verify").click()
    told = page.get_by_role("alert")
    expect(told.locator("li").first).to_contain_text("Entry 4 is not what its hash was made over")
    check(page)
    told.get_by_role("link", name="Look at entry 4").click()
    expect(page.locator("#e4")).to_be_visible()
    expect(page.locator("#e4")).to_contain_text("another")


def test_filters_of_the_trail_stay_in_the_address_and_facts_are_opened_by_keys(tab: Tab, site: Site) -> None:
    ask(site.workspace, by="agent")
    until(lambda: numbered(site))
    page = tab.open("/audit")
    with page.expect_navigation():
        page.get_by_label("Kind").select_option("review:asked")
    assert "kind=review%3Aasked" in page.url
    entry = page.locator(".trail > li")
    expect(entry).to_have_count(1)
    entry.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(entry.get_by_text(re.compile("fingerprint"))).to_be_visible()
    check(page)


def test_the_list_of_runs_renews_itself(tab: Tab, site: Site) -> None:
    page = tab.live("/runs")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()
    review = ask(site.workspace, by="agent")
    expect(page.locator(f"[id='run:{review.run_id}']")).to_contain_text("Waiting")
    page.get_by_role("link", name="the review of send").click()
    expect(page).to_have_url(re.compile(f"/reviews/{review.id}"))


def test_a_run_is_cancelled_without_scripts(open_tab: Open, site: Site) -> None:
    review = ask(site.workspace, by="agent")
    page = open_tab(NARROW, javascript=False).open(f"/runs/{review.run_id}")
    page.get_by_label("Reason").fill("no longer wanted")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator(".banner", has_text="no longer wanted")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    with site.workspace.database.read() as tx:
        assert runs.run(tx, review.run_id).state is RunState.CANCELLED
