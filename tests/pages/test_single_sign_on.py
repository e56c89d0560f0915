"""Signing in through an identity provider: who comes in as whom, and all that must not let anybody in."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy import select

from clearance.audit import AuditKind
from clearance.errors import ConflictError, ForbiddenError
from clearance.membership import disable, join
from clearance.people import Role
from clearance.policy import Risk
from clearance.store import people
from clearance.store.tables import entries, failed_sign_ins
from clearance.web.pages.stepping_up import StepUp, wanted
from tests.databases import Databases
from tests.pages.site import OWNER, PLAIN, SECURE, Browser, Page, Site
from tests.pages.test_stepping_up import seen_by
from tests.people.identity_provider import WRONGS, IdentityProvider, User, provider_at_work

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

BACK = "/login/callback"


@dataclass
class Both:
    """A site, and the identity provider that it knows."""

    site: Site
    provider: IdentityProvider

    def begin(self, browser: Browser, *, next: str = "/me/sessions", again: bool = False) -> str:
        """Press the button, and return where the browser is sent back to from there."""
        where = f"/login/provider?next={next}{'&again=1' if again else ''}"
        answer = browser.get(where)
        assert answer.status_code == 303, Page(answer.text).text
        return self.provider.visit(answer.headers["location"])

    def sign_in(self, browser: Browser, *, next: str = "/me/sessions", again: bool = False) -> Response:
        """Go there and back, and return the answer."""
        return browser.get(self.begin(browser, next=next, again=again))

    def trail(self, kind: AuditKind) -> list[tuple[str, dict[str, Any]]]:
        """Return the subjects and facts of entries."""
        with self.site.workspace.database.read() as tx:
            query = select(entries.c.subject, entries.c.facts).where(entries.c.kind == kind)
            return [(row.subject, row.facts) for row in tx.execute(query.order_by(entries.c.id))]

    def known(self) -> dict[str, Any]:
        """Return everybody here by their ids."""
        with self.site.workspace.database.read() as tx:
            return {each.id: each for each in people.persons(tx)}


Open = Callable[..., Both]


@pytest.fixture
def open_both(databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open a site that knows a provider, by these settings. What the rows become is tested elsewhere."""
    with ExitStack() as stack:

        def opened(
            *, algorithm: str = "RS256", public_url: str | None = None, unset: str = "unset", **settings: str
        ) -> Both:
            provider = stack.enter_context(provider_at_work(algorithm))
            given = {"default_role": "reviewer", **settings}
            for name, value in provider.settings(**given).items():
                monkeypatch.setenv(name, value)
            monkeypatch.delenv(unset, raising=False)
            if public_url is not None:
                monkeypatch.setenv("CLEARANCE_PUBLIC_URL", public_url)
            provider.redirects.append((public_url or PLAIN) + BACK)
            site = stack.enter_context(Site.open(databases.migrated("sqlite", tmp_path), home=tmp_path))
            return Both(site, provider)

        yield opened


@pytest.fixture
def both(open_both: Open) -> Both:
    """Give a site that takes everybody the provider knows as a reviewer."""
    return open_both()


def test_whoever_the_provider_vouches_for_is_made_a_person_the_first_time(both: Both) -> None:
    both.provider.user.claims["groups"] = ["finance", "not/a name", 7]
    browser = both.site.browser()
    button = browser.get("/login?next=/me/sessions").text
    assert 'href="/login/provider?next=/me/sessions"' in button
    assert "Sign in with single sign-on" in button
    done = both.sign_in(browser)
    assert (done.status_code, done.headers["location"]) == (303, "/me/sessions")
    assert "Where you are signed in" in browser.page("/me/sessions").text
    eva = both.known()["eva"]
    assert (eva.name, eva.role, eva.groups) == ("Eva Mayer", Role.REVIEWER, ("finance",))
    [(_, added)] = [each for each in both.trail(AuditKind.PERSON_ADDED) if each[0] == "eva"]
    assert added == {"role": "reviewer", "groups": ["finance"], "issuer": both.provider.issuer}
    [(who, signed)] = both.trail(AuditKind.PERSON_SIGNED_IN)
    assert (who, signed["how"]) == ("eva", "provider")


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
def test_a_token_holds_by_each_sort_of_key(open_both: Open, algorithm: str) -> None:
    both = open_both(algorithm=algorithm)
    assert both.sign_in(both.site.browser()).status_code == 303


@pytest.mark.parametrize("basic", [True, False], ids=["basic", "post"])
def test_the_client_shows_its_secret_as_the_provider_takes_it(both: Both, basic: bool) -> None:
    both.provider.basic = basic
    assert both.sign_in(both.site.browser()).status_code == 303


