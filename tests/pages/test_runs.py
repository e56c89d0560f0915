"""The pages of runs: which there are, what each waits for, and one with its calls, reviews and trail."""

import pytest

from clearance.people import Role
from clearance.review import ReviewStatus
from clearance.run import Run, RunState
from clearance.store import runs, tables
from tests.pages.reviewing import asked, now, seal, signed_in, uncertain
from tests.pages.site import Page, Site
from tests.web.asked import ask

pytestmark = pytest.mark.sqlite_by_day(
    but=[
        "test_the_list_says_what_a_run_waits_at_and_who_decided",
        "test_the_list_says_how_long_a_run_has_waited",
        "test_a_page_of_the_list_goes_on_in_the_next",
        "test_a_run_shows_its_calls_with_what_was_decided_and_its_trail",
    ]
)


def ended(site: Site, run_id: str, state: RunState) -> None:
    """End a run."""
    database = site.workspace.database
    with database.write() as tx:
        assert runs.end_run(tx, run_id, state, now=database.now(tx), reason="It is over.")


def run_of(site: Site, run_id: str) -> Run:
    """Return a run as it is now."""
    with site.workspace.database.read() as tx:
        return runs.run(tx, run_id)


def ids(html: str) -> list[str]:
    """Return the runs that a page lists, in its order."""
    return [part.split('"', 1)[0] for part in html.split('id="run:')[1:]]


def test_the_newest_stands_first_and_a_state_picks_some_out(site: Site) -> None:
    first, second, third = (ask(site.workspace, by=f"agent-{n}").run_id for n in range(3))
    ended(site, second, RunState.FAILED)
    browser = signed_in(site)
    assert ids(browser.get("/runs").text) == [third, second, first]
    assert ids(browser.get("/runs?state=failed").text) == [second]
    assert ids(browser.get("/runs?state=done").text) == []
    assert ids(browser.get("/runs?state=no-such").text) == [third, second, first]
    assert ids(browser.get("/runs?program=desk&state=waiting").text) == [third, first]
    assert ids(browser.get("/runs?program=%00").text) == [third, second, first]


def test_the_list_says_what_a_run_waits_at_and_who_decided(site: Site) -> None:
    review = ask(site.workspace, ("wipe", "{}"), by="agent")
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    html = signed_in(site).get("/runs").text
    assert "waits at the review of wipe · decided by ann" in Page(html).text
    assert f'href="/reviews/{review.id}"' in html


def test_the_list_says_how_long_a_run_has_waited(site: Site) -> None:
    clock = site.stop_the_clock()
    review = ask(site.workspace, by="agent")
    clock.pass_(hours=2)
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    clock.pass_(hours=5)
    assert "waited 2h 00m" in Page(signed_in(site).get("/runs").text).text


def test_a_page_of_the_list_goes_on_in_the_next(site: Site) -> None:
    made = [ask(site.workspace, by=f"agent-{number}").run_id for number in range(52)]
    browser = signed_in(site)
    first = browser.get("/runs").text
    following = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    assert ids(first) + ids(browser.get(following).text) == made[::-1]
    assert browser.get("/runs?cursor=nonsense", headers={"Accept": "text/html"}).status_code == 422


def test_a_run_shows_its_calls_with_what_was_decided_and_its_trail(site: Site) -> None:
    review = ask(site.workspace, ("note", '{"text":"a"}'), by="agent")
    site.workspace.gate.decide(
        review.id, [{"type": "reject", "message": "no"}], by="ann", version=review.version
    )
    seal(site)
    html = signed_in(site).get(f"/runs/{review.run_id}").text
    told = Page(html).text
    assert "note: rejected attempt" in told
    assert "ann rejected" in told
    assert now(site.workspace, review).calls[0].fingerprint in told
    assert f"ann decided on review {review.id}" in told
    assert f"call {review.calls[0].key} was rejected" in told


def test_a_secret_of_a_call_is_masked_where_its_result_repeats_it(site: Site) -> None:
    review = asked(site.workspace, ("open", '{"user":"ann","pin":"4711"}'))
    site.workspace.gate.decide(review.id, [{"type": "approve"}], by="ann", version=review.version)
    with site.workspace.database.write() as tx:
        tx.execute(tables.calls.update().values(result="opened with 4711", state="executed"))
        tx.execute(tables.runs.update().values(answer="I used 4711."))
    html = signed_in(site).get(f"/runs/{review.run_id}").text
    assert "opened with" in html
    assert "4711" not in html


def test_an_uncertain_call_leads_to_the_question_what_became_of_it(site: Site) -> None:
    outcome = uncertain(site.workspace, asked(site.workspace))
    html = signed_in(site).get(f"/runs/{outcome.run_id}").text
    assert f'<a href="/reviews/{outcome.id}">Find out, and say what became of it</a>' in html


@pytest.mark.parametrize(
    ("person", "role", "status"),
    [
        ("ben", Role.VIEWER, 403),
        ("ben", Role.REVIEWER, 403),
        ("ben", Role.OPERATOR, 303),
        ("ben", Role.ADMIN, 303),
        ("tom", Role.VIEWER, 303),
    ],
)
def test_who_asked_and_operators_cancel(site: Site, person: str, role: Role, status: int) -> None:
    site.add(person, role=role)
    review = ask(site.workspace, by="tom")
    browser = signed_in(site, person)
    address = f"/runs/{review.run_id}"
    page = browser.page(address)
    offered = [form for form in page.forms if form.action.endswith("/cancel")]
    assert bool(offered) is (status == 303)
    token = dict(page.form("/logout").values)["csrf"]
    answer = browser.post(f"{address}/cancel", {"csrf": token, "reason": "enough"})
    assert answer.status_code == status
    assert (run_of(site, review.run_id).state is RunState.CANCELLED) is (status == 303)
    if status == 303:
        assert run_of(site, review.run_id).reason == "enough"
        assert now(site.workspace, review).status is ReviewStatus.WITHDRAWN
        again = browser.post(f"{address}/cancel", {"csrf": token})
        assert again.status_code == 409
        assert "has ended already" in Page(again.text).text


def test_a_form_of_another_session_cancels_nothing(site: Site) -> None:
    review = ask(site.workspace)
    answer = signed_in(site).post(f"/runs/{review.run_id}/cancel", {"csrf": "x"})
    assert answer.status_code == 403
    assert run_of(site, review.run_id).is_open


def test_a_run_that_is_not_there_is_said_so(site: Site) -> None:
    assert signed_in(site).get("/runs/no/such").status_code == 404


def test_what_retention_removed_is_said_so(site: Site) -> None:
    review = ask(site.workspace)
    ended(site, review.run_id, RunState.DONE)
    clock = site.workspace.database
    with clock.write() as tx:
        tx.execute(tables.runs.update().values(input=None, redacted_at=clock.now(tx)))
    browser = signed_in(site)
    assert "removed by retention on" in Page(browser.get("/runs").text).text
    assert "removed by retention on" in Page(browser.get(f"/runs/{review.run_id}").text).text
