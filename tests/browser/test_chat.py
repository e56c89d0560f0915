"""A conversation in a browser: it appears as it is said, waits where it has to, and goes on when it may."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import NARROW, WIDE, Open, Site, Tab, check
from tests.scripted import ScriptedModel, calls
from tests.web.talking import Gates, TalkingModel, calling, talks

# The clock of the page is that of the test; to ask again and again would be too coarse.
NOTE_THE_FIRST_WORD = """() => new MutationObserver(() => {
  if (document.querySelector("#spoken").textContent.trim()) window.spokenAt ??= Date.now() / 1000;
}).observe(document.querySelector("#talk"), { subtree: true, childList: true, characterData: true })"""
MAIL = '{"to": "ana@example.org"}'


@pytest.fixture
def gates() -> Iterator[Gates]:
    """Give a maker of events for models to wait for; all are set at the end of the test."""
    made = Gates()
    yield made
    for gate in made.made:
        gate.set()


def said(page: Page, text: str = "Hello") -> None:
    """Say something on the page that is open."""
    page.get_by_role("textbox", name="Message").or_(
        page.get_by_role("textbox", name="Begin a conversation")
    ).fill(text)
    page.get_by_role("button", name="Send").click()


def test_the_first_words_are_there_before_the_answer_ends(tab: Tab, site: Site, gates: Gates) -> None:
    first, end = gates(), gates()
    talks(site.workspace, TalkingModel([[first, "It was ", "a **dark", "** ", end, "night."]]))
    page = tab.open("/chat")
    with page.expect_response(lambda answer: "/events/chat/" in answer.url):
        said(page)
    expect(page.get_by_text("is working")).to_be_visible()
    spoken = page.locator("#spoken")
    expect(spoken).to_have_text("")
    page.evaluate(NOTE_THE_FIRST_WORD)
    begun = time.time()
    first.set()
    expect(spoken).to_have_text("It was a dark")
    assert page.evaluate("window.spokenAt") - begun < 1
    expect(spoken.locator("strong")).to_have_text("dark")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.evaluate("window.same = true")
    end.set()
    expect(page.get_by_role("log")).to_contain_text("It was a dark night.")
    expect(page.locator("#saying")).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    assert page.evaluate("window.same")


def test_what_waits_is_decided_in_the_conversation_and_the_answer_comes(
    tab: Tab, site: Site, gates: Gates
) -> None:
    end = gates()
    office = talks(
        site.workspace,
        TalkingModel([["I write to her.", calling("send_email", MAIL)], ["It is ", end, "sent."]]),
    )
    page = tab.open("/chat")
    said(page, "Write to Ana")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    expect(page.locator(".decision pre.value")).to_have_text("ana@example.org")
    expect(page.get_by_text("Decide the request above first.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_be_disabled()
    page.reload()
    expect(page.get_by_role("log")).to_contain_text("I write to her.")
    check(page)
    address = page.url
    approve.click()
    expect(page.locator("#spoken")).to_have_text("It is")
    assert page.url.partition("#")[0] == address.partition("#")[0]
    end.set()
    expect(page.get_by_role("log")).to_contain_text("It is sent.")
    expect(page.get_by_role("log")).to_contain_text("send_email ✓ done")
    assert office.mails == ["ana@example.org"]


def test_a_conversation_goes_its_whole_way_without_scripts(open_tab: Open, site: Site) -> None:
    office = talks(site.workspace, ScriptedModel([calls(("send_email", {"to": "ana@example.org"})), "Sent."]))
    page = open_tab(javascript=False).open("/chat")
    said(page, "Write to Ana")
    _reloaded_until(page, "Decide the request above first.")
    page.get_by_role("button", name="Approve").click()
    _reloaded_until(page, "Sent.")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    assert office.mails == ["ana@example.org"]


def _reloaded_until(page: Page, text: str) -> None:
    """Press the page's own button for as long as it has one."""
    reload = page.get_by_role("button", name="Reload")
    for _ in range(100):
        if reload.count() == 0:
            break
        reload.click()
    expect(page.get_by_text(text).first).to_be_visible()


def test_what_the_model_writes_does_nothing_to_the_page(tab: Tab, site: Site, gates: Gates) -> None:
    end = gates()
    text = (
        '<img src=x onerror="window.hit=1"><script>window.hit=1</script> [a](javascript:window.hit=1) '
        "<div hx-get=/logout hx-trigger=load></div> <b id=end>bold</b>"
    )
    talks(site.workspace, TalkingModel([[text, end, " end"]]))
    page = tab.open("/chat")
    said(page)
    expect(page.locator("#spoken")).to_contain_text("<script>window.hit=1</script>")
    end.set()
    expect(page.get_by_role("log")).to_contain_text('<img src=x onerror="window.hit=1">')
    assert page.evaluate("window.hit === undefined")
    assert page.locator("#talk :is(img, script, b#end, [hx-trigger=load])").count() == 0


def test_a_decision_of_somebody_else_is_told_at_once_and_a_turn_is_ended(
    tab: Tab, open_tab: Open, site: Site, gates: Gates
) -> None:
    end = gates()
    talks(site.workspace, TalkingModel([[calling("send_email", MAIL)], [end]]))
    site.add("eva")
    page = tab.open("/chat")
    said(page)
    expect(page.get_by_text("nobody decides their own request")).to_be_visible()
    other = open_tab(person="eva").open("/")
    other.locator("a.what").click()
    other.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("is working")).to_be_visible()
    expect(page.get_by_text("nobody decides their own request")).to_have_count(0)
    page.get_by_role("button", name="Cancel this turn").click()
    expect(page.get_by_text("This turn was cancelled.")).to_be_visible()
    end.set()


def test_a_message_is_sent_by_the_keyboard_and_what_is_typed_stays(
    tab: Tab, open_tab: Open, site: Site
) -> None:
    talks(site.workspace, ScriptedModel(["One.", "Two."]))
    page = tab.open("/chat")
    page.get_by_role("textbox", name="Begin a conversation").focus()
    page.keyboard.type("Hello")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("log")).to_contain_text("One.")
    box = page.get_by_role("textbox", name="Message")
    box.fill("half a sentence")
    box.focus()
    other = open_tab().open(page.url.removeprefix(site.url))
    said(other, "From another tab")
    expect(page.get_by_role("log")).to_contain_text("Two.")
    expect(box).to_be_enabled()
    expect(box).to_have_value("half a sentence")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_conversation_at_work_can_be_used_by_everybody(
    open_tab: Open, site: Site, gates: Gates, size: tuple[int, int]
) -> None:
    end = gates()
    text = "# Heading\n\n- one\n- two\n\n`code` and " + "x" * 300 + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    talks(site.workspace, TalkingModel([[text, end]]))
    page = open_tab(size).open("/chat")
    said(page, "y" * 300)
    expect(page.locator("#spoken")).to_contain_text("Heading")
    check(page)
    end.set()
