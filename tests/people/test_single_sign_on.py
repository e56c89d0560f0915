"""Single sign-on in the store: whom a subject of a provider is here, also when they come twice at once."""

from typing import Any

import pytest

from clearance.audit import AuditKind
from clearance.errors import ConflictError, ForbiddenError
from clearance.identity import IdentityProvider, Told
from clearance.membership import add_person, disable, join
from clearance.people import FRESH, Person, Role, SessionLimits
from clearance.signing_in import Client, SignedIn
from clearance.single_sign_on import admit
from clearance.store import identities, people
from clearance.workspace import Clearance
from tests.people.conftest import OWNER
from tests.people.together import together

HERE = Client("127.0.0.1", "a test")
PROVIDER = IdentityProvider("https://login.example.org", "clearance", roles={"ops": Role.OPERATOR})


def _admit(workspace: Clearance, told: Told, *, fresh: bool = False, **changed: Any) -> SignedIn:
    provider = changed.get("provider", PROVIDER)
    return admit(workspace.database, provider, told, client=HERE, limits=SessionLimits(), fresh=fresh)


def _told(subject: str = "u-1", *, id: str = "eva", role: Role | None = Role.OPERATOR, **more: Any) -> Told:
    return Told(subject, id, more.get("name", "Eva"), role, more.get("groups", ()))


def _person(workspace: Clearance, id: str) -> Person:
    with workspace.database.read() as tx:
        return people.person(tx, id)


def test_a_subject_is_one_person_whatever_else_changes(workspace: Clearance) -> None:
    first = _admit(workspace, _told(groups=("a", "b")))
    again = _admit(workspace, _told(id="maria", role=Role.REVIEWER, groups=("b",)))
    assert (first.person.id, again.person.id) == ("eva", "eva")
    eva = _person(workspace, "eva")
    assert (eva.name, eva.role, eva.groups) == ("Eva", Role.REVIEWER, ("b",))


def test_the_same_subject_of_another_provider_is_somebody_else(workspace: Clearance) -> None:
    other = IdentityProvider("https://other.example.org", "clearance")
    assert _admit(workspace, _told()).person.id == "eva"
    assert _admit(workspace, _told(), provider=other).person.id == "eva-2"


def test_two_first_sign_ins_at_once_make_one_person(workspace: Clearance) -> None:
    done = together(*[lambda: _admit(workspace, _told())] * 4)
    assert {each.person.id for each in done if isinstance(each, SignedIn)} == {"eva"}
    assert all(isinstance(each, SignedIn | ConflictError) for each in done)
    with workspace.database.read() as tx:
        assert [each.id for each in people.persons(tx)] == [OWNER, "eva"]
        assert identities.those_with(tx) == {"eva"}


def test_only_a_sign_in_of_just_now_is_fresh(workspace: Clearance) -> None:
    old, new = (_admit(workspace, _told(), fresh=fresh).session for fresh in (False, True))
    assert (old.created_at - old.fresh_at, new.created_at - new.fresh_at) == (FRESH, FRESH - FRESH)


def test_an_id_that_an_agent_has_is_nobodys(workspace: Clearance) -> None:
    from clearance.keyring import add_agent

    add_agent(workspace.database, "eva", behind=OWNER, by=OWNER)
    assert _admit(workspace, _told()).person.id == "eva-2"


def test_nobody_there_becomes_what_the_product_itself_is_called_in_the_trail(workspace: Clearance) -> None:
    assert _admit(workspace, _told(id="Clearance")).person.id == "Clearance-2"


def test_who_has_a_local_account_gets_no_second_one(workspace: Clearance) -> None:
    add_person(workspace.database, "eva", name=None, role=Role.REVIEWER, groups=(), by=OWNER)
    with pytest.raises(ForbiddenError, match="clearance people join eva --subject u-1"):
        _admit(workspace, _told())
    join(workspace.database, "eva", issuer=PROVIDER.issuer, subject="u-1", by=OWNER)
    assert _admit(workspace, _told()).person.id == "eva"
    assert _admit(workspace, _told("u-2")).person.id == "eva-2"


@pytest.mark.parametrize("role", [None, Role.VIEWER])
def test_whoever_has_no_role_any_more_is_a_viewer_without_sessions(
    workspace: Clearance, role: Role | None
) -> None:
    _admit(workspace, _told(groups=("a",)))
    if role is None:
        with pytest.raises(ForbiddenError, match="no role here"):
            _admit(workspace, _told(role=None))
    else:
        _admit(workspace, _told(role=role))
    eva = _person(workspace, "eva")
    assert (eva.role, eva.groups) == (Role.VIEWER, ())
    with workspace.database.read() as tx:
        from clearance.store import sessions

        now = workspace.database.now(tx)
        left = sessions.open_of(tx, "eva", now=now, idle=SessionLimits().idle)
    assert len(left) == (0 if role is None else 2)


def test_whoever_is_disabled_stays_so(workspace: Clearance) -> None:
    _admit(workspace, _told())
    disable(workspace.database, "eva", by=OWNER)
    with pytest.raises(ForbiddenError, match="disabled here"):
        _admit(workspace, _told(role=Role.ADMIN))
    eva = _person(workspace, "eva")
    assert (eva.disabled, eva.role) == (True, Role.OPERATOR)


def test_the_only_admin_is_not_made_less(workspace: Clearance) -> None:
    _admit(workspace, _told(role=Role.ADMIN))
    disable(workspace.database, OWNER, by="eva")
    _admit(workspace, _told(role=Role.VIEWER))
    assert _person(workspace, "eva").role is Role.ADMIN


def test_what_changes_by_a_sign_in_stands_in_the_trail(workspace: Clearance) -> None:
    from sqlalchemy import select

    from clearance.store.tables import entries

    _admit(workspace, _told())
    _admit(workspace, _told())
    _admit(workspace, _told(role=Role.REVIEWER, groups=("a",)))
    wanted = (AuditKind.PERSON_ROLE_CHANGED, AuditKind.PERSON_GROUPS_CHANGED)
    with workspace.database.read() as tx:
        query = select(entries.c.actor, entries.c.subject, entries.c.facts)
        found = [
            tuple(row) for row in tx.execute(query.where(entries.c.kind.in_(wanted)).order_by(entries.c.id))
        ]
    assert found == [
        ("clearance", "eva", {"role": "reviewer", "before": "operator", "how": "provider"}),
        ("clearance", "eva", {"groups": ["a"], "before": [], "how": "provider"}),
    ]
