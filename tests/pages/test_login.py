"""Signing in by the page: who is let in, what the browser is given, where it goes on, and how it ends."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from clearance.audit import AuditKind
from clearance.membership import disable
from clearance.people import Role
from clearance.store import audit
from clearance.store.database import Database
from clearance.web.pages.viewer import local
from tests.pages.site import OWNER, PASSWORD, SECURE, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

WRONG = "not the right words"


def _trail(database: Database, kind: AuditKind) -> list[tuple[str, dict[str, object]]]:
    from sqlalchemy import select

    from clearance.store.tables import entries

    with database.read() as tx:
        found = tx.execute(
            select(entries.c.subject, entries.c.facts).where(entries.c.kind == kind).order_by(entries.c.id)
        )
        return [(row.subject, row.facts) for row in found]


def test_whoever_is_not_signed_in_is_sent_to_do_so_and_back(site: Site) -> None:
    browser = site.browser()
    sent_away = browser.get("/me/sessions?changed=1")
    where = sent_away.headers["location"]
    assert (sent_away.status_code, where) == (303, "/login?next=/me/sessions%3Fchanged%3D1")
    done = browser.send(where, "/login", name=OWNER, password=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, "/me/sessions?changed=1")
    assert "Where you are signed in" in browser.page("/me/sessions").text


def test_htmx_is_told_to_have_the_whole_page_go_to_sign_in(site: Site) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:8000/me/password"}
    answer = site.browser().get("/me/sessions", headers=headers)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/login?next=/me/password")
    foreign = {"HX-Request": "true", "HX-Current-URL": "http://evil.example/me/password"}
    assert site.browser().get("/me/sessions", headers=foreign).headers["hx-redirect"] == "/login?next=/"


def test_a_person_signs_in_by_their_name_as_well(site: Site) -> None:
    from clearance.people import Person
    from clearance.store import people

    database = site.workspace.database
    with database.write() as tx:
        people.add(tx, Person("u-17", "Eva Mayer", role=Role.REVIEWER), now=database.now(tx))
    site.give_password("u-17")
    assert site.browser().sign_in("Eva Mayer").status_code == 303
    assert site.browser().sign_in("u-17").status_code == 303


def test_a_name_that_several_have_is_nobodys(site: Site) -> None:
    from clearance.people import Person
    from clearance.store import people

    database = site.workspace.database
    with database.write() as tx:
        for number in (1, 2):
            people.add(tx, Person(f"u-{number}", "Eva", role=Role.REVIEWER), now=database.now(tx))
    site.give_password("u-1")
    assert site.browser().sign_in("Eva").status_code == 401
    assert site.browser().sign_in("u-1").status_code == 303


@pytest.mark.parametrize(
    ("name", "password"),
    [
        (OWNER, WRONG),
        (OWNER, ""),
        (OWNER, PASSWORD + " "),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("a\0b", PASSWORD),
        ("bot", PASSWORD),
        ("gone", PASSWORD),
        ("new", PASSWORD),
        (OWNER, "x" * 5000),
    ],
    ids=["wrong", "none", "longer", "unknown", "no name", "null", "agent", "disabled", "unset", "too long"],
)
def test_whatever_is_wrong_gets_one_answer(site: Site, name: str, password: str) -> None:
    from clearance.keyring import add_agent
    from clearance.people import Person
    from clearance.store import people

    database = site.workspace.database
    add_agent(database, "bot", behind=OWNER, by=OWNER)
    site.give_password("bot")
    site.add("gone")
    disable(database, "gone", by=OWNER)
    with database.write() as tx:
        people.add(tx, Person("new", "new", role=Role.REVIEWER), now=database.now(tx))
    browser = site.browser()
    answer = browser.post("/login", {"name": name, "password": password})
    assert (answer.status_code, browser.token) == (401, None)
    assert "That name and password do not belong together here." in Page(answer.text).text
    assert "set-cookie" not in answer.headers
    assert password == "" or password not in answer.text
    [(subject, facts)] = _trail(database, AuditKind.PERSON_SIGN_IN_FAILED)
    assert subject == (name if name in (OWNER, "gone", "new") else "clearance")
    assert facts == {"at": "login"}


@pytest.mark.parametrize(
    ("base", "name", "secure"),
    [
        ("http://127.0.0.1:8000", "clearance", False),
        ("http://localhost:8000", "clearance", False),
        ("http://[::1]:8000", "clearance", False),
        (SECURE, "__Host-clearance", True),
    ],
)
def test_the_cookie_is_kept_from_scripts_from_other_sites_and_from_plain_lines(
    site: Site, base: str, name: str, secure: bool
) -> None:
    answer = site.browser(base).sign_in()
    cookie, *flags = [part.strip() for part in answer.headers["set-cookie"].split(";")]
    assert cookie.startswith(f"{name}=")
    assert len(cookie.removeprefix(f"{name}=")) == 43
    told = {flag.lower() for flag in flags}
    assert {"httponly", "samesite=lax", "path=/"} <= told
    assert ("secure" in told) is secure
    assert not any(flag.startswith("domain") for flag in told)


def test_over_plain_http_from_elsewhere_nobody_signs_in(site: Site) -> None:
    browser = site.browser("http://clearance.example.org")
    shown = browser.get("/login")
    assert shown.status_code == 403
    assert "Signing in needs HTTPS" in Page(shown.text).text
    assert Page(shown.text).forms == []
    answer = browser.post("/login", {"name": OWNER, "password": PASSWORD})
    assert (answer.status_code, browser.token) == (403, None)
    held = site.session().token
    answer = browser.get("/me/sessions", headers={"Cookie": f"clearance={held}; __Host-clearance={held}"})
    assert answer.status_code == 303


def test_behind_a_proxy_that_ends_tls_the_setting_says_so(site: Site) -> None:
    site.workspace.public_url = SECURE
    browser = site.browser("http://clearance.example.org")
    answer = browser.post("/login", {"name": OWNER, "password": PASSWORD})
    assert answer.headers["set-cookie"].startswith("__Host-clearance=")
    assert "Secure" in answer.headers["set-cookie"]
    elsewhere = site.browser("http://other.example.org")
    assert elsewhere.post("/login", {"name": OWNER, "password": PASSWORD}).status_code == 403


def test_the_cookie_of_the_plain_name_opens_nothing_over_https(site: Site) -> None:
    token = site.session().token
    secure = site.browser(SECURE)
    assert secure.get("/me/sessions", headers={"Cookie": f"clearance={token}"}).status_code == 303
    assert secure.get("/me/sessions", headers={"Cookie": f"__Host-clearance={token}"}).status_code == 200


def test_a_session_has_a_token_of_its_own_whatever_the_browser_showed_before(site: Site) -> None:
    planted = site.session().token
    browser = site.browser()
    browser.http.cookies.set("clearance", planted, domain="127.0.0.1")
    answer = browser.post("/login", {"name": OWNER, "password": PASSWORD})
    assert answer.status_code == 303
    assert planted not in answer.headers["set-cookie"]
    other = site.browser()
    assert other.get("/me/sessions", headers={"Cookie": f"clearance={planted}"}).status_code == 303


def test_a_token_that_nobody_gave_is_not_taken_up(site: Site) -> None:
    browser = site.browser()
    made_up = "A" * 43
    browser.http.cookies.set("clearance", made_up, domain="127.0.0.1")
    assert made_up not in browser.post("/login", {"name": OWNER, "password": PASSWORD}).headers["set-cookie"]
    answer = site.browser().get("/me/sessions", headers={"Cookie": f"clearance={made_up}"})
    assert answer.status_code == 303


def test_only_a_digest_of_the_token_is_kept(site: Site) -> None:
    from sqlalchemy import select

    from clearance.store.tables import entries, sessions

    browser = site.signed_in()
    token = browser.token
    assert token is not None
    with site.workspace.database.read() as tx:
        kept = [str(row) for row in tx.execute(select(sessions))]
        told = [str(row) for row in tx.execute(select(entries))]
    assert len(kept) == 1
    assert not any(token in each for each in [*kept, *told])


def test_signing_out_ends_the_session_on_the_server_too(site: Site) -> None:
    browser = site.signed_in()
    token = browser.token
    answer = browser.send("/me/sessions", "/logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert browser.token is None
    again = site.browser().get("/me/sessions", headers={"Cookie": f"clearance={token}"})
    assert again.status_code == 303
    assert len(_trail(site.workspace.database, AuditKind.PERSON_SIGNED_OUT)) == 1


def test_whoever_is_disabled_is_out_at_the_next_request(site: Site) -> None:
    site.add("eva")
    browser = site.signed_in("eva")
    assert browser.get("/me/sessions").status_code == 200
    disable(site.workspace.database, "eva", by=OWNER)
    assert browser.get("/me/sessions").status_code == 303
    assert site.browser().sign_in("eva").status_code == 401


def test_a_signed_in_person_goes_on_unless_asked_again(site: Site) -> None:
    browser = site.signed_in()
    answer = browser.get("/login?next=/me/password")
    assert (answer.status_code, answer.headers["location"]) == (303, "/me/password")
    again = browser.page("/login?again=1&next=/me/password").form("/login")
    assert dict(again.values)["name"] == OWNER
    before = browser.token
    done = browser.post("/login", dict(again.with_(password=PASSWORD)))
    assert done.headers["location"] == "/me/password"
    assert browser.token != before


@pytest.mark.parametrize(
    ("next", "goes"),
    [
        ("/", "/"),
        ("/reviews/r-1?edit=1", "/reviews/r-1?edit=1"),
        ("/reviews/a/1/0?x=http://evil.example/", "/reviews/a/1/0?x=http://evil.example/"),
        ("", "/"),
        ("//evil.example", "/"),
        ("///evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("\t//evil.example", "/"),
        (" //evil.example", "/"),
        ("http://evil.example", "/"),
        ("https:evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil.example", "/"),
        ("@evil.example", "/"),
        ("/.//evil.example", "/"),
        ("/a//evil.example", "/"),
        ("/%0d%0aSet-Cookie:x=1", "/"),
        ("/x\r\nSet-Cookie: x=1", "/"),
        ("/\u2028x", "/"),
    ],
)
def test_signing_in_leads_to_pages_of_ours_alone(next: str, goes: str) -> None:
    assert local(next) == goes


def test_the_form_of_sign_in_leads_to_pages_of_ours_alone(site: Site) -> None:
    browser = site.browser()
    shown = browser.get("/login?next=//evil.example/x")
    assert "evil.example" not in shown.text
    data = {"name": OWNER, "password": PASSWORD, "next": "https://evil.example"}
    assert browser.post("/login", data).headers["location"] == "/"


def test_a_cookie_opens_no_route_of_the_api_and_a_key_no_page(site: Site) -> None:
    from clearance.keyring import add_key, new_credential

    browser = site.signed_in()
    answer = browser.get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    made = new_credential()
    add_key(site.workspace.database, "k", person=OWNER, by=OWNER, made=made)
    key = {"Authorization": f"Bearer {made.text}"}
    fresh = site.browser()
    assert fresh.get("/api/v1/me", headers=key).status_code == 200
    assert fresh.get("/me/sessions", headers=key).status_code == 303
    assert fresh.post("/logout", {}, headers=key).status_code == 303
    cookie = {"Cookie": f"clearance={made.text}"}
    assert fresh.get("/me/sessions", headers=cookie).status_code == 303
    bearer = {"Authorization": f"Bearer {browser.token}"}
    assert fresh.get("/api/v1/me", headers=bearer).status_code == 401


def test_a_session_ends_when_it_is_not_used_and_after_a_month_in_any_case(site: Site) -> None:
    clock = site.stop_the_clock()
    began = clock.now
    browser = site.signed_in()
    while browser.get("/me/sessions").status_code == 200:
        clock.pass_(hours=10)
    assert timedelta(days=30) <= clock.now - began < timedelta(days=30, hours=10)
    idle = site.signed_in()
    clock.pass_(hours=11, minutes=59)
    assert idle.get("/me/sessions").status_code == 200
    clock.pass_(hours=12)
    assert idle.get("/me/sessions").status_code == 303


def test_guessing_one_password_gets_slow_from_wherever_it_comes(site: Site) -> None:
    clock = site.stop_the_clock()
    answers = [
        site.browser(address=f"192.0.2.{number}").post("/login", {"name": OWNER, "password": WRONG})
        for number in range(7)
    ]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
    assert answers[-1].headers["retry-after"] == "1"
    assert "That failed too often. Try again in a second." in Page(answers[-1].text).text
    right = site.browser(address="192.0.2.9").post("/login", {"name": OWNER, "password": PASSWORD})
    assert right.status_code == 429
    clock.pass_(seconds=1)
    assert site.browser(address="192.0.2.9").sign_in().status_code == 303
    site.add("eva")
    assert site.browser(address="192.0.2.9").sign_in("eva").status_code == 303
    assert len(_trail(site.workspace.database, AuditKind.PERSON_SIGN_IN_FAILED)) == 5


def test_guessing_many_names_from_one_address_gets_slow(site: Site) -> None:
    site.stop_the_clock()
    names = [site.add(f"n{number}") for number in range(6)]
    codes = [
        site.browser(address=f"2001:db8::{number + 1:x}")
        .post("/login", {"name": names[number % 6], "password": WRONG})
        .status_code
        for number in range(22)
    ]
    assert codes == [401] * 20 + [429] * 2
    assert site.browser(address="2001:db8:0:1::1").sign_in().status_code == 303


def test_one_right_password_does_not_pay_for_the_guesses_of_an_address(site: Site) -> None:
    site.stop_the_clock()
    site.add("eva")
    names = [site.add(f"n{number}") for number in range(6)]
    codes = []
    for number in range(22):
        typed = {"name": names[number % 6], "password": WRONG}
        wrong = site.browser(address="192.0.2.1").post("/login", typed)
        codes.append(wrong.status_code)
        if number % 5 == 0:
            site.browser(address="192.0.2.1").post("/login", {"name": "eva", "password": PASSWORD})
    assert 429 in codes


def test_what_is_typed_for_a_name_is_kept_nowhere(site: Site) -> None:
    from sqlalchemy import select

    from clearance.store.tables import metadata

    secret = "typed into the wrong field"
    site.browser().post("/login", {"name": secret, "password": secret})
    with site.workspace.database.read() as tx:
        kept = [str(row) for table in metadata.sorted_tables for row in tx.execute(select(table))]
    assert kept
    assert not any(secret in each for each in kept)


def test_the_audit_entry_of_a_sign_in_names_the_session_and_how(site: Site) -> None:
    site.signed_in()
    [(subject, facts)] = _trail(site.workspace.database, AuditKind.PERSON_SIGNED_IN)
    assert (subject, facts["how"], len(str(facts["session"]))) == (OWNER, "password", 12)
    with site.workspace.database.read() as tx:
        assert audit.standing(tx) is not None


def test_a_workspace_where_nobody_can_sign_in_says_how_to_change_that(site: Site) -> None:
    from sqlalchemy import delete

    from clearance.store.tables import passwords

    assert "Nobody can sign in here yet" not in site.browser().page("/login").text
    with site.workspace.database.write() as tx:
        tx.execute(delete(passwords))
    assert "clearance people link NAME" in site.browser().page("/login").text


def test_a_body_that_is_no_form_is_refused(site: Site) -> None:
    http: TestClient = site.browser().http
    headers = {"Sec-Fetch-Site": "same-origin"}
    assert http.post("/login", json={"name": OWNER}, headers=headers).status_code == 415
    typed = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert http.post("/login", content=b"name=%ff", headers=typed).status_code == 422
    assert http.post("/login", content=b"a=&" * 3000, headers=typed).status_code == 422
    assert http.post("/login", content=b"a" * 2_000_000, headers=typed).status_code == 413
    assert http.post("/login", files={"name": b"x"}, headers=headers).status_code == 400
