"""The commands on people: let in by a link, listed, changed, and never without an admin."""

import json

import pytest

from clearance.people import Mode, Person, Role
from clearance.signing_in import Client, accept, sign_in
from clearance.store import people
from tests.ways_in.desk import PERSON, Desk, error

PASSWORD = "four words in a row"
CLIENT = Client("127.0.0.1")


@pytest.fixture(autouse=True)
def _made(desk: Desk) -> None:
    desk.open().close()


def _accept(desk: Desk, link: str) -> str:
    """Set a password by a link, and return who is signed in."""
    with desk.open() as c:
        token = link.rpartition("/")[2]
        return accept(c.database, token, PASSWORD, client=CLIENT, limits=c.session_limits).person.id


def _person(desk: Desk, name: str) -> Person:
    with desk.open() as c, c.database.read() as tx:
        return people.person(tx, name)


def test_a_person_is_let_in_by_a_link_that_is_printed_alone(desk: Desk) -> None:
    done = desk.run("people", "add", "eva", "--name", "Eva Mayer", "--role", "operator", "--group", "finance")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("http://127.0.0.1:8000/welcome/")
    assert "once, until" in done.stderr
    assert _accept(desk, done.stdout.strip()) == "eva"
    with desk.open() as c:
        found = sign_in(c.database, "Eva Mayer", PASSWORD, client=CLIENT, limits=c.session_limits)
    assert found.person == Person("eva", "Eva Mayer", role=Role.OPERATOR, groups=("finance",))


def test_a_second_person_makes_the_workspace_separate(desk: Desk) -> None:
    assert desk.json("people", "list")["mode"] == Mode.SINGLE_USER
    desk.json("people", "add", "eva")
    assert desk.json("people", "list")["mode"] == Mode.SEPARATE
    desk.json("people", "disable", "eva")
    assert desk.json("people", "list")["mode"] == Mode.SEPARATE


def test_the_address_of_a_link_is_the_one_that_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARANCE_PUBLIC_URL", "https://clearance.example.org/")
    assert desk.json("people", "add", "eva")["link"].startswith("https://clearance.example.org/welcome/")
    named = desk.json("people", "link", "eva", "--url", "http://here:1")
    assert named["link"].startswith("http://here:1/welcome/")


def test_a_new_link_is_the_way_back_in_and_the_older_one_opens_nothing(desk: Desk) -> None:
    from clearance.errors import NotFoundError

    first = desk.json("people", "add", "eva")["link"]
    second = desk.json("people", "link", "eva")["link"]
    with pytest.raises(NotFoundError, match="not good any more"):
        _accept(desk, first)
    assert _accept(desk, second) == "eva"


def test_people_are_listed_by_role_and_group_with_agents_only_when_asked(desk: Desk) -> None:
    desk.json("people", "add", "eva", "--group", "finance", "--group", "board")
    desk.json("people", "add", "omar", "--role", "viewer", "--group", "finance")
    desk.json("keys", "add", "bot", "--agent")

    def ids(*words: str) -> list[str]:
        return [each["id"] for each in desk.json("people", "list", *words)["people"]]

    assert ids() == [PERSON, "eva", "omar"]
    assert ids("--agents") == [PERSON, "bot", "eva", "omar"]
    assert ids("--role", "viewer") == ["omar"]
    assert ids("--group", "finance") == ["eva", "omar"]
    assert ids("--group", "board", "--role", "reviewer") == ["eva"]
    text = desk.run("people", "list").stdout
    assert "eva  reviewer, groups board, finance" in text


def test_a_person_is_shown_with_what_they_can_come_in_by(desk: Desk) -> None:
    link = desk.json("people", "add", "eva")["link"]
    assert "cannot sign in yet" in desk.run("people", "show", "eva").stdout
    _accept(desk, link)
    desk.json("keys", "add", "laptop", "--person", "eva")
    shown = desk.json("people", "show", "eva")
    assert (shown["password"], shown["provider"], shown["sessions"], shown["keys"]) == (True, False, 1, 1)


def test_a_role_and_groups_are_changed_at_once(desk: Desk) -> None:
    desk.json("people", "add", "eva", "--group", "board")
    assert desk.json("people", "role", "eva", "operator")["role"] == "operator"
    assert desk.json("people", "groups", "eva", "finance", "finance", "audit")["groups"] == [
        "audit",
        "finance",
    ]
    assert _person(desk, "eva").groups == ("audit", "finance")
    assert desk.json("people", "groups", "eva")["groups"] == []
    assert _person(desk, "eva") == Person("eva", "eva", role=Role.OPERATOR)


