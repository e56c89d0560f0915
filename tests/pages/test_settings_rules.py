"""Standing rules in the settings: made from a call as it was, approved of by enough people, revoked."""

import re
from datetime import timedelta

import pytest

from clearance.people import Role
from clearance.policy import Risk, Rule, Threshold
from clearance.remembering import draft
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.standing import StandingRule, StandingState, Terms
from clearance.store import standing
from tests.pages import reviewing
from tests.pages.reviewing import asked, now, signed_in, uncertain
from tests.pages.setting import press, trail
from tests.pages.site import OWNER, Browser, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PATH = "/settings/rules"
SEND = ("send", '{"to":"ann@example.org","body":"long"}')


def _form(review: Review, **typed: str) -> dict[str, str]:
    return {
        "review": review.id,
        "call": review.calls[0].key,
        "version": str(review.version),
        "uses": "3",
        "for": "8h",
        "when": "",
        "where": "thread",
        **typed,
    }


def _rules(site: Site) -> list[StandingRule]:
    with site.workspace.database.read() as tx:
        return standing.page(tx, every=True, limit=10)


def _page(browser: Browser, review: Review) -> str:
    answer = browser.get(f"{PATH}/new?review={review.id}&call={review.calls[0].key}")
    assert answer.status_code == 200
    return str(answer.text)


def test_the_review_leads_to_a_form_with_every_argument_as_it_was(site: Site) -> None:
    review = asked(site.workspace, SEND)
    browser = signed_in(site)
    page = browser.get(f"/reviews/{review.id}").text
    [link] = re.findall(r'href="(/settings/rules/new[^"]+)">Approve and remember', page)
    text = browser.page(link.replace("&amp;", "&")).text
    assert 'to "ann@example.org" any value of to body "long" any value of body' in text
    assert "Of agent in bank, with a risk of medium at most." in text


def test_a_call_is_approved_and_remembered_and_the_next_like_it_runs_unasked(site: Site) -> None:
    review = asked(site.workspace, SEND)
    browser = signed_in(site)
    done = press(browser, f"{PATH}/new", ("any", "body"), do="approve", **_form(review, where="program"))
    assert (done.status_code, done.headers["location"]) == (303, f"/reviews/{review.id}")
    assert now(site.workspace, review).status is ReviewStatus.SETTLED
    [rule] = _rules(site)
    assert (rule.state, rule.author, rule.uses, rule.thread_id) == (StandingState.ACTIVE, OWNER, 3, None)
    assert (dict(rule.equal), rule.free) == ({"to": '"ann@example.org"'}, ("body",))
    assert timedelta(hours=7, minutes=59) < rule.expires_at - rule.created_at <= timedelta(hours=8)
    assert trail(site, "standing-rule:drafted", "standing-rule:activated") == [
        ("standing-rule:drafted", rule.id, OWNER),
        ("standing-rule:activated", rule.id, OWNER),
    ]
    with pytest.raises(AssertionError):  # nothing is asked
        asked(site.workspace, ("send", '{"to":"ann@example.org","body":"other"}'))
    assert "2 of 3 uses left" in browser.page(PATH).text


def test_a_call_is_only_remembered_and_still_waits(site: Site) -> None:
    review = asked(site.workspace, SEND)
    done = press(signed_in(site), f"{PATH}/new", do="remember", **_form(review))
    assert done.headers["location"] == f"{PATH}?done=active"
    assert now(site.workspace, review) == review
    assert _rules(site)[0].thread_id == review.thread_id


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"uses": "0"}, "uses", "is from 1 to 1000"),
        ({"uses": "many"}, "uses", "is from 1 to 1000"),
        ({"uses": "٣"}, "uses", "is from 1 to 1000"),
        ({"uses": "9" * 5000}, "uses", "is from 1 to 1000"),
        ({"for": "long"}, "for", "is a time such as"),
        ({"for": "32d"}, "for", "at most 31 days"),
        ({"when": "args.to =="}, "when", "from character"),
        ({"when": "run.id == ''"}, "when", "is not known here"),
        ({"any": "nothing"}, "any", "is no argument of the call"),
    ],
)
@pytest.mark.parametrize("do", ["approve", "remember"])
def test_what_cannot_be_is_said_at_its_field_and_what_was_typed_is_kept(
    site: Site, typed: dict[str, str], field: str, said: str, do: str
) -> None:
    review = asked(site.workspace, SEND)
    form = {**_form(review, where="program"), **typed}
    answer = press(signed_in(site), f"{PATH}/new", do=do, **form)
    assert answer.status_code == 422
    assert re.search(rf'id="{field}-error">[^<]*{said}', answer.text)
    assert f'value="{form["uses"]}"' in answer.text
    assert f'value="{form["for"]}"' in answer.text
    assert form["when"].replace("'", "&#39;") in answer.text
    assert re.search(r'value="program" checked', answer.text)
    assert (_rules(site), now(site.workspace, review)) == ([], review)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("wipe", "{}"), "A call of high risk is decided each time."),
        (("open", '{"user":"ann","pin":"1234"}'), "secret arguments"),
    ],
)
def test_what_may_not_be_remembered_offers_no_form_and_no_link(
    site: Site, call: tuple[str, str], said: str
) -> None:
    review = asked(site.workspace, call)
    browser = signed_in(site)
    page = _page(browser, review)
    assert (said in page, "1234" in page, f'action="{PATH}/new"' in page) == (True, False, False)
    assert "rules/new" not in browser.get(f"/reviews/{review.id}").text
    assert press(browser, f"{PATH}/new", do="approve", **_form(review)).status_code == 422
    assert (_rules(site), now(site.workspace, review)) == ([], review)


