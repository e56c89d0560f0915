"""The page of a review: every argument exact, and one form that decides it, once, as whoever is signed in."""

import json

import pytest

from clearance.people import Mode, Role
from clearance.policy import DecisionType
from clearance.review import Answer, ReviewKind, ReviewStatus
from clearance.store import people
from clearance.visible import visible
from tests.pages.reviewing import ARGUMENTS, Shown, asked, now, opened, posted, sent, signed_in, uncertain
from tests.pages.site import OWNER, PASSWORD, Site

# What the databases do differently is tested below the pages.
pytestmark = pytest.mark.sqlite_by_day

HARD = [
    "x" * 10_000,
    "<script>alert(1)</script>",
    "# heading\n* [a](http://a.example)",
    "a\u200bb \u202eabc",
    "\nbegins with an empty line",
    "&amp; <b>not bold</b>",
    "ends with spaces  ",
    "",
]


@pytest.mark.parametrize("text", HARD)
def test_every_argument_is_there_character_for_character(site: Site, text: str) -> None:
    review = asked(site.workspace, ("send", json.dumps({"to": "ann", "body": text})))
    page = opened(signed_in(site), review)
    if text:
        assert visible(text, lines=True) in page.values
    else:
        assert "an empty text" in page.text


def test_numbers_are_shown_as_they_were_written_and_flagged_ones_first_with_the_reason(site: Site) -> None:
    page = opened(signed_in(site), asked(site.workspace))
    assert page.values[:2] == ["18446744073709551616", "48250.0"]
    assert "new account" in page.text
    assert "over 10,000" in page.text


def test_what_a_person_types_in_no_form_is_not_asked_for(site: Site) -> None:
    page = opened(signed_in(site), asked(site.workspace))
    assert [name for name, _ in page.fields] == ["csrf", "version", "token", "mode", "c1"]
    assert page.buttons == [("decision", "approve"), ("decision", "reject")]


