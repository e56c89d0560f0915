"""The inbox as a browser without scripts sees it: what waits, in which order, and deciding several."""

import json
import re
from datetime import datetime, timedelta

import pytest

from clearance.people import Role
from clearance.review import Review, ReviewStatus
from clearance.store import claims, listing, reviews, tables
from tests.pages.site import Page, Site
from tests.web.asked import ask

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PACKED = {"Sec-Fetch-Site": "none", "Accept-Encoding": "gzip"}


def items(page: str) -> list[str]:
    """Return the reviews that a page names, in its order."""
    return re.findall(r'<li class="row[^"]*" id="([^"]+)"', page)


def now_is(site: Site, review: Review) -> Review:
    """Return the review as it now is."""
    with site.workspace.database.read() as tx:
        return reviews.review(tx, review.id)


def with_deadline(site: Site, review: Review, deadline: datetime) -> None:
    """Give a review a deadline, as a policy would have."""
    with site.workspace.database.write() as tx:
        tx.execute(tables.reviews.update().where(tables.reviews.c.id == review.id).values(deadline=deadline))


def seen(*found: Review) -> str:
    """Return what the form sends for these reviews."""
    return json.dumps([[review.id, review.version] for review in found])


def test_the_riskiest_stands_first_then_what_is_due_first_then_what_was_asked_first(site: Site) -> None:
    first, second, third = ask(site.workspace), ask(site.workspace), ask(site.workspace, ("note", "{}"))
    wiped, paid = ask(site.workspace, ("wipe", "{}")), ask(site.workspace, ("pay", '{"amount":1}'))
    late, soon = ask(site.workspace), ask(site.workspace)
    with_deadline(site, late, late.asked_at + timedelta(hours=2))
    with_deadline(site, soon, late.asked_at + timedelta(hours=1))
    answer = site.signed_in().get("/")
    assert items(answer.text) == [each.id for each in (wiped, paid, soon, late, first, second, third)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("risk=high", ["pay"]),
        ("risk=no-such-risk", ["pay", "send", "note"]),
        ("q=MAIL", ["send"]),
        ("q=ann@example+send", ["send"]),
        ("q=48250.0", ["pay"]),
        ("q=%25", []),
        ("q=nothing", []),
        ("agent=robot", ["note"]),
        ("agent=desk", ["pay", "send", "note"]),
        ("agent=%00&q=%00", ["pay", "send", "note"]),
        ("unknown=1", ["pay", "send", "note"]),
    ],
)
def test_the_address_narrows_the_list(site: Site, query: str, expected: list[str]) -> None:
    site.add("robot")
    asked = {
        "send": ask(site.workspace),
        "pay": ask(site.workspace, ("pay", '{"amount":48250.0}')),
        "note": ask(site.workspace, ("note", "{}"), by="robot"),
    }
    answer = site.signed_in().get(f"/?{query}")
    assert items(answer.text) == [asked[name].id for name in expected]


def test_a_cursor_of_no_list_is_refused_in_words(site: Site) -> None:
    answer = site.signed_in().get("/?cursor=nonsense", headers={"Accept": "text/html"})
    assert answer.status_code == 422


def test_mine_is_what_waits_for_me_and_not_what_i_asked_for_or_have_decided(site: Site) -> None:
    site.add("bob")
    own, other = ask(site.workspace, by="ann"), ask(site.workspace, by="bob")
    said = ask(site.workspace, ("wipe", "{}"), by="bob")
    site.workspace.gate.decide(said.id, [{"type": "approve"}], by="ann", version=said.version)
    shown = items(site.signed_in().get("/?whose=mine").text)
    assert shown == [other.id]
    assert own.id in items(site.signed_in().get("/").text)


def test_fifty_stand_on_a_page_and_the_next_goes_on(site: Site) -> None:
    asked = [ask(site.workspace, by=f"agent-{number}") for number in range(53)]
    browser = site.signed_in()
    first = browser.get("/").text
    [following] = re.findall(r'href="([^"]+)" rel="next"', first)
    second = browser.get(following.replace("&amp;", "&")).text
    assert items(first) + items(second) == [each.id for each in asked]
    assert 'Pending <b id="count">53</b>' in second


def test_similar_small_questions_stand_together_and_each_is_named(site: Site) -> None:
    similar = [ask(site.workspace, ("note", f'{{"text":"{number}"}}')) for number in range(3)]
    alone = ask(site.workspace, ("pay", '{"amount":1}')), ask(site.workspace, ("pay", '{"amount":2}'))
    page = site.signed_in().get("/").text
    assert page.count('class="group"') == 1
    assert "×3" in page
    assert items(page) == [each.id for each in (*alone, *similar)]


def test_several_of_one_kind_are_decided_each_for_itself(site: Site) -> None:
    first, second, third = (ask(site.workspace) for _ in range(3))
    site.workspace.gate.decide(second.id, [{"type": "reject"}], by="ann", version=second.version)
    answer = site.signed_in().send("/", "/inbox", do="approve", item=seen(first, second, third))
    assert answer.status_code == 200
    assert "settled already" in Page(answer.text).text
    [approved] = {now_is(site, each).calls[0].state for each in (first, third)}
    assert approved == "approved"
    assert now_is(site, second).calls[0].state == "rejected"


