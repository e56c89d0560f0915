"""Every kind of decision, and the way in, with nothing but a keyboard; where it says so, without scripts."""

import re

import pytest
from playwright.sync_api import expect

from clearance.passwords import hashed
from clearance.policy import DecisionType
from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store import passwords, runs
from tests.browser.keyboard import press, reach, write
from tests.browser.site import Open, Site, Tab
from tests.notices.visiting import link_to
from tests.pages.reviewing import asked, now
from tests.research.pipelines import Lab
from tests.scripted import ScriptedModel, calls
from tests.web.asked import ask
from tests.web.talking import talks

PASSWORD = "a long way over the hills"
SCRIPTS = pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no scripts"])


def test_the_way_in(open_tab: Open, site: Site) -> None:
    site.add("ben")
    database = site.workspace.database
    with database.write() as tx:
        passwords.put(tx, "ben", hashed(PASSWORD), now=database.now(tx))
    tab = open_tab(person=None)
    page = tab.open("/")
    expect(page.get_by_label("Id or name")).to_be_focused()
    page.keyboard.type("ben")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_text("do not belong together")).to_be_visible()
    expect(page.get_by_label("Password")).to_be_focused()
    page.keyboard.type(PASSWORD)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    tab.complaints.clear()  # the browser itself says that the wrong password was answered with 4xx


@SCRIPTS
def test_a_plan_is_sent_back_and_the_next_one_approved(open_tab: Open, site: Site, javascript: bool) -> None:
    lab = Lab(site.workspace, site.research)
    lab.start()
    page = open_tab(javascript=javascript).open("/pipeline/run1")
    write(page, "Comment", "without it")
    reach(page, page.get_by_text("Wishes, to send it back"))
    page.keyboard.press("Enter")
    reach(page, page.get_by_label("gc-profile"))
    page.keyboard.press("Space")
    press(page, "button", "Send back to planner")
    site.research.wait_for("run1", wait=60)
    plan = lab.waiting().plan
    assert (plan.version, plan.wishes and plan.wishes.comment) == (2, "without it")
    page.reload()
    press(page, "button", "Approve plan")
    assert site.research.wait_for("run1", wait=60).stage.value == "done"
    assert sorted(lab.executed()) == sorted(step.method for step in plan.steps)


@SCRIPTS
def test_a_plan_is_rejected(open_tab: Open, site: Site, javascript: bool) -> None:
    Lab(site.workspace, site.research).start()
    page = open_tab(javascript=javascript).open("/pipeline/run1")
    write(page, "Comment", "another gene")
    press(page, "button", "Reject run")
    assert site.research.wait_for("run1", wait=60).stage.value == "hitl_rejected"


def test_a_call_is_decided_in_its_conversation(tab: Tab, site: Site) -> None:
    office = talks(site.workspace, ScriptedModel([calls(("send_email", {"to": "ana@example.org"})), "Sent."]))
    page = tab.open("/chat")
    reach(page, page.get_by_role("textbox", name="Begin a conversation"))
    page.keyboard.type("Write to Ana")
    page.keyboard.press("Control+Enter")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    reach(page, approve)
    page.keyboard.press("Enter")
    expect(page.get_by_role("log")).to_contain_text("Sent.")
    assert office.mails == ["ana@example.org"]


@SCRIPTS
def test_a_call_is_answered_in_the_place_of_its_tool(open_tab: Open, site: Site, javascript: bool) -> None:
    review = asked(site.workspace, ("send", '{"to":"eve@example.org"}'))
    page = open_tab(javascript=javascript).open(f"/reviews/{review.id}")
    write(page, "Comment or answer", "There is nobody of that name.")
    press(page, "button", "Answer the agent")
    [call] = now(site.workspace, review).calls
    assert [(said.type, said.message) for said in call.decisions] == [
        (DecisionType.RESPOND, "There is nobody of that name.")
    ]


@SCRIPTS
def test_a_run_is_cancelled(open_tab: Open, site: Site, javascript: bool) -> None:
    review = ask(site.workspace, by="agent")
    page = open_tab(javascript=javascript).open(f"/runs/{review.run_id}")
    write(page, "Reason", "no longer wanted")
    press(page, "button", "Cancel run")
    expect(page.locator(".banner", has_text="no longer wanted")).to_be_visible()
    with site.workspace.database.read() as tx:
        assert runs.run(tx, review.run_id).state is RunState.CANCELLED


@SCRIPTS
@pytest.mark.parametrize("answer", ["Approve", "Reject"])
def test_a_link_of_a_message_is_pressed(open_tab: Open, site: Site, javascript: bool, answer: str) -> None:
    ben = site.add("ben")
    review = ask(site.workspace)
    page = open_tab(person=None, javascript=javascript).open(
        f"/l/{link_to(site.workspace, review, person=ben)}"
    )
    write(page, "Comment", "as agreed")
    press(page, "button", answer)
    expect(page.get_by_text(re.compile("[Yy]our decision"))).to_be_visible()
    assert now(site.workspace, review).status is ReviewStatus.SETTLED
