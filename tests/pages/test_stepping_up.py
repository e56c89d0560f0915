"""Stepping up: high risk needs a sign-in within five minutes, critical risk one for each decision."""

import pytest

from clearance.credential import digest_of
from clearance.errors import TooManyTriesError
from clearance.people import Person, Role
from clearance.policy import Risk
from clearance.review import Answer
from clearance.signing_in import SignedIn
from clearance.store import people, sessions
from clearance.web.pages.stepping_up import StepUp, StepUpNeededError, require_fresh, wanted
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Viewer, viewer_of
from tests.pages.reviewing import Shown, asked, now, opened, sent, signed_in
from tests.pages.setting import press
from tests.pages.site import OWNER, PASSWORD, Browser, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

NOTHING = Submitted()
TYPED = Submitted([("password", PASSWORD)])
WRONG = Submitted([("password", "not the right words")])
LOW = (Risk.LOW, Risk.MEDIUM)


def _viewer(site: Site, found: SignedIn) -> Viewer:
    """Return who the next request of this session is from."""
    return _opened(site, found.token)


def seen_by(site: Site, browser: Browser) -> Viewer:
    """Return who the next request of this browser is from."""
    return _opened(site, browser.token or "")


def _opened(site: Site, token: str) -> Viewer:
    database = site.workspace.database
    with database.read() as tx:
        opened = sessions.opened_by(
            tx, digest_of(token), now=database.now(tx), idle=site.workspace.session_limits.idle
        )
        assert opened is not None
        return viewer_of(*opened, token=token, mode=people.mode(tx), seen=0)


def _refused(viewer: Viewer, risk: Risk, sent: Submitted, site: Site) -> StepUpNeededError:
    with pytest.raises(StepUpNeededError) as refusal:
        require_fresh(viewer, risk, sent, site.workspace, back="/reviews/r-1?edit=1")
    return refusal.value


def test_what_has_low_risk_needs_no_more_than_a_session(site: Site) -> None:
    clock = site.stop_the_clock()
    found = site.session()
    clock.pass_(hours=11)
    for risk in LOW:
        viewer = _viewer(site, found)
        assert wanted(viewer, risk, site.workspace) is StepUp.NONE
        require_fresh(viewer, risk, NOTHING, site.workspace)


def test_high_risk_needs_a_sign_in_of_the_last_five_minutes(site: Site) -> None:
    clock = site.stop_the_clock()
    found = site.session()
    clock.pass_(minutes=4, seconds=59)
    require_fresh(_viewer(site, found), Risk.HIGH, NOTHING, site.workspace)
    clock.pass_(seconds=1)
    viewer = _viewer(site, found)
    assert wanted(viewer, Risk.HIGH, site.workspace) is StepUp.PASSWORD
    refusal = _refused(viewer, Risk.HIGH, NOTHING, site)
    assert (refusal.how, refusal.wrong) == (StepUp.PASSWORD, False)
    require_fresh(viewer, Risk.HIGH, TYPED, site.workspace)
    clock.pass_(minutes=4)
    require_fresh(_viewer(site, found), Risk.HIGH, NOTHING, site.workspace)


def test_critical_risk_needs_the_password_each_time(site: Site) -> None:
    site.stop_the_clock()
    found = site.session()
    viewer = _viewer(site, found)
    assert wanted(viewer, Risk.CRITICAL, site.workspace) is StepUp.PASSWORD
    for _ in range(2):
        assert _refused(viewer, Risk.CRITICAL, NOTHING, site).how is StepUp.PASSWORD
        require_fresh(viewer, Risk.CRITICAL, TYPED, site.workspace)
        viewer = _viewer(site, found)


def test_a_wrong_password_is_said_and_slowed_down(site: Site) -> None:
    clock = site.stop_the_clock()
    viewer = _viewer(site, site.session())
    for _ in range(5):
        refusal = _refused(viewer, Risk.CRITICAL, WRONG, site)
        assert (refusal.wrong, "not your password" in str(refusal)) == (True, True)
    with pytest.raises(TooManyTriesError):
        require_fresh(viewer, Risk.CRITICAL, TYPED, site.workspace)
    clock.pass_(seconds=2)
    require_fresh(viewer, Risk.CRITICAL, TYPED, site.workspace)


def test_strangers_do_not_make_a_person_wait_who_is_signed_in(site: Site) -> None:
    site.stop_the_clock()
    viewer = _viewer(site, site.session())
    for _ in range(7):
        site.browser().post("/login", {"name": OWNER, "password": "not the right words"})
    require_fresh(viewer, Risk.CRITICAL, TYPED, site.workspace)


def test_whoever_signs_in_elsewhere_signs_in_there_again_once_for_each_critical_decision(site: Site) -> None:
    clock = site.stop_the_clock()
    database = site.workspace.database
    with database.write() as tx:
        people.add(tx, Person("eva", "Eva", role=Role.REVIEWER), now=database.now(tx))
    found = site.session("eva", how="provider")
    require_fresh(_viewer(site, found), Risk.CRITICAL, NOTHING, site.workspace)
    viewer = _viewer(site, found)
    assert wanted(viewer, Risk.CRITICAL, site.workspace) is StepUp.SIGN_IN
    refusal = _refused(viewer, Risk.CRITICAL, TYPED, site)
    assert (refusal.how, refusal.where) == (
        StepUp.SIGN_IN,
        "/login?again=1&next=/reviews/r-1%3Fedit%3D1",
    )
    clock.pass_(seconds=1)
    with database.write() as tx:
        sessions.freshen(tx, found.session.id, now=database.now(tx))
    require_fresh(_viewer(site, found), Risk.CRITICAL, NOTHING, site.workspace)
    clock.pass_(minutes=5)
    for risk in (Risk.HIGH, Risk.CRITICAL):
        assert _refused(_viewer(site, found), risk, NOTHING, site).how is StepUp.SIGN_IN