def test_approving_clears_the_call_exactly_as_it_was_shown(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    done = sent(browser, opened(browser, review), "decision", "approve")
    assert (done.status_code, done.headers["location"]) == (303, f"/reviews/{review.id}")
    after = now(site.workspace, review)
    assert (after.status, after.calls[0].arguments, after.calls[0].decisions[0].by) == (
        ReviewStatus.SETTLED, ARGUMENTS, OWNER,
    )  # fmt: skip
    assert "You have decided this: approve" in opened(browser, review).text


def test_a_rejection_needs_a_reason_where_the_rule_says_so(site: Site) -> None:
    review = asked(site.workspace, ("refund", '{"amount":1}'))
    browser = signed_in(site)
    page = opened(browser, review)
    answer = sent(browser, page, "decision", "reject", c1="  ")
    assert answer.status_code == 422
    assert 'id="c1-error"' in answer.text
    assert sent(browser, page, "decision", "reject", c1="too\r\nmuch").status_code == 303
    [said] = now(site.workspace, review).calls[0].decisions
    assert (said.type, said.message) == (DecisionType.REJECT, "too\nmuch")


def test_an_answer_in_the_tools_place_needs_its_text(site: Site) -> None:
    review = asked(site.workspace, ("send", '{"to":"a"}'))
    browser = signed_in(site)
    page = opened(browser, review)
    assert sent(browser, page, "decision", "respond").status_code == 422
    assert sent(browser, page, "decision", "respond", c1="sent by hand").status_code == 303
    assert now(site.workspace, review).calls[0].state is Answer.RESPONDED


def test_a_comment_that_no_database_keeps_is_refused_at_its_field(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    answer = sent(browser, opened(browser, review), "decision", "reject", c1="a\0b")
    assert answer.status_code == 422
    assert 'id="c1-error"' in answer.text


def test_several_calls_are_decided_each_its_own_way_in_one_go(site: Site) -> None:
    calls = ("send", '{"to":"a"}'), ("pay", ARGUMENTS), ("refund", '{"amount":3.50}')
    review = asked(site.workspace, *calls)
    browser = signed_in(site)
    page = opened(browser, review, "?edit=1")
    assert page.buttons[-2:] == [("decision", "each"), ("do", "check")]
    answer = sent(browser, page, "decision", "each", d1="approve", d3="reject", t2__lines="x")
    assert answer.status_code == 422
    assert 'id="d2-error"' in answer.text
    assert 'id="c3-error"' in answer.text
    again = Shown.read(answer.text)
    assert sent(browser, again, "decision", "each", d2="approve", c3="no").status_code == 303
    after = now(site.workspace, review)
    assert [call.state for call in after.calls] == [Answer.APPROVED, Answer.APPROVED, Answer.REJECTED]
    assert after.calls[1].arguments == ARGUMENTS.replace("one\\ntwo", "x")
    assert after.calls[0].arguments == '{"to":"a"}'


def test_who_comes_too_late_is_told_who_decided_what(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review)
    site.workspace.gate.decide(review.id, [{"type": "reject", "message": "no"}], by="eva", version=1)
    answer = sent(browser, page, "decision", "approve", c1="fine")
    assert answer.status_code == 409
    text = Shown.read(answer.text).text
    assert "Your decision was not taken" in text
    assert "eva: reject pay" in text
    assert now(site.workspace, review).calls[0].state is Answer.REJECTED


def test_an_open_page_is_told_that_the_review_moved_on(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    browser = signed_in(site)
    where = f"/reviews/{review.id}/moved?version=1"
    assert "hx-trigger" in browser.get(where).text
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="eva", version=1)
    told = browser.get(where).text
    assert "eva: approve pay" in told
    assert "hx-trigger" not in told


def test_the_same_sent_twice_decides_once_and_is_no_error(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review)
    for _ in range(2):
        assert sent(browser, page, "decision", "approve").status_code == 303
    assert len(now(site.workspace, review).calls[0].decisions) == 1


def test_the_same_from_a_second_tab_is_no_error_either(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    tabs = [opened(browser, review), opened(browser, review)]
    assert [sent(browser, tab, "decision", "approve").status_code for tab in tabs] == [303, 303]
    assert sent(browser, tabs[0], "decision", "reject").status_code == 409
    assert len(now(site.workspace, review).calls[0].decisions) == 1


def test_a_quorum_of_two_needs_two_people(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace, ("wipe", "{}"))
    ann, eva = signed_in(site), signed_in(site, "eva")
    assert sent(ann, opened(ann, review), "decision", "approve").status_code == 303
    page = opened(ann, review)
    assert "1 of 2 approvals, waiting for 1 person" in page.text
    assert sent(ann, page, "decision", "approve").status_code == 303
    assert now(site.workspace, review).status is ReviewStatus.PENDING
    assert sent(eva, opened(eva, review), "decision", "approve").status_code == 303
    assert now(site.workspace, review).status is ReviewStatus.SETTLED


def test_who_may_not_decide_reads_why_and_is_refused(site: Site) -> None:
    site.add("vic", role=Role.VIEWER)
    review = asked(site.workspace)
    browser, ann = signed_in(site, "vic"), signed_in(site)
    page = opened(browser, review)
    assert page.buttons == []
    assert "deciding this needs the role reviewer" in page.text
    sent = dict(opened(ann, review).sent("decision", "approve"))
    sent["csrf"] = dict(page.fields).get("csrf", "")
    answer = posted(browser, f"/reviews/{review.id}/decide", list(sent.items()))
    assert answer.status_code == 403
    assert now(site.workspace, review) == review


def test_nobody_decides_their_own_request_where_people_are_separate(site: Site) -> None:
    with site.workspace.database.write() as tx:
        people.set_mode(tx, Mode.SEPARATE)
    page = opened(signed_in(site), asked(site.workspace, by=OWNER))
    assert page.buttons == []
    assert "nobody decides their own request" in page.text


def test_who_decides_is_the_one_who_is_signed_in_whatever_the_form_says(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    browser = signed_in(site, "eva")
    page = opened(browser, review)
    pairs = [*page.sent("decision", "approve"), ("by", OWNER), ("person", OWNER)]
    assert posted(browser, page.action, pairs).status_code == 303
    assert [said.by for said in now(site.workspace, review).calls[0].decisions] == ["eva"]


def test_a_critical_decision_needs_the_password_each_time(site: Site) -> None:
    browser = signed_in(site)
    for _ in range(2):
        review = asked(site.workspace, ("fire", "{}"))
        page = opened(browser, review)
        answer = sent(browser, page, "decision", "approve", c1="kept")
        assert answer.status_code == 403
        assert 'id="password-error"' in answer.text
        assert dict(Shown.read(answer.text).fields)["c1"] == "kept"
        assert now(site.workspace, review) == review
        assert sent(browser, page, "decision", "approve", password=PASSWORD).status_code == 303
        assert now(site.workspace, review).status is ReviewStatus.SETTLED


@pytest.mark.parametrize("version", ["", "x", "-1", "1.0", "9" * 5000, "\u0661"])
def test_nothing_is_decided_without_the_version_that_was_seen(site: Site, version: str) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review)
    assert sent(browser, page, "decision", "approve", version=version).status_code == 422
    assert now(site.workspace, review) == review


def test_a_form_of_another_session_is_refused(site: Site) -> None:
    review = asked(site.workspace)
    browser = signed_in(site)
    page = opened(browser, review)
    assert sent(browser, page, "decision", "approve", csrf="0" * 64).status_code == 403
    assert now(site.workspace, review) == review


def test_a_review_that_is_not_there_is_not_found(site: Site) -> None:
    assert signed_in(site).get("/reviews/no/such/review").status_code == 404


def test_texts_of_a_conversation_are_marked_and_harmless(site: Site) -> None:
    text = "**Pay** <img src=x onerror=a()> ![i](http://a.example/i.png) [go](javascript:a())\n\n\u202eevil"
    review = asked(site.workspace, message=text)
    html = signed_in(site).get(f"/reviews/{review.id}").text
    assert "<strong>Pay</strong>" in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    assert "\u202e" not in html
    assert "Nobody has checked them" in html


def test_a_review_that_has_ended_is_read_only_and_tells_its_history(site: Site) -> None:
    site.add("eva")
    review = asked(site.workspace)
    edited = ARGUMENTS.replace("48250.0", "1.0")
    edit = {"type": "edit", "message": "less", "edited_action": {"name": "pay", "args": edited}}
    site.workspace.gate.decide(review.id, [edit], by="eva", version=1)
    page = opened(signed_in(site), review, "?edit=1")
    assert page.buttons == []
    assert "eva approved with edits" in page.text
    assert {"48250.0", "1.0", "less"} <= set(page.values)
    assert now(site.workspace, review).calls[0].fingerprint in page.text


def test_the_ways_to_the_reviews_before_and_after_are_those_of_the_inbox(site: Site) -> None:
    low, high, later = (asked(site.workspace, (name, "{}")) for name in ("refund", "wipe", "refund"))
    html = signed_in(site).get(f"/reviews/{low.id}").text
    assert "2 of 3" in html
    assert f'rel="prev" href="/reviews/{high.id}"' in html
    assert f'rel="next" href="/reviews/{later.id}"' in html


def test_a_secret_is_masked_and_survives_an_edit_of_something_else(site: Site) -> None:
    review = asked(site.workspace, ("open", '{"user":"ann","pin":"kq7-z93x"}'))
    browser = signed_in(site)
    html = browser.get(f"/reviews/{review.id}?edit=1").text
    assert "kq7-z93x" not in html
    assert sent(browser, Shown.read(html), "decision", "approve", t1__user="bob").status_code == 303
    assert now(site.workspace, review).calls[0].arguments == '{"user":"bob","pin":"kq7-z93x"}'
    assert "kq7-z93x" not in browser.get(f"/reviews/{review.id}").text


@pytest.mark.parametrize(
    ("answer", "comment", "state"),
    [
        ("respond", "it was paid", Answer.RESPONDED),
        ("approve", "", Answer.APPROVED),
        ("reject", "", Answer.REJECTED),
    ],
)
def test_what_became_of_a_call_is_asked_in_words_of_its_own(
    site: Site, answer: str, comment: str, state: Answer
) -> None:
    review = uncertain(site.workspace, asked(site.workspace))
    browser = signed_in(site)
    page = opened(browser, review)
    assert "nobody knows whether it happened" in page.text
    for button in ("It happened: give this result", "It did not happen: run it", "Drop it"):
        assert button in page.text
    assert sent(browser, page, "decision", "respond").status_code == 422
    assert sent(browser, page, "decision", answer, c1=comment).status_code == 303
    assert now(site.workspace, review).calls[0].state is state


@pytest.mark.parametrize(
    ("answer", "state"),
    [("approve", Answer.APPROVED), ("revise", Answer.REVISED), ("reject", Answer.REJECTED)],
)
def test_a_plan_is_decided_whole(site: Site, answer: str, state: Answer) -> None:
    steps = ("step", '{"n":1}'), ("step", '{"n":2}')
    review = asked(site.workspace, *steps, kind=ReviewKind.PLAN)
    browser = signed_in(site)
    page = opened(browser, review)
    assert page.buttons == [("decision", "approve"), ("decision", "revise"), ("decision", "reject")]
    assert sent(browser, page, "decision", "revise").status_code == 422
    assert sent(browser, page, "decision", answer, c1="with care").status_code == 303
    assert [call.state for call in now(site.workspace, review).calls] == [state, state]
