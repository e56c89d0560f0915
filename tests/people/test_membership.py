"""Who belongs to a workspace: added, changed, disabled, and what that ends; the same on both databases."""

from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

import clearance
from clearance.credential import digest_of
from clearance.errors import ConflictError, InvalidInputError
from clearance.keyring import add_agent, add_key, new_credential
from clearance.membership import add_person, disable, enable, invite, set_groups, set_mode, set_role
from clearance.people import Kind, Mode, Person, Role
from clearance.signing_in import Client, accept
from clearance.store import identities, invitations, people, sessions
from clearance.store.tables import entries
from clearance.workspace import Clearance
from tests.people.conftest import OWNER
from tests.people.together import together

PASSWORD = "four words in a row"
CLIENT = Client("127.0.0.1", "a test")


def _add(workspace: Clearance, name: str, *, role: Role = Role.REVIEWER) -> str:
    return add_person(workspace.database, name, name=None, role=role, groups=(), by=OWNER)[1].token


def _facts(workspace: Clearance, kind: str) -> list[tuple[str, str, dict[str, object]]]:
    query = select(entries).where(entries.c.kind == kind).order_by(entries.c.time, entries.c.id)
    with workspace.database.read() as tx:
        return [(row.subject, row.actor, row.facts) for row in tx.execute(query)]


@pytest.mark.parametrize("id", ["clearance", "Clearance"])
def test_nobody_is_called_as_the_product_is_in_the_trail(workspace: Clearance, id: str) -> None:
    with pytest.raises(InvalidInputError, match="is the product itself"):
        _add(workspace, id)
    with pytest.raises(InvalidInputError, match="is the product itself"):
        add_agent(workspace.database, id, behind=OWNER, by=OWNER)
    with pytest.raises(InvalidInputError, match="is the product itself"):
        clearance.open(
            f"sqlite:///{workspace.home / 'another.db'}", home=workspace.home / "another", person=id
        )


@pytest.mark.parametrize(
    ("user", "person"),
    [("clearance", "local"), ("Clearance", "local"), ("CLEARANCE", "local"), ("clearances", "clearances")],
)
def test_an_account_of_the_machine_that_is_called_as_the_product_is_the_person_local(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, person: str
) -> None:
    monkeypatch.setenv("LOGNAME", user)
    monkeypatch.delenv("CLEARANCE_PERSON", raising=False)
    with clearance.open(migrated_database_url, home=tmp_path, worker=False) as found:
        assert found.person == person
        assert _facts(found, "person:added") == [(person, person, {"role": "admin"})]
        with found.database.read() as tx:
            assert [each.id for each in people.persons(tx)] == [person]


def test_every_change_is_in_the_trail_with_who_made_it(workspace: Clearance) -> None:
    database = workspace.database
    _add(workspace, "eva")
    set_role(database, "eva", Role.ADMIN, by=OWNER)
    set_groups(database, "eva", ["finance", "board"], by="eva")
    disable(database, "eva", by=OWNER)
    enable(database, "eva", by=OWNER)
    assert _facts(workspace, "person:added")[-1] == ("eva", OWNER, {"role": "reviewer", "groups": []})
    assert _facts(workspace, "person:role-changed") == [
        ("eva", OWNER, {"role": "admin", "before": "reviewer"})
    ]
    assert _facts(workspace, "person:groups-changed") == [
        ("eva", "eva", {"groups": ["board", "finance"], "before": []})
    ]
    assert _facts(workspace, "person:disabled") == [("eva", OWNER, {})]
    assert _facts(workspace, "person:enabled") == [("eva", OWNER, {})]


def test_what_is_so_already_is_no_change(workspace: Clearance) -> None:
    _add(workspace, "eva")
    set_role(workspace.database, "eva", Role.REVIEWER, by=OWNER)
    set_groups(workspace.database, "eva", [], by=OWNER)
    assert _facts(workspace, "person:role-changed") == []
    assert _facts(workspace, "person:groups-changed") == []