def test_a_comment_goes_with_each_rejection(site: Site) -> None:
    review = ask(site.workspace, ("note", "{}"), ("note", "{}"))
    site.signed_in().send("/", "/inbox", do="reject", item=seen(review), comment=" not now ")
    said = [call.decisions[0] for call in now_is(site, review).calls]
    assert [(item.type, item.message) for item in said] == [("reject", "not now")] * 2


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ((("send", '{"to":"a"}'), ("note", "{}")), "One kind at a time"),
        ((("pay", '{"amount":1}'),), "High and critical risk"),
        ((("wipe", "{}"),), "High and critical risk"),
    ],
)
def test_what_is_not_to_be_decided_together_is_not(
    site: Site, tools: tuple[tuple[str, str], ...], why: str
) -> None:
    asked = [ask(site.workspace, tool) for tool in tools]
    answer = site.signed_in().send("/", "/inbox", do="approve", item=seen(*asked), headers=None)
    assert answer.status_code == 422
    assert why in answer.text
    assert all(now_is(site, each).status is ReviewStatus.PENDING for each in asked)


def test_a_version_that_was_not_seen_is_not_decided(site: Site) -> None:
    review = ask(site.workspace)
    item = json.dumps([[review.id, review.version + 1]])
    answer = site.signed_in().send("/", "/inbox", do="approve", item=item)
    assert "changed since you read it" in Page(answer.text).text
    assert now_is(site, review).status is ReviewStatus.PENDING


def test_who_may_not_decide_is_told_why_and_gets_no_button(site: Site) -> None:
    site.add("vera", role=Role.VIEWER)
    review = ask(site.workspace)
    browser = site.signed_in("vera")
    page = browser.get("/").text
    assert 'value="approve"' not in page
    assert "you look on" in page
    answer = browser.send("/", "/inbox", do="approve", item=seen(review))
    assert "needs the role reviewer" in Page(answer.text).text
    assert now_is(site, review).status is ReviewStatus.PENDING


def test_a_claim_is_seen_by_others_and_given_back(site: Site) -> None:
    site.add("bob")
    review = ask(site.workspace, by="agent")
    browser = site.signed_in()
    answer = browser.send("/?risk=medium", "/inbox", claim=seen(review))
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"/?risk=medium#{review.id}"
    assert "ann is on it" in Page(site.signed_in("bob").get("/").text).text
    browser.send("/", "/inbox", release=seen(review))
    with site.workspace.database.read() as tx:
        assert claims.of(tx, [review.id], now=review.asked_at) == {}


def test_what_somebody_else_has_claimed_is_told(site: Site) -> None:
    site.add("bob")
    review = ask(site.workspace, by="agent")
    site.workspace.gate.claim(review.id, by="bob")
    answer = site.signed_in().send("/", "/inbox", do="claim", item=seen(review))
    assert "bob is looking at review" in Page(answer.text).text


def test_what_was_decided_says_who_and_what(site: Site) -> None:
    review = ask(site.workspace, by="agent")
    site.workspace.gate.decide(
        review.id, [{"type": "reject", "message": "not now"}], by="ann", version=review.version
    )
    answer = site.signed_in().get("/?tab=decided&whose=mine")
    assert items(answer.text) == [review.id]
    assert "ann rejected “not now”" in Page(answer.text).text


def test_the_way_back_leads_nowhere_else(site: Site) -> None:
    review = ask(site.workspace, by="agent")
    answer = site.signed_in().send(
        "/", "/inbox", claim=seen(review), back="//evil.example/?q=x&whose=mine&tab=//evil"
    )
    assert answer.headers["Location"].startswith("/?")
    assert answer.headers["Location"].startswith("/?whose=mine")


def test_htmx_gets_the_list_alone(site: Site) -> None:
    ask(site.workspace)
    browser = site.signed_in()
    part = browser.get("/", headers={"HX-Request": "true", "HX-Request-Type": "partial"}).text
    assert part.lstrip().startswith('<section id="inbox"')
    assert part.rstrip().endswith("</section>")
    assert part.strip().splitlines()[1:] != []


def test_a_page_is_packed_only_where_no_other_site_asked_for_it(site: Site) -> None:
    browser = site.signed_in()
    assert browser.get("/", headers=PACKED).headers.get("Content-Encoding") == "gzip"
    for asked_from in ("cross-site", "same-site"):
        answer = browser.get("/", headers={**PACKED, "Sec-Fetch-Site": asked_from})
        assert "Content-Encoding" not in answer.headers


def test_hidden_characters_of_arguments_are_seen(site: Site) -> None:
    ask(site.workspace, ("send", '{"to":"\\u202eeve"}'))
    page = site.signed_in().get("/").text
    assert "\u202e" not in page
    assert "&lt;U+202E&gt;" in page


def test_the_extensions_of_htmx_are_there_before_it_begins(site: Site) -> None:
    page = site.signed_in().get("/").text
    scripts = re.findall(r"<script ([^>]*)>", page)
    assert [re.findall(r"/([a-z-]+)\.js", each) for each in scripts] == [
        ["htmx"],
        ["hx-csp"],
        ["hx-sse"],
        ["clearance"],
    ]
    # A script that waits or comes in any order lets htmx begin without those that are still on their way.
    assert not any("defer" in each or "async" in each for each in scripts)


def test_a_search_looks_at_a_bounded_part_and_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SEARCHED", 60)
    wanted = ask(site.workspace, ("note", '{"text":"needle"}'))
    for number in range(70):
        ask(site.workspace, by=f"agent-{number}")
    browser = site.signed_in()
    first = browser.get("/?q=needle").text
    assert items(first) == []
    assert "among the 60 looked at" in first
    [following] = re.findall(r'href="([^"]+)" rel="next"', first)
    assert items(browser.get(following.replace("&amp;", "&")).text) == [wanted.id]