@pytest.mark.parametrize("wrong", [each for each in WRONGS if each != "long ago"])
def test_a_token_that_does_not_hold_lets_nobody_in(both: Both, wrong: str) -> None:
    both.provider.wrong = wrong
    browser = both.site.browser()
    answer = both.sign_in(browser)
    assert answer.status_code in (401, 503)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert browser.token is None
    assert both.known().keys() == {OWNER}
    secrets = [*both.provider.tokens, both.provider.asked[0]["nonce"], both.provider.asked[0]["state"]]
    assert not any(each in answer.text for each in secrets)
    told = str(both.trail(AuditKind.PERSON_SIGN_IN_FAILED))
    assert not any(each in told for each in secrets)


def test_a_provider_that_publishes_another_name_or_keys_elsewhere_is_not_asked(both: Both) -> None:
    both.provider.wrong = "another issuer"
    assert both.site.browser().get("/login/provider").status_code == 401
    both.provider.wrong = "keys elsewhere"
    assert both.sign_in(both.site.browser()).status_code == 503


@pytest.mark.parametrize("wrong", ["mix-up", "does not name itself"])
def test_an_answer_of_another_provider_is_no_answer(both: Both, wrong: str) -> None:
    both.provider.wrong = wrong
    answer = both.sign_in(both.site.browser())
    assert (answer.status_code, both.trail(AuditKind.PERSON_SIGN_IN_FAILED)) == (
        401,
        [("clearance", {"at": "provider", "why": "iss"})],
    )
    assert both.provider.tokens == []


def test_a_key_that_is_new_there_counts_and_an_old_one_no_more(both: Both) -> None:
    assert both.sign_in(both.site.browser()).status_code == 303
    both.site.app.state.provider._keys = (0.0, both.site.app.state.provider._keys[1])
    both.provider.rotate()
    assert both.sign_in(both.site.browser()).status_code == 303
    assert both.provider.fetched_keys == 2


def test_what_comes_back_counts_once_and_only_where_it_was_begun(both: Both) -> None:
    browser, other = both.site.browser(), both.site.browser()
    back = both.begin(browser)
    stray = other.get(back)
    assert (stray.status_code, other.token) == (403, None)
    assert "belongs to no sign-in of this browser" in Page(stray.text).text
    both.begin(other)
    assert other.get(back).status_code == 403
    assert browser.get(back).status_code == 303
    assert browser.get(back).status_code == 403
    assert len(both.provider.tokens) == 1


def test_a_cookie_that_is_kept_does_not_make_a_code_count_twice(both: Both) -> None:
    browser = both.site.browser()
    back = both.begin(browser)
    kept = dict(browser.http.cookies)
    assert browser.get(back).status_code == 303
    again = both.site.browser()
    again.http.cookies.update(kept)
    assert again.get(back).status_code == 401
    assert again.token is None