def test_disabling_ends_sessions_links_and_keys(workspace: Clearance) -> None:
    database = workspace.database
    found = accept(database, _add(workspace, "eva"), PASSWORD, client=CLIENT, limits=workspace.session_limits)
    link, made = invite(database, "eva", by=OWNER), new_credential()
    add_key(database, "laptop", person="eva", by=OWNER, made=made)
    disable(database, "eva", by=OWNER)
    with database.read() as tx:
        now, idle = database.now(tx), workspace.session_limits.idle
        assert sessions.opened_by(tx, digest_of(found.token), now=now, idle=idle) is None
        assert sessions.open_of(tx, "eva", now=now, idle=idle) == []
        assert invitations.opened_by(tx, digest_of(link.token), now=now) is None
    assert _facts(workspace, "session:revoked") == [
        (found.session.id, OWNER, {"person": "eva", "reason": "the person was disabled"})
    ]


def test_two_admins_who_disable_each_other_at_once_leave_one(workspace: Clearance) -> None:
    for _ in range(5):
        with workspace.database.write() as tx:
            for name in (OWNER, "eva"):
                admin = Person(name, name, role=Role.ADMIN)
                if not people.add(tx, admin, now=workspace.database.now(tx)):
                    people.change(tx, admin)
        done = together(
            partial(disable, workspace.database, "eva", by=OWNER),
            partial(disable, workspace.database, OWNER, by="eva"),
        )
        assert sum(isinstance(each, Person) for each in done) == 1
        with workspace.database.read() as tx:
            assert len(people.listed(tx, role=Role.ADMIN, disabled=False)) == 1


def test_the_last_admin_keeps_the_role_although_agents_and_disabled_people_have_it(
    workspace: Clearance,
) -> None:
    with workspace.database.write() as tx:
        now = workspace.database.now(tx)
        people.add(tx, Person("bot", "bot", role=Role.ADMIN, kind=Kind.AGENT, behind=OWNER), now=now)
        people.add(tx, Person("old", "old", role=Role.ADMIN, disabled=True), now=now)
    with pytest.raises(ConflictError, match="only admin"):
        disable(workspace.database, OWNER, by=OWNER)
    with pytest.raises(ConflictError, match="only admin"):
        set_role(workspace.database, OWNER, Role.VIEWER, by=OWNER)
    _add(workspace, "eva", role=Role.ADMIN)
    assert set_role(workspace.database, OWNER, Role.VIEWER, by=OWNER).role is Role.VIEWER


def test_one_link_that_many_use_at_once_sets_one_password(workspace: Clearance) -> None:
    token = _add(workspace, "eva")
    done = together(
        *(
            partial(
                accept,
                workspace.database,
                token,
                f"{PASSWORD} {number}",
                client=CLIENT,
                limits=workspace.session_limits,
            )
            for number in range(4)
        )
    )
    assert sum(not isinstance(each, Exception) for each in done) == 1
    assert len(_facts(workspace, "person:password-set")) == 1
    assert len(_facts(workspace, "person:signed-in")) == 1


def test_an_agent_makes_no_workspace_separate_and_a_second_person_does(workspace: Clearance) -> None:
    database = workspace.database
    add_agent(database, "bot", behind=OWNER, by=OWNER)
    with database.read() as tx:
        assert people.mode(tx) is Mode.SINGLE_USER
    _add(workspace, "eva")
    disable(database, "eva", by=OWNER)
    with database.read() as tx:
        assert people.mode(tx) is Mode.SEPARATE


def test_the_mode_that_is_set_stays_and_is_in_the_trail_once(workspace: Clearance) -> None:
    for mode in (Mode.SINGLE_USER, Mode.SEPARATE, Mode.SEPARATE, Mode.SINGLE_USER):
        set_mode(workspace.database, mode, by=OWNER)
        with workspace.database.read() as tx:
            assert people.mode(tx) is mode
    told = [facts["mode"] for _, _, facts in _facts(workspace, "workspace:mode-changed")]
    assert told == ["separate", "single-user"]


def test_an_identity_is_one_persons(workspace: Clearance) -> None:
    _add(workspace, "eva")
    with workspace.database.write() as tx:
        now = workspace.database.now(tx)
        assert identities.add(tx, "eva", issuer="https://id.example", subject="17", now=now)
        assert not identities.add(tx, OWNER, issuer="https://id.example", subject="17", now=now)
        assert identities.add(tx, OWNER, issuer="https://other.example", subject="17", now=now)
    with workspace.database.read() as tx:
        found = identities.known_as(tx, issuer="https://id.example", subject="17")
        assert found is not None
        assert found.id == "eva"
        assert identities.known_as(tx, issuer="https://id.example", subject="18") is None
        assert identities.those_with(tx) == {"eva", OWNER}
