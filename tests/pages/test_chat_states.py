"""What a conversation shows besides what was said: calls at work, lost ones, secrets, and what is removed."""

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import StructuredTool

from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.chat.offline import OfflineChatModel
from clearance.policy import Effect, Policy, Rule
from clearance.run import Run, RunState
from clearance.store import runs, sessions
from clearance.web.pages.talk import TURNS
from tests.pages.chatting import begun, decide, entered, newest, says, settled
from tests.pages.reviewing import Shown
from tests.pages.site import OWNER, Page, Site
from tests.scripted import ScriptedModel, calls
from tests.web.live import serving, stream
from tests.web.talking import Gates, TalkingModel, calling, kept, talks, until

# What the databases do differently is tested below the pages.
pytestmark = pytest.mark.sqlite_by_day

MAIL = ("send_email", {"to": "ana@example.org"})


def _agent(site: Site, model: BaseChatModel, tool: StructuredTool, policy: Policy) -> None:
    ReviewedChat(create_reviewed_agent(model, [tool], policy=policy, using=site.workspace))


def test_a_call_is_told_of_while_the_turn_goes_on(busy: Site, gates: Gates) -> None:
    end = gates()
    model = TalkingModel([[calling("get_weather", '{"city":"Bandung"}')], ["It is ", end, "sunny."]])
    talks(busy.workspace, model)
    browser = entered(busy)
    address = begun(browser)
    until(lambda: len(model.seen) == 2)
    page = browser.page(address)
    assert "get_weather ✓ done" in page.text
    assert "is working" in page.text
    assert "Reload to see more of the answer" in page.text
    end.set()
    settled(busy, address)
    page = browser.page(address)
    assert page.text.count("get_weather ✓ done") == 1
    assert "Reload to see" not in page.text


def test_a_page_that_is_opened_late_shows_what_was_said_so_far(busy: Site, gates: Gates) -> None:
    talks(busy.workspace, TalkingModel([["It was a **dark** ", gates(), "night."]]))
    browser = entered(busy)
    address = begun(browser)
    until(lambda: kept(busy))
    assert "It was a <strong>dark</strong>" in browser.get(address).text


def test_a_call_whose_outcome_is_unknown_leads_to_where_it_is_told(busy: Site) -> None:
    never = threading.Event()

    def send(to: str) -> str:
        """Send."""
        never.wait(20)
        return to

    tool = StructuredTool.from_function(send)
    tool.metadata = {"clearance": {"timeout": 0.2}}
    allowed = Policy(rules=(Rule("send", effect=Effect.ALLOW),))
    _agent(busy, ScriptedModel([calls(("send", {"to": "ana"})), "I do not know."]), tool, allowed)
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    html = browser.get(address).text
    assert "send ▲ was started, outcome unknown" in Page(html).text
    review = html.partition('<a href="/reviews/')[2].partition('"')[0]
    assert "This was started, and nobody knows" in browser.page(f"/reviews/{review}").text
    never.set()
    assert "I do not know." in Page(html).text


def test_what_is_secret_is_masked_and_not_said_while_it_is_spoken(busy: Site, gates: Gates) -> None:
    def open_door(pin: str) -> str:
        """Open."""
        return f"opened by {pin}"

    tool = StructuredTool.from_function(open_door)
    policy = Policy(rules=(Rule("open_door", secret=("pin",)),))
    first = calling("open_door", '{"pin": "SECRET-PIN"}')
    model = TalkingModel([[first], ["I used SECRET-PIN", gates(), " now."]])
    _agent(busy, model, tool, policy)
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    assert "SECRET-PIN" not in browser.get(address).text
    decide(browser, address, "decision", "approve")
    until(lambda: kept(busy))
    assert "SECRET-PIN" not in browser.get(address).text
    gates.made[0].set()
    settled(busy, address)
    html = browser.get(address).text
    assert "I used ••••" in html
    assert "SECRET-PIN" not in html


