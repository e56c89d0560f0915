"""A research run in a real browser: its picture follows it, its plan is decided with scripts and without."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.site import Open, Site, Tab
from tests.research.pipelines import OBJECTIVE, Lab

SCRIPTS = pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no scripts"])
RUN = "/pipeline/run1"
LONG = 60_000
"""Milliseconds in which a run has come to its next stop, on a busy machine too."""


def _lab(site: Site) -> Lab:
    return Lab(site.workspace, site.research)


def test_the_picture_follows_the_run_from_its_start_to_its_report(tab: Tab, site: Site) -> None:
    page = tab.open("/pipeline")
    page.get_by_label("Gene symbol").fill("BRCA1")
    page.get_by_label("Objective").fill(OBJECTIVE)
    page.get_by_label("Offline").check()
    page.get_by_role("button", name="Start run").click()
    said = page.locator("svg.wide desc")
    expect(said).to_have_text(re.compile(r"hitl_plan \(gate S4_plan\): waits for people"), timeout=LONG)
    page.evaluate("window.untouched = true")
    page.get_by_label("Comment").fill("still typing")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('changed'))")
    [run] = site.research.newest(limit=2)
    lab = _lab(site)
    lab.decide("revise", run.id, changes={"exclude": ["gc-profile"]})
    expect(page.get_by_role("heading", name="Waiting at S4_plan: version 2")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("removed gc-profile")).to_be_visible()
    assert page.locator("input[name=plan_sha256]").input_value() == lab.waiting(run.id).plan.sha256
    lab.decide("approve", run.id)
    expect(said).to_have_text(re.compile(r"analyst: done; reporter: done"), timeout=LONG)
    expect(page.get_by_role("link", name="Read the report")).to_be_visible()
    assert page.evaluate("window.untouched")


def test_what_is_typed_stays_while_the_page_is_renewed(tab: Tab, site: Site) -> None:
    _lab(site).start()
    page = tab.live(RUN)
    page.get_by_label("Comment").fill("still typing")
    page.get_by_text("Wishes, to send it back").click()
    page.get_by_label("gc-profile").check()
    with page.expect_response(lambda answer: answer.url.endswith(RUN)):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('changed'))")
    expect(page.locator("#run")).not_to_have_class(re.compile("htmx-(request|swapping|settling)"))
    expect(page.get_by_label("Comment")).to_have_value("still typing")
    expect(page.get_by_label("gc-profile")).to_be_checked()


@SCRIPTS
def test_a_plan_is_sent_back_edited_and_approved(open_tab: Open, site: Site, javascript: bool) -> None:
    lab = _lab(site)
    lab.start()
    page = open_tab(javascript=javascript).open(RUN)
    page.get_by_text("Wishes, to send it back").click()
    page.get_by_label("gc-profile").check()
    page.get_by_role("button", name="Send back to planner").click()
    site.research.wait_for("run1", wait=60)
    page.goto(site.url + RUN)
    expect(page.get_by_role("heading", name="Changes since v1")).to_be_visible()
    page.get_by_role("link", name="Edit the plan").click()
    text = page.get_by_label("The plan", exact=True)
    text.fill(text.input_value().replace('"min_aa": 100', '"min_aa": 75'))
    page.get_by_role("button", name="Approve plan").click()
    assert site.research.wait_for("run1", wait=60).stage.value == "done"
    made = site.research.store.plan("run1", 3)
    assert made.created_by.name == "ann"
    assert len(lab.executed()) == len(made.steps)


def test_the_report_is_opened_and_runs_nothing(tab: Tab, site: Site) -> None:
    lab = _lab(site)
    lab.start()
    lab.research.store.put(
        "run1", "bad.html", "<h1>x</h1><script>document.title='ran'</script>", media_type="text/html"
    )
    page = tab.open(f"{RUN}/files/bad.html?open=1")
    expect(page.get_by_role("heading", name="x")).to_be_visible()
    assert page.title() == ""
    assert all("script" in said for said in tab.complaints)
    tab.complaints.clear()  # the browser itself says that it ran nothing
