"""People in the settings: let in by a link that is shown once, changed, kept out; and agents let go on."""

import re

import pytest

from clearance.keyring import add_agent
from clearance.people import Person, Role
from clearance.store import people
from clearance.store.parking import Parked, park, parked
from tests.pages.setting import press, trail
from tests.pages.site import OWNER, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PATH = "/settings/people"


def _person(site: Site, name: str) -> Person:
    with site.workspace.database.read() as tx:
        return people.person(tx, name)


def test_a_person_is_added_with_a_link_that_is_shown_once_and_works(site: Site) -> None:
    browser = site.signed_in()
    done = press(browser, PATH, id="eva", name="Eva Ruiz", role="operator", groups=" finance, leads ,")
    assert done.status_code == 201
    [link] = re.findall(r"http://127.0.0.1:8000(/welcome/[\w-]+)", done.text)
    assert _person(site, "eva") == Person("eva", "Eva Ruiz", Role.OPERATOR, ("finance", "leads"))
    assert trail(site, "person:added", "person:invited")[-2:] == [
        ("person:added", "eva", OWNER),
        ("person:invited", "eva", OWNER),
    ]
    assert link not in browser.get(PATH).text
    assert "This link is for Eva Ruiz" in site.browser().page(link).text


def test_a_link_leads_where_people_reach_the_pages(site: Site) -> None:
    site.workspace.public_url = "https://clearance.example.org/"
    done = press(site.signed_in(), PATH, id="eva", role="viewer")
    assert "https://clearance.example.org/welcome/" in done.text


@pytest.mark.parametrize(
    ("typed", "code", "field", "said"),
    [
        ({"id": ""}, 422, "id", "A name has 1 to 100"),
        ({"id": "a/b"}, 422, "id", "no &#39;/&#39;"),
        ({"id": "x" * 101}, 422, "id", "A name has 1 to 100"),
        ({"id": OWNER}, 409, "id", "ann is known here already"),
        ({"name": "x" * 201}, 422, "name", "A person&#39;s name has"),
        ({"name": "a\u202eb"}, 422, "name", "printable"),
        ({"role": "king"}, 422, "role", "A role is one of viewer"),
        ({"groups": "finance, a/b"}, 422, "groups", "A name has 1 to 100"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_what_was_typed_is_kept(
    site: Site, typed: dict[str, str], code: int, field: str, said: str
) -> None:
    form = {"id": "eva", "name": "Eva", "role": "viewer", "groups": "finance", **typed}
    before = trail(site, "person:added")
    answer = press(site.signed_in(), PATH, **form)
    assert answer.status_code == code
    assert re.search(rf'id="{field}-error">[^<]*{said}', answer.text)
    assert f'value="{form["name"]}"' in answer.text
    assert f'value="{form["groups"]}"' in answer.text
    assert trail(site, "person:added") == before


def test_role_groups_and_access_are_changed_each_with_its_entry(site: Site) -> None:
    site.add("ben")
    browser = site.signed_in()
    for form in ({"do": "role", "role": "viewer"}, {"do": "groups", "groups": "a, b"}, {"do": "disable"}):
        assert press(browser, f"{PATH}/ben", **form).status_code == 303
    assert _person(site, "ben") == Person("ben", "ben", Role.VIEWER, ("a", "b"), disabled=True)
    assert press(browser, f"{PATH}/ben", do="enable").status_code == 303
    assert [entry[0] for entry in trail(site, *_KINDS) if entry[1] == "ben"] == list(_KINDS)


_KINDS = ("person:role-changed", "person:groups-changed", "person:disabled", "person:enabled")


@pytest.mark.parametrize("form", [{"do": "role", "role": "viewer"}, {"do": "disable"}])
def test_the_last_admin_stays_one(site: Site, form: dict[str, str]) -> None:
    browser = site.signed_in()
    answer = press(browser, f"{PATH}/{OWNER}", **form)
    assert (answer.status_code, "is the only admin here" in answer.text) == (409, True)
    assert _person(site, OWNER).role is Role.ADMIN
    assert not _person(site, OWNER).disabled
    site.add("bea", role=Role.ADMIN)
    assert press(browser, f"{PATH}/{OWNER}", **form).status_code == 303


@pytest.mark.parametrize(
    ("form", "code", "said"),
    [
        ({"do": "role", "role": "king"}, 422, "A role is one of"),
        ({"do": "groups", "groups": "a/b"}, 422, "A name has 1 to 100"),
        ({"do": "enable"}, 409, "ben is not disabled"),
        ({"do": "nothing"}, 422, "says not what to do"),
    ],
)
def test_a_change_that_cannot_be_is_said_and_nothing_is_changed(
    site: Site, form: dict[str, str], code: int, said: str
) -> None:
    site.add("ben", groups=("finance",))
    answer = press(site.signed_in(), f"{PATH}/ben", **form)
    assert (answer.status_code, "Nothing was changed." in answer.text) == (code, True)
    if form["do"] in ("role", "groups"):
        assert said in answer.text
        assert f'id="{form["do"]}-error"' in answer.text
    assert _person(site, "ben") == Person("ben", "ben", Role.REVIEWER, ("finance",))


def test_a_new_link_ends_the_one_before(site: Site) -> None:
    site.add("ben")
    browser = site.signed_in()
    first, second = (
        re.findall(r"/welcome/[\w-]+", press(browser, f"{PATH}/ben", do="link").text)[0] for _ in range(2)
    )
    assert site.browser().get(first).status_code == 404
    assert site.browser().get(second).status_code == 200


def test_the_list_says_who_is_there_since_when_and_for_whom(site: Site) -> None:
    site.add("ben", groups=("finance",))
    add_agent(site.workspace.database, "bot", behind="ben", by=OWNER)
    text = site.signed_in().page(PATH).text
    assert "ben ben reviewer finance never" in text
    assert "bot ben never goes on" in text
    assert "ann (you) ann admin – now" in text
    assert "One person works here" not in text


def test_a_workspace_of_one_person_says_what_that_means(site: Site) -> None:
    assert "With a second person the workspace becomes a separate one" in site.signed_in().page(PATH).text


def test_a_parked_agent_is_shown_and_let_go_on_by_an_operator(site: Site) -> None:
    site.add("olga", role=Role.OPERATOR)
    database = site.workspace.database
    add_agent(database, "bot", behind=OWNER, by=OWNER)
    with database.write() as tx:
        park(tx, Parked("bot", "it proposed too much", database.now(tx)))
    browser = site.signed_in("olga")
    page = browser.page(PATH)
    assert "parked" in page.text
    assert "it proposed too much" in page.text
    assert browser.send(PATH, f"{PATH}/bot", do="resume").status_code == 303
    with database.read() as tx:
        assert parked(tx, "bot") is None
    assert trail(site, "agent:resumed") == [("agent:resumed", "bot", "olga")]
    again = press(browser, f"{PATH}/bot", do="resume")
    assert (again.status_code, "is not parked" in Page(again.text).text) == (409, True)


def test_an_agent_has_no_role_to_change(site: Site) -> None:
    add_agent(site.workspace.database, "bot", behind=OWNER, by=OWNER)
    browser = site.signed_in()
    assert 'value="role"' not in browser.get(f"{PATH}/bot").text
    answer = press(browser, f"{PATH}/bot", do="role", role="admin")
    assert (answer.status_code, "bot is an agent" in answer.text) == (409, True)