def test_plans_and_outcomes_are_decided_each_time(site: Site) -> None:
    plan = asked(site.workspace, ("step", "{}"), kind=ReviewKind.PLAN)
    outcome = uncertain(site.workspace, asked(site.workspace, SEND))
    for review in (plan, outcome):
        assert "decided each time" in _page(signed_in(site), review)


def test_a_call_that_was_decided_meanwhile_is_remembered_and_that_is_said(site: Site) -> None:
    review = asked(site.workspace, SEND)
    form = _form(review)
    site.workspace.gate.decide(review.id, [{"type": "reject"}], by=OWNER, version=review.version)
    answer = press(signed_in(site), f"{PATH}/new", do="approve", **form)
    assert (answer.status_code, "remembered, but was not approved by you" in answer.text) == (409, True)
    assert len(_rules(site)) == 1


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two people be needed for a mail."""
    mail = Rule("send", risk=Risk.LOW, who=(Threshold(approve=2),), name="mail")
    others = tuple(rule for rule in reviewing.POLICY.rules if rule.tool != "send")
    monkeypatch.setattr(reviewing, "POLICY", type(reviewing.POLICY)(rules=(mail, *others)))


@pytest.mark.usefixtures("two")
def test_a_draft_waits_until_as_many_have_approved_as_the_call_needs(site: Site) -> None:
    site.add("ben")
    site.add("vic", role=Role.VIEWER)
    review = asked(site.workspace, SEND)
    done = press(signed_in(site), f"{PATH}/new", do="remember", **_form(review))
    assert done.headers["location"] == f"{PATH}?done=drafted"
    [rule] = _rules(site)
    assert 'value="approve"' not in signed_in(site).get(PATH).text
    assert 'value="approve"' not in signed_in(site, "vic").get(PATH).text
    ben = signed_in(site, "ben")
    assert 'value="approve"' in ben.get(PATH).text
    assert press(ben, PATH, do="approve", rule=rule.id).headers["location"] == f"{PATH}?done=active"
    assert _rules(site)[0].state is StandingState.ACTIVE
    assert trail(site, "standing-rule:approved") == [("standing-rule:approved", rule.id, "ben")]


def test_a_rule_is_listed_with_all_that_it_says_and_revoked_once(site: Site) -> None:
    review = asked(site.workspace, SEND)
    terms = Terms(5, timedelta(hours=2), free=("body",), when="args.to != ''", thread_only=True)
    draft(site.workspace.database, review.id, terms, by=OWNER, rule_id="the-rule", call=None)
    browser = signed_in(site)
    text = browser.page(PATH).text
    for part in (
        "send of agent active",
        "5 of 5 uses left",
        f"in thread {review.thread_id} of bank",
        'to "ann@example.org"',
        "body any value",
        "and only when args.to != ''",
        "Made by ann",
        "approved by ann",
    ):
        assert part in text
    assert browser.send(PATH, PATH, do="revoke").headers["location"] == f"{PATH}?done=revoked"
    assert trail(site, "standing-rule:revoked") == [("standing-rule:revoked", "the-rule", OWNER)]
    assert "No standing rule is open." in browser.page(PATH).text
    assert "send of agent revoked" in browser.page(f"{PATH}?every=1").text
    again = press(browser, PATH, do="revoke", rule="the-rule")
    assert (again.status_code, "is revoked already" in Page(again.text).text) == (409, True)