def test_the_offline_model_is_labelled(busy: Site) -> None:
    def note(text: str) -> str:
        """Note."""
        return text

    _agent(busy, OfflineChatModel(), StructuredTool.from_function(note), Policy())
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert "Offline model: fixed rules, no AI." in browser.get(address, headers=part).text


def test_a_conversation_that_retention_closed_says_so_and_takes_nothing(busy: Site) -> None:
    says(busy, "MARK-of-an-answer")
    browser = entered(busy)
    address = begun(browser, "MARK-of-a-question")
    settled(busy, address)
    busy.workspace.retention.apply(older_than=timedelta(0), by=OWNER)
    page = browser.page(address)
    assert "MARK" not in browser.page("/chat").text + page.text
    assert "removed by retention" in page.text
    assert "This conversation is closed" in page.text
    sent = browser.post(f"{address}/say", dict(page.form(f"{address}/say").with_(text="Hello")))
    assert sent.status_code == 410


def test_of_a_long_conversation_the_newest_turns_are_shown_and_all_on_demand(site: Site) -> None:
    database = site.workspace.database
    with database.write() as tx:
        now = database.now(tx)
        runs.ensure_thread(tx, "long", program="chat", now=now)
        for n in range(TURNS + 1):
            at = now + timedelta(seconds=n)
            run = Run(f"r{n}", "long", "chat", RunState.QUEUED, OWNER, f"Question {n}.", created_at=at)
            runs.insert_run(tx, run)
            runs.end_run(tx, run.id, RunState.DONE, now=at, answer=f"Answer {n}.")
    browser = entered(site)
    text = browser.page("/chat/long").text
    assert "Earlier turns are left out" in text
    assert "Answer 0." not in text
    assert f"Question {TURNS}. Agent Answer {TURNS}." in text
    assert "Answer 0." in browser.page("/chat/long?all=1").text


@pytest.mark.parametrize("path", ["/chat/nothing", "/events/chat/nothing", "/chat/%00", "/chat/"])
def test_where_no_conversation_is_there_is_no_page(site: Site, path: str) -> None:
    assert entered(site).get(path).status_code in (404, 422)


@pytest.mark.parametrize("cursor", ["x", "d2FpdGluZw", "%00"])
def test_a_cursor_of_another_list_is_refused(site: Site, cursor: str) -> None:
    assert entered(site).get(f"/chat?cursor={cursor}").status_code == 422


def test_a_run_of_another_conversation_is_not_cancelled_here(busy: Site, gates: Gates) -> None:
    talks(busy.workspace, TalkingModel([[gates()], [gates()]]))
    browser = entered(busy)
    one, other = begun(browser), begun(browser)
    sent: Mapping[str, Any] = {**dict(browser.page(one).form(f"{one}/cancel").values)}
    assert browser.post(f"{one}/cancel", {**sent, "run": newest(busy, other)}).status_code == 404
    assert browser.post(f"{one}/cancel", {**sent, "run": "nothing"}).status_code == 404


def test_the_stream_ends_with_the_session(busy: Site) -> None:
    says(busy, "Good morning.")
    address = begun(entered(busy))
    settled(busy, address)
    database = busy.workspace.database
    headers = {"Cookie": f"clearance={busy.session(OWNER).token}"}
    with (
        serving(busy.workspace) as url,
        stream(url, "", headers=headers, path=f"/events{address}?seen=older") as found,
    ):
        found.wait_for("changed")
        with database.write() as tx:
            sessions.revoke(tx, OWNER, now=database.now(tx))
        assert found.next() is None


def test_a_stream_tells_each_new_turn_and_a_page_that_is_up_to_date_nothing(busy: Site) -> None:
    says(busy, "One.", "Two.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    path = browser.get(address).text.partition('hx-sse:connect="')[2].partition('"')[0]
    headers = {"Cookie": f"clearance={busy.session(OWNER).token}"}
    with serving(busy.workspace) as url, stream(url, "", headers=headers, path=path) as found:
        found.wait_for("hello")
        assert browser.send(address, f"{address}/say", text="More").status_code == 303
        found.wait_for("changed")
    assert Shown.read(browser.get(address).text).action == ""