def test_whoever_is_disabled_has_no_session_link_or_key_that_opens_anything(desk: Desk) -> None:
    from clearance.errors import NotFoundError

    _accept(desk, desk.json("people", "add", "eva")["link"])
    link = desk.json("people", "link", "eva")["link"]
    assert desk.json("people", "disable", "eva")["disabled"] is True
    assert desk.json("people", "show", "eva")["sessions"] == 0
    with pytest.raises(NotFoundError):
        _accept(desk, link)
    assert desk.json("people", "enable", "eva")["disabled"] is False
    with pytest.raises(NotFoundError):
        _accept(desk, link)
    with desk.open() as c:
        found = sign_in(c.database, "eva", PASSWORD, client=CLIENT, limits=c.session_limits)
    assert found.person.id == "eva"


@pytest.mark.parametrize(
    ("words", "code", "word", "part"),
    [
        (["add", PERSON], 5, "conflict", "is known here already"),
        (["add", "bot"], 5, "conflict", "is known here already"),
        (["add", "a/b"], 2, "invalid_input", "A name has"),
        (["add", "eva", "--name", " "], 2, "invalid_input", "A person's name has"),
        (["add", "eva", "--group", ""], 2, "invalid_input", "A name has"),
        (["add", "eva", "--role", "king"], 2, "usage", "king"),
        (["show", "nobody"], 4, "not_found", "Nobody here is called nobody"),
        (["link", "nobody"], 4, "not_found", "Nobody here is called nobody"),
        (["link", "gone"], 5, "conflict", "clearance people enable gone"),
        (["link", "bot"], 5, "conflict", "is an agent"),
        (["disable", "nobody"], 4, "not_found", "Nobody"),
        (["disable", "bot"], 5, "conflict", "is an agent"),
        (["disable", "gone"], 5, "conflict", "disabled already"),
        (["enable", PERSON], 5, "conflict", "is not disabled"),
        (["disable", PERSON], 5, "conflict", "only admin"),
        (["role", PERSON, "operator"], 5, "conflict", "only admin"),
        (["role", "bot", "admin"], 5, "conflict", "is an agent"),
        (["groups", "bot", "x"], 5, "conflict", "is an agent"),
        (["groups", "gone", "a/b"], 2, "invalid_input", "A name has"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    desk: Desk, words: list[str], code: int, word: str, part: str
) -> None:
    desk.add(Person("gone", "gone", role=Role.ADMIN, disabled=True))
    desk.json("keys", "add", "bot", "--agent")
    before = desk.json("people", "list", "--agents")
    done = desk.run("people", *words, "--json")
    assert (done.exit_code, error(done)["error"]) == (code, word)
    assert part in error(done)["message"]
    assert desk.json("people", "list", "--agents") == before


@pytest.mark.parametrize(
    "words",
    [
        ["add", "new"],
        ["role", PERSON, "viewer"],
        ["role", "eva", "admin"],
        ["groups", "eva", "finance"],
        ["disable", PERSON],
        ["enable", "eva"],
        ["link", PERSON],
    ],
    ids=" ".join,
)
def test_nobody_changes_people_but_an_admin(desk: Desk, words: list[str]) -> None:
    desk.add(Person("eva", "eva", role=Role.OPERATOR))
    done = desk.run("people", *words, "--json", person="eva")
    assert (done.exit_code, error(done)["error"]) == (6, "forbidden")
    assert desk.run("people", "link", "eva", person="eva").exit_code == 0


def test_an_admin_who_is_disabled_changes_nobody(desk: Desk) -> None:
    desk.add(Person("old", "old", role=Role.ADMIN, disabled=True))
    assert desk.run("people", "enable", "old", person="old").exit_code == 6


def test_the_setting_separates_one_person_from_their_own_requests(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARANCE_PEOPLE_MODE", "separate")
    assert desk.json("people", "list")["mode"] == "separate"
    monkeypatch.delenv("CLEARANCE_PEOPLE_MODE")
    assert desk.json("people", "list")["mode"] == "separate"
    review = desk.hold(("pay", "{}"))
    refused = desk.run("approve", review.id, "--json")
    assert "nobody decides their own request" in json.loads(refused.stderr)["message"]
    monkeypatch.setenv("CLEARANCE_PEOPLE_MODE", "single-user")
    assert desk.json("people", "list")["mode"] == "single-user"
    monkeypatch.delenv("CLEARANCE_PEOPLE_MODE")
    desk.json("people", "add", "eva")
    monkeypatch.setenv("CLEARANCE_PEOPLE_MODE", "single-user")
    refused = desk.run("people", "list", "--json")
    assert (refused.exit_code, "2 people are known here" in refused.stderr) == (12, True)
