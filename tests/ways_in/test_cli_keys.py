"""The commands on keys: made once, listed without what they open with, revoked for good."""

import pytest

from clearance.credential import read_credential
from clearance.people import Person, Role
from clearance.store import keys
from tests.ways_in.desk import PERSON, Desk, error


def _opens(desk: Desk, text: str) -> str | None:
    """Return whom a key lets in."""
    shown = read_credential(text)
    assert shown is not None
    with desk.open() as c, c.database.read() as tx:
        found = keys.opened_by(tx, shown.id, digest=shown.digest)
    return None if found is None else found[1].id


@pytest.fixture(autouse=True)
def _made(desk: Desk) -> None:
    desk.open().close()


def test_the_key_of_a_person_is_printed_alone_and_opens(desk: Desk) -> None:
    done = desk.run("keys", "add", "laptop", "--person", PERSON)
    assert done.exit_code == 0, done.output
    assert _opens(desk, done.stdout.strip()) == PERSON
    assert "shown once" in done.stderr


def test_the_key_of_an_agent_makes_it_known_behind_who_made_it(desk: Desk) -> None:
    made = desk.json("keys", "add", "bot", "--agent")
    assert (made["name"], made["person"]) == ("bot", "bot")
    assert _opens(desk, made["key"]) == "bot"
    with desk.open() as c, c.database.read() as tx:
        from clearance.store import people

        assert people.person(tx, "bot").behind == PERSON


def test_an_agent_may_act_for_somebody_else(desk: Desk) -> None:
    desk.add(Person("eva", "eva", role=Role.REVIEWER))
    desk.json("keys", "add", "bot", "--agent", "--behind", "eva")
    with desk.open() as c, c.database.read() as tx:
        from clearance.store import people

        assert people.person(tx, "bot").behind == "eva"


def test_the_list_holds_no_secret_and_revoked_keys_too(desk: Desk) -> None:
    made = desk.json("keys", "add", "laptop", "--person", PERSON)
    desk.json("keys", "add", "bot", "--agent")
    assert desk.json("keys", "revoke", "laptop")["revoked"] == made["id"]
    listed = desk.json("keys", "list")["keys"]
    assert listed[0]["id"] == made["id"]
    assert [each["revoked_at"] is None for each in listed] == [False, True]
    text = desk.run("keys", "list").stdout
    assert made["key"] not in f"{text}{listed}"
    assert _opens(desk, made["key"]) is None


def test_a_revoked_name_can_be_used_again_and_an_id_names_a_key_as_well(desk: Desk) -> None:
    first = desk.json("keys", "add", "laptop", "--person", PERSON)
    desk.json("keys", "revoke", first["id"])
    second = desk.json("keys", "add", "laptop", "--person", PERSON)
    assert _opens(desk, second["key"]) == PERSON
    desk.json("keys", "revoke", "laptop")
    assert _opens(desk, second["key"]) is None


@pytest.mark.parametrize(
    ("words", "scopes", "said"),
    [
        ([], ["decide", "manage", "propose"], "propose, decide, manage"),
        (["--scope", "decide", "--scope", "propose"], ["decide", "propose"], "propose, decide"),
        (["--scope", "decide", "--scope", "decide"], ["decide"], "decide"),
        (["--read-only"], [], "read only"),
    ],
)
def test_a_key_goes_as_far_as_it_is_made_to_and_that_is_shown(
    desk: Desk, words: list[str], scopes: list[str], said: str
) -> None:
    assert desk.json("keys", "add", "laptop", "--person", PERSON, *words)["scopes"] == scopes
    assert [each["scopes"] for each in desk.json("keys", "list")["keys"]] == [scopes]
    assert f"of {PERSON}, {said}, made" in desk.run("keys", "list").stdout
    made = desk.run("keys", "add", "bot", "--agent", *words)
    assert f"The key of bot ({said})." in made.stderr


@pytest.mark.parametrize(
    ("words", "code", "word", "part"),
    [
        (["add", "k"], 2, "usage", "--agent, or --person"),
        (["add", "k", "--agent", "--person", PERSON], 2, "usage", "--agent, or --person"),
        (["add", "k", "--person", PERSON, "--behind", PERSON], 2, "usage", "belongs to --agent"),
        (["add", "k", "--agent", "--scope", "decide", "--read-only"], 2, "usage", "leave out --read-only"),
        (["add", "k", "--agent", "--scope", "all"], 2, "usage", "'propose', 'decide', 'manage'"),
        (["add", "k", "--person", "nobody"], 4, "not_found", f"people of this workspace: {PERSON}"),
        (
            ["add", "bot", "--agent", "--behind", "nobody"],
            4,
            "not_found",
            f"people of this workspace: {PERSON}",
        ),
        (["add", "", "--person", PERSON], 2, "invalid_input", "A name has"),
        (["add", "a/b", "--agent"], 2, "invalid_input", "A name has"),
        (["add", PERSON, "--agent"], 5, "conflict", "is not this agent"),
        (["revoke", "nothing"], 4, "not_found", "There is no key nothing"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_made(
    desk: Desk, words: list[str], code: int, word: str, part: str
) -> None:
    done = desk.run("keys", *words, "--json")
    assert (done.exit_code, error(done)["error"]) == (code, word)
    assert part in error(done)["message"]
    assert desk.json("keys", "list")["keys"] == []


def test_a_name_is_taken_until_it_is_revoked(desk: Desk) -> None:
    desk.json("keys", "add", "laptop", "--person", PERSON)
    done = desk.run("keys", "add", "laptop", "--person", PERSON, "--json")
    assert (done.exit_code, error(done)["error"]) == (5, "conflict")


def test_nobody_makes_keys_for_others_but_an_admin(desk: Desk) -> None:
    desk.add(Person("eva", "eva", role=Role.REVIEWER))
    done = desk.run("keys", "add", "k", "--person", PERSON, "--json", person="eva")
    assert (done.exit_code, error(done)["error"]) == (6, "forbidden")
    own = desk.run("keys", "add", "k", "--person", "eva", person="eva")
    assert own.exit_code == 0
    assert desk.run("keys", "revoke", "k", person="eva").exit_code == 0


def test_where_there_is_no_workspace_none_is_made(desk: Desk) -> None:
    elsewhere = Desk(desk.home / "elsewhere")
    assert elsewhere.run("keys", "add", "k", "--person", PERSON).exit_code == 4
    assert not elsewhere.home.exists()