def test_a_sign_in_that_took_too_long_or_was_altered_is_begun_again(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = both.site.browser()
    back = both.begin(browser)
    signed = browser.http.cookies["clearance-provider"]
    forged = both.site.browser()
    forged.http.cookies["clearance-provider"] = "x" + signed[1:]
    assert forged.get(back).status_code == 403
    monkeypatch.setattr("clearance.web.pages.oidc.LASTS", -1)
    assert browser.get(back).status_code == 403
    assert both.provider.tokens == []


def test_the_provider_may_refuse(both: Both) -> None:
    browser = both.site.browser()
    back = both.begin(browser)
    state = both.provider.asked[0]["state"]
    said = (
        f"{BACK}?error=access_denied&error_description=<b>evil</b>&state={state}&iss={both.provider.issuer}"
    )
    answer = browser.get(said)
    assert (answer.status_code, "evil" in answer.text) == (401, False)
    assert "did not let you in" in Page(answer.text).text
    assert browser.get(back).status_code == 403


def test_a_provider_that_is_away_is_said_to_be(both: Both) -> None:
    browser = both.site.browser()
    both.site.app.state.provider.settings.__dict__["issuer"] = "http://127.0.0.1:1"
    answer = browser.get("/login/provider?next=/me/sessions")
    assert answer.status_code == 503
    assert "does not answer now" in Page(answer.text).text
    assert 'name="password"' in answer.text


def test_a_name_there_never_makes_somebody_a_person_who_is_here(both: Both) -> None:
    both.provider.user = User("u-9", {"preferred_username": OWNER, "email": f"{OWNER}@example.org"})
    answer = both.sign_in(both.site.browser())
    assert answer.status_code == 403
    assert f"clearance people join {OWNER} --subject u-9" in Page(answer.text).text
    assert both.known().keys() == {OWNER}


def test_whom_an_admin_joins_is_one_person_by_either_way(both: Both) -> None:
    database, issuer = both.site.workspace.database, both.site.app.state.provider.settings.issuer
    both.site.add("eva", role=Role.VIEWER)
    with pytest.raises(ForbiddenError):
        join(database, "eva", issuer=issuer, subject="u-1", by="eva")
    join(database, "eva", issuer=issuer, subject="u-1", by=OWNER)
    with pytest.raises(ConflictError, match="is eva here already"):
        join(database, OWNER, issuer=issuer, subject="u-1", by=OWNER)
    assert both.sign_in(both.site.browser()).status_code == 303
    assert both.known().keys() == {OWNER, "eva"}
    assert both.known()["eva"].role is Role.REVIEWER
    assert both.site.signed_in("eva").get("/me/sessions").status_code == 200


def test_a_subject_stays_who_it_is_whatever_it_is_called_there(both: Both) -> None:
    assert both.sign_in(both.site.browser()).status_code == 303
    both.provider.user = User("u-1", {"preferred_username": "maria", "name": "Maria"})
    assert both.sign_in(both.site.browser()).status_code == 303
    both.provider.user = User("u-2", {"preferred_username": "eva", "name": "Eva Mayer"})
    assert both.sign_in(both.site.browser()).status_code == 303
    assert both.known().keys() == {OWNER, "eva", "eva-2"}


def test_somebody_who_is_disabled_here_stays_out(both: Both) -> None:
    assert both.sign_in(both.site.browser()).status_code == 303
    disable(both.site.workspace.database, "eva", by=OWNER)
    answer = both.sign_in(both.site.browser())
    assert (answer.status_code, "disabled here" in answer.text) == (403, True)
    assert both.trail(AuditKind.PERSON_SIGN_IN_FAILED) == [("eva", {"at": "provider", "why": "disabled"})]


def test_groups_there_give_roles_and_groups_here_anew_each_time(open_both: Open) -> None:
    both = open_both(role_map="/ops=operator, /rev=reviewer", group_map="/rev=finance", default_role="viewer")
    user = both.provider.user
    for theirs, role, groups in [
        (["/rev", "/ops"], Role.OPERATOR, ("finance",)),
        (["/rev"], Role.REVIEWER, ("finance",)),
        (["/rev"], Role.REVIEWER, ("finance",)),
        ([], Role.VIEWER, ()),
    ]:
        user.claims["groups"] = theirs
        assert both.sign_in(both.site.browser()).status_code == 303
        eva = both.known()["eva"]
        assert (eva.role, eva.groups) == (role, groups)
    assert [facts["role"] for _, facts in both.trail(AuditKind.PERSON_ROLE_CHANGED)] == ["reviewer", "viewer"]
    assert [facts["groups"] for _, facts in both.trail(AuditKind.PERSON_GROUPS_CHANGED)] == [[]]


def test_whom_no_group_lets_in_stays_out_and_loses_what_they_had(open_both: Open) -> None:
    both = open_both(role_map="ops=operator", unset="CLEARANCE_OIDC_DEFAULT_ROLE")
    nobody = both.sign_in(both.site.browser())
    assert (nobody.status_code, "no role here" in nobody.text) == (403, True)
    assert both.known().keys() == {OWNER}
    both.provider.user.claims["groups"] = ["ops"]
    browser = both.site.browser()
    assert both.sign_in(browser).status_code == 303
    both.provider.user.claims["groups"] = ["sales"]
    assert both.sign_in(both.site.browser()).status_code == 403
    assert browser.get("/me/sessions").status_code == 303
    eva = both.known()["eva"]
    assert (eva.role, eva.groups) == (Role.VIEWER, ("sales",))


def test_roles_and_groups_that_are_given_here_are_kept_where_the_provider_tells_none(open_both: Open) -> None:
    from clearance.membership import set_groups, set_role

    both = open_both(groups_claim="", default_role="viewer")
    both.provider.user.claims["groups"] = ["admins"]
    assert both.sign_in(both.site.browser()).status_code == 303
    database = both.site.workspace.database
    set_role(database, "eva", Role.OPERATOR, by=OWNER)
    set_groups(database, "eva", ["finance"], by=OWNER)
    assert both.sign_in(both.site.browser()).status_code == 303
    eva = both.known()["eva"]
    assert (eva.role, eva.groups) == (Role.OPERATOR, ("finance",))


def test_the_last_admin_stays_one_whatever_the_provider_says(open_both: Open) -> None:
    both = open_both(role_map="admins=admin", default_role="viewer")
    both.provider.user.claims["groups"] = ["admins"]
    assert both.sign_in(both.site.browser()).status_code == 303
    disable(both.site.workspace.database, OWNER, by="eva")
    both.provider.user.claims["groups"] = []
    assert both.sign_in(both.site.browser()).status_code == 303
    assert both.known()["eva"].role is Role.ADMIN


def test_a_sign_in_there_of_long_ago_is_not_fresh_and_one_for_it_is_once(both: Both) -> None:
    both.site.give_password(OWNER)
    browser = both.site.browser()
    assert both.sign_in(browser).status_code == 303
    here = both.site.workspace
    for risk in (Risk.HIGH, Risk.CRITICAL):
        assert wanted(seen_by(both.site, browser), risk, here) is StepUp.SIGN_IN
    page = browser.get("/login?again=1&next=/reviews/r-1").text
    assert 'href="/login/provider?next=/reviews/r-1&amp;again=1"' in page
    done = both.sign_in(browser, next="/reviews/r-1", again=True)
    assert (done.status_code, done.headers["location"]) == (303, "/reviews/r-1")
    assert (both.provider.asked[1]["prompt"], both.provider.asked[1]["max_age"]) == ("login", "0")
    for risk in (Risk.HIGH, Risk.CRITICAL):
        assert wanted(seen_by(both.site, browser), risk, here) is StepUp.NONE


@pytest.mark.parametrize("wrong", ["long ago", "no auth_time"])
def test_stepping_up_needs_the_provider_to_say_that_it_was_just_now(both: Both, wrong: str) -> None:
    browser = both.site.browser()
    assert both.sign_in(browser).status_code == 303
    before = browser.token
    both.provider.wrong = wrong
    answer = both.sign_in(browser, again=True)
    assert (answer.status_code, "just now" in answer.text) == (401, True)
    assert browser.token == before
    assert wanted(seen_by(both.site, browser), Risk.HIGH, both.site.workspace) is StepUp.SIGN_IN


def test_a_sign_in_replaces_the_session_that_the_browser_had(both: Both) -> None:
    browser = both.site.browser()
    assert both.sign_in(browser).status_code == 303
    before = browser.token
    assert both.sign_in(browser).status_code == 303
    assert browser.token not in (None, before)
    other = both.site.browser()
    other.http.cookies["clearance"] = before or ""
    assert other.get("/me/sessions").status_code == 303


@pytest.mark.parametrize("next", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_it_leads_to_pages_here_alone(both: Both, next: str) -> None:
    done = both.sign_in(both.site.browser(), next=next)
    assert (done.status_code, done.headers["location"]) == (303, "/")


def test_behind_a_proxy_the_way_back_is_the_public_address_whatever_the_host_says(open_both: Open) -> None:
    both = open_both(public_url=SECURE)
    browser = both.site.browser(SECURE)
    answer = browser.get("/login/provider")
    assert "__Host-clearance-provider" in answer.headers["set-cookie"]
    assert {"Secure", "HttpOnly"} <= {each.strip() for each in answer.headers["set-cookie"].split(";")}
    assert browser.get(both.provider.visit(answer.headers["location"])).status_code == 303
    away = both.site.browser("https://evil.example").get("/login/provider")
    assert "evil" not in away.headers["location"]


def test_without_a_public_address_https_from_elsewhere_does_not_begin(both: Both) -> None:
    answer = both.site.browser("https://evil.example").get("/login/provider")
    assert (answer.status_code, "CLEARANCE_PUBLIC_URL" in answer.text) == (403, True)
    plain = both.site.browser("http://evil.example").get("/login/provider")
    assert plain.status_code == 403


def test_codes_that_are_tried_are_slowed_down(both: Both) -> None:
    browser = both.site.browser()
    answers = []
    for _ in range(22):
        both.begin(browser)
        state = both.provider.asked[-1]["state"]
        answers.append(browser.get(f"{BACK}?code=guess&state={state}&iss={both.provider.issuer}"))
    assert {each.status_code for each in answers[:20]} == {401}
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    with both.site.workspace.database.read() as tx:
        assert tx.execute(select(failed_sign_ins.c.subject)).scalars().all() == ["provider:127.0.0.1"]


def test_where_no_provider_is_set_there_is_no_such_way(site: Site) -> None:
    assert "Sign in with" not in site.browser().get("/login").text
    assert site.browser().get("/login/provider").status_code == 404
    assert site.browser().get(f"{BACK}?code=x&state=y").status_code == 404
