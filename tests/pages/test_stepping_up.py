"""Stepping up: high risk needs a sign-in within five minutes, critical risk one for each decision."""

import pytest

from clearance.credential import digest_of
from clearance.errors import TooManyTriesError
from clearance.policy import Risk
from clearance.signing_in import SignedIn
from clearance.store import people, sessions
from clearance.web.pages.stepping_up import StepUp, StepUpNeededError, require_fresh, wanted
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Viewer, viewer_of
from tests.pages.site import OWNER, PASSWORD, Site

NOTHING = Submitted()
TYPED = Submitted([("password", PASSWORD)])
WRONG = Submitted([("password", "not the right words")])
LOW = (Risk.LOW, Risk.MEDIUM)


def _viewer(site: Site, found: SignedIn) -> Viewer:
    """Return who the next request of this session is from."""
    database = site.workspace.database
    with database.read() as tx:
        opened = sessions.opened_by(
            tx, digest_of(found.token), now=database.now(tx), idle=site.workspace.session_limits.idle
        )
        assert opened is not None
        return viewer_of(*opened, token=found.token, mode=people.mode(tx))


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
        from clearance.people import Person, Role

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
        from clearance.people import Person, Role

        people.add(tx, Person("eva", "Eva", role=Role.REVIEWER), now=database.now(tx))
    viewer = _viewer(site, site.session("eva", how="provider"))
    require_fresh(viewer, Risk.CRITICAL, NOTHING, site.workspace)
    # The other had read the session before it was used up.
    with database.write() as tx:
        assert not sessions.spend(tx, viewer.session_id, now=database.now(tx))