def test_two_critical_decisions_at_once_use_up_one_sign_in(site: Site) -> None:
    database = site.workspace.database
    with database.write() as tx:
        people.add(tx, Person("eva", "Eva", role=Role.REVIEWER), now=database.now(tx))
    viewer = _viewer(site, site.session("eva", how="provider"))
    require_fresh(viewer, Risk.CRITICAL, NOTHING, site.workspace)
    # The other had read the session before it was used up.
    with database.write() as tx:
        assert not sessions.spend(tx, viewer.session_id, now=database.now(tx))


def test_an_edit_that_makes_a_call_riskier_needs_the_sign_in_of_what_it_became(site: Site) -> None:
    browser = signed_in(site)
    review = asked(site.workspace, ("ship", '{"boxes":1}'))
    page = opened(browser, review, "?edit=1")
    assert "password" not in dict(page.fields)
    answer = sent(browser, page, "decision", "approve", t1__boxes="101", c1="kept")
    assert answer.status_code == 403
    assert now(site.workspace, review) == review
    page = Shown.read(answer.text)
    fields = dict(page.fields)
    assert (fields["t1/boxes"], fields["c1"], fields["password"]) == ("101", "kept", "")
    assert "Critical risk: show once more that it is you" in page.text
    assert sent(browser, page, "decision", "approve", password="not the right words").status_code == 403
    assert now(site.workspace, review) == review
    assert sent(browser, page, "decision", "approve", password=PASSWORD).status_code == 303
    [call] = now(site.workspace, review).calls
    assert (call.state, call.arguments, call.verdict.risk) == (
        Answer.APPROVED,
        '{"boxes":101}',
        Risk.CRITICAL,
    )


def test_an_edit_into_high_risk_needs_a_sign_in_of_the_last_five_minutes(site: Site) -> None:
    clock = site.stop_the_clock()
    browser = signed_in(site)
    first, second = (asked(site.workspace, ("ship", '{"boxes":1}')) for _ in range(2))
    page = opened(browser, first, "?edit=1")
    assert sent(browser, page, "decision", "approve", t1__boxes="11").status_code == 303
    clock.pass_(minutes=6)
    page = opened(browser, second, "?edit=1")
    assert sent(browser, page, "decision", "approve", t1__boxes="11").status_code == 403
    assert now(site.workspace, second) == second
    assert sent(browser, page, "decision", "approve", t1__boxes="9").status_code == 303


WAYS_IN = {
    "a key": ("/settings/keys", {"do": "add", "name": "k", "whose": "of:ann"}),
    "a person": ("/settings/people", {"id": "new", "role": "admin"}),
    "a role": ("/settings/people/eva", {"do": "role", "role": "admin"}),
    "a group": ("/settings/people/eva", {"do": "groups", "groups": "finance"}),
    "a link": ("/settings/people/eva", {"do": "link"}),
    "one's own link": ("/settings/people/ann", {"do": "link"}),
    "a channel with links": (
        "/settings/channels",
        {
            "do": "add",
            "name": "mine",
            "kind": "apprise",
            "address": "ntfys://ntfy.example.org/topic",
            "serves": "person",
            "whom": "ann",
            "min_risk": "low",
            "event": "asked",
        },
    ),
}


@pytest.mark.parametrize(("path", "form"), WAYS_IN.values(), ids=WAYS_IN.keys())
def test_a_browser_left_open_opens_no_other_way_to_decide(
    site: Site, path: str, form: dict[str, str]
) -> None:
    clock = site.stop_the_clock()
    site.add("eva")
    browser = signed_in(site)
    clock.pass_(minutes=5)
    asked_who = press(browser, path, **form)
    assert asked_who.status_code == 403
    again = Page(asked_who.text).form(path)
    assert set(form.items()) <= set(again.values)
    assert browser.post(path, dict(again.with_(password="not the right words"))).status_code == 403
    assert browser.post(path, dict(again.with_(password=PASSWORD))).status_code in (201, 303)
    # Now the sign-in is fresh, and that is asked no more.
    assert press(browser, path, **form).status_code in (201, 303, 409)


def test_who_signs_in_elsewhere_is_sent_there_before_they_make_a_key(site: Site) -> None:
    clock = site.stop_the_clock()
    with site.workspace.database.write() as tx:
        people.add(tx, Person("eva", "Eva", role=Role.REVIEWER), now=clock.now)
    browser = signed_in(site, "eva")
    clock.pass_(minutes=5)
    answer = press(browser, "/settings/keys", do="add", name="k", whose="of:eva")
    assert (answer.status_code, "/login?again=1&amp;next=/settings/keys" in answer.text) == (403, True)


def test_an_agent_gets_its_key_without_more_ado(site: Site) -> None:
    clock = site.stop_the_clock()
    browser = signed_in(site)
    clock.pass_(hours=1)
    assert press(browser, "/settings/keys", do="add", name="bot", whose="agent").status_code == 201
