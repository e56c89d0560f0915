"""The chat's pages: said, answered, decided and ended by plain forms, by whoever may."""

import pytest

from clearance.people import Mode, Role
from clearance.policy import Policy, Rule, Threshold
from clearance.program import Program
from clearance.store import people, reviews
from tests.pages.chatting import begun, decide, entered, newest, says, settled
from tests.pages.reviewing import Shown
from tests.pages.site import Page, Site
from tests.scripted import calls
from tests.web.talking import Gates, TalkingModel, talks, until

# What the databases do differently is tested below the pages.
pytestmark = pytest.mark.sqlite_by_day

MAIL = ("send_email", {"to": "ana@example.org"})


def test_a_message_begins_a_conversation_and_its_answer_stands_there(busy: Site) -> None:
    says(busy, "Good **morning**.")
    browser = entered(busy)
    address = begun(browser, "Hello *there*\r\n<b>you</b>")
    settled(busy, address)
    html = browser.get(address).text
    assert "Good <strong>morning</strong>." in html
    assert "Hello *there*\n&lt;b&gt;you&lt;/b&gt;" in html
    assert "Hello *there* <b>you</b>" in browser.page("/chat").text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("![a](https://a.example/x.png)", "https://a.example/x.png"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("a\u202eb", "&lt;U+202E&gt;"),
        ("<form action=/chat><button>Approve</button></form>", "&lt;form action="),
    ],
)
def test_the_models_html_is_inert(busy: Site, said: str, shown: str) -> None:
    says(busy, said)
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    html = browser.get(address).text
    assert shown in html
    log = html.partition('role="log"')[2].partition("</section>")[0].partition('id="saying"')[0]
    assert not any(tag in log for tag in ("<script", "<img", "<form", "<button", 'href="javascript'))


def test_what_waits_is_shown_in_the_conversation_and_nothing_can_be_said(busy: Site) -> None:
    says(busy, calls(MAIL, text="I write."))
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    html = browser.get(address).text
    page = Page(html)
    assert "send_email ◆ waits for a decision" in page.text
    assert "Decide the request above first." in page.text
    assert "ana@example.org" in Shown.read(html).values
    assert 'aria-describedby="text-help" disabled>' in html
    refused = browser.post(f"{address}/say", dict(page.form(f"{address}/say").with_(text="And now?")))
    assert refused.status_code == 409
    assert "Your message was not sent" in refused.text
    assert "And now?" in refused.text


def test_an_approval_comes_back_to_the_conversation_and_it_goes_on(busy: Site) -> None:
    office = says(busy, calls(MAIL), "It is sent.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    done = decide(browser, address, "decision", "approve")
    assert (done.status_code, done.headers["location"]) == (303, f"{address}#end")
    settled(busy, address)
    page = browser.page(address)
    assert "send_email ✓ done" in page.text
    assert "It is sent." in page.text
    assert office.mails == ["ana@example.org"]


def test_a_rejection_is_told_in_words(busy: Site) -> None:
    office = says(busy, calls(MAIL), "I did not.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    decide(browser, address, "decision", "reject", c1="not her")
    settled(busy, address)
    page = browser.page(address)
    assert "send_email ✗ rejected, did not run" in page.text
    assert "Reason: not her" in page.text
    assert office.mails == []


def test_what_is_wrong_with_a_decision_is_shown_and_it_still_comes_back(busy: Site) -> None:
    office = says(busy, calls(MAIL), "It is sent.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    edit = Page(browser.get(address).text)
    assert edit.text.count("Edit as JSON") == 1
    review = Shown.read(browser.get(address).text).action.removesuffix("/decide")
    form = Shown.read(browser.get(f"{review}?raw=1&back={address}").text)
    assert ("back", address) in form.fields
    wrong = browser.post(form.action, dict(form.sent("decision", "approve", t1="{")))
    assert wrong.status_code == 422
    again = Shown.read(wrong.text)
    done = browser.post(again.action, dict(again.sent("decision", "approve", t1='{"to": "bob"}')))
    assert (done.status_code, done.headers["location"]) == (303, address)
    settled(busy, address)
    assert office.mails == ["bob"]


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/logout", "/chat/../x//y", ""])
def test_a_decision_leads_nowhere_else(busy: Site, back: str) -> None:
    says(busy, calls(MAIL), "It is sent.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    form = Shown.read(browser.get(address).text)
    sent = {**dict(form.sent("decision", "approve")), "back": back}
    done = browser.post(form.action, sent)
    assert done.headers["location"] == form.action.removesuffix("/decide")


def test_a_call_that_needs_nobody_is_a_word_in_the_conversation(busy: Site) -> None:
    says(busy, calls(("get_weather", {"city": "Bandung"})), "Sunny.")
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    html = browser.get(address).text
    assert "get_weather ✓ done" in Page(html).text
    assert "sunny in Bandung" in Shown.read(html).values


def test_a_turn_at_work_can_be_cancelled_and_the_page_says_so(busy: Site, gates: Gates) -> None:
    model = TalkingModel([["It was ", gates(), "night."], ["Again."]])
    talks(busy.workspace, model)
    browser = entered(busy)
    address = begun(browser)
    until(lambda: model.seen)
    page = browser.page(address)
    assert "The agent works on your message." in page.text
    refused = browser.post(f"{address}/say", dict(page.form(f"{address}/say").with_(text="x")))
    assert refused.status_code == 409
    assert browser.send(address, f"{address}/cancel").status_code == 303
    page = browser.page(address)
    assert "This turn was cancelled. ann ended it." in page.text
    gates.made[0].set()
    settled(busy, address)
    assert browser.send(address, f"{address}/say", text="Once more").status_code == 303
    settled(busy, address)
    assert "Again." in browser.page(address).text


def test_a_turn_that_failed_says_why(busy: Site) -> None:
    talks(busy.workspace, TalkingModel([[RuntimeError("a bug of the model")]]))
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    assert "This turn failed: RuntimeError" in browser.page(address).text


def test_what_is_sent_twice_is_said_once(busy: Site) -> None:
    says(busy, "One.", "Two.")
    browser = entered(busy)
    form = dict(browser.page("/chat").form("/chat").with_(text="Hello"))
    first, second = browser.post("/chat", form), browser.post("/chat", form)
    assert first.headers["location"] == second.headers["location"]
    address = first.headers["location"].removesuffix("#end")
    settled(busy, address)
    form = dict(browser.page(address).form(f"{address}/say").with_(text="More"))
    assert browser.post(f"{address}/say", form).status_code == 303
    settled(busy, address)
    assert browser.post(f"{address}/say", form).status_code == 303
    settled(busy, address)
    assert browser.page(address).text.count("Two.") == 1


@pytest.mark.parametrize("text", ["", " \r\n "])
def test_an_empty_message_is_refused_at_its_field(busy: Site, text: str) -> None:
    says(busy, "Good morning.")
    browser = entered(busy)
    refused = browser.send("/chat", "/chat", text=text)
    assert refused.status_code == 422
    assert "The message is empty." in Page(refused.text).text
    address = begun(browser)
    settled(busy, address)
    assert browser.send(address, f"{address}/say", text=text).status_code == 422


def test_where_no_agent_is_known_the_page_says_how_one_gets_there(site: Site) -> None:
    browser = entered(site)
    page = browser.page("/chat")
    assert "No model is set, and none is chosen for you. Name one with --model" in page.text
    assert not [form for form in page.forms if form.action == "/chat"]


def test_reviewers_see_the_conversations_of_others_and_viewers_their_own(busy: Site) -> None:
    says(busy, "One.", "Two.")
    for name, role in (("eva", Role.REVIEWER), ("vic", Role.VIEWER)):
        busy.add(name, role=role)
    address = begun(entered(busy), "A question of ann")
    settled(busy, address)
    eva, vic = entered(busy, "eva"), entered(busy, "vic")
    assert "A question of ann" not in eva.page("/chat").text
    assert "A question of ann" in eva.page("/chat?whose=everyone").text
    assert "A question of ann" in eva.page(address).text
    assert "A question of ann" not in vic.page("/chat?whose=everyone").text
    assert vic.get(address).status_code == 404
    form = dict(vic.page("/chat").form("/chat").with_(text="Hello"))
    for what in ("say", "cancel"):
        assert vic.post(f"{address}/{what}", form).status_code == 404
    assert vic.get(f"/events{address}").status_code == 404
    theirs = begun(vic, "A question of vic")
    settled(busy, theirs)
    assert "A question of vic" in vic.page(theirs).text


def test_only_who_asked_or_an_operator_cancels(busy: Site, gates: Gates) -> None:
    talks(busy.workspace, TalkingModel([[gates(), "night."]]))
    busy.add("eva")
    address = begun(entered(busy))
    eva = entered(busy, "eva")
    page = eva.page(address)
    assert "a message of ann" in page.text
    assert not [form for form in page.forms if form.action.endswith("/cancel")]
    sent = {**dict(page.form(f"{address}/say").values), "run": newest(busy, address)}
    assert eva.post(f"{address}/cancel", sent).status_code == 403


def test_somebody_elses_request_is_read_and_not_decided_by_who_asked(busy: Site) -> None:
    says(busy, calls(MAIL), "It is sent.")
    busy.add("eva")
    with busy.workspace.database.write() as tx:
        people.set_mode(tx, Mode.SEPARATE)
    ann, eva = entered(busy), entered(busy, "eva")
    address = begun(ann)
    settled(busy, address)
    page = ann.page(address)
    assert "nobody decides their own request" in page.text
    assert "has to be decided first, by somebody who may" in page.text
    assert decide(eva, address, "decision", "approve").headers["location"] == f"{address}#end"
    settled(busy, address)
    assert "It is sent." in ann.page(address).text


def test_a_part_of_the_page_tells_what_moved_and_keeps_an_older_form_from_deciding(busy: Site) -> None:
    says(busy, calls(MAIL))
    busy.add("eva")
    quorum = Policy(rules=(Rule("send_email", who=(Threshold(approve=2),)),))
    known = busy.workspace.programs.get("chat")
    assert known is not None
    busy.workspace.register(Program("chat", known.tools, quorum, segment=known.segment))
    browser = entered(busy)
    address = begun(browser)
    settled(busy, address)
    with busy.workspace.database.read() as tx:
        review = reviews.pending(tx, address.removeprefix("/chat/"))
    assert review is not None
    busy.workspace.gate.decide(review.id, [{"type": "approve"}], by="eva", version=review.version)
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    moved = browser.get(f"{address}?asked={review.id}@{review.version}", headers=part).text
    assert "eva: approve send_email" in moved
    assert Shown.read(moved).action == ""
    assert "<html" not in moved
    assert Shown.read(browser.get(address).text).action == f"/reviews/{review.id}/decide"
