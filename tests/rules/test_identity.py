"""What a token's claims make of somebody: ids, names, roles and groups, also where they are odd."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.errors import InvalidInputError
from clearance.identity import IdentityProvider, pairs, read_claims
from clearance.keyring import check_name
from clearance.people import Role

PLAIN = IdentityProvider("https://login.example.org", "clearance")
MAPPED = IdentityProvider(
    "https://login.example.org",
    "clearance",
    roles={"ops": Role.OPERATOR, "all": Role.VIEWER, "=boss=": Role.ADMIN},
    groups={"Finance Team": "finance", "ops": "on-call"},
)


@pytest.mark.parametrize(
    ("claims", "id", "name"),
    [
        ({"preferred_username": "eva", "name": "Eva Mayer"}, "eva", "Eva Mayer"),
        ({"preferred_username": "Eva.Mayer@example.org"}, "eva.mayer", "Eva.Mayer@example.org"),
        ({"email": "eva@example.org", "name": " Eva "}, "eva", "Eva"),
        ({"preferred_username": "аdmin"}, "dmin", "аdmin"),
        ({"preferred_username": "../../x y"}, "x-y", "../../x y"),
        ({"preferred_username": "\u202eeva\n"}, "eva", "eva"),
        ({"preferred_username": "x" * 300}, "x" * 40, "x" * 100),
        ({"preferred_username": 7, "name": ["Eva"], "email": None}, "person", "person"),
        ({"name": "李雷"}, "person", "李雷"),
        ({}, "person", "person"),
    ],
)
def test_ids_are_plain_and_names_are_shown(claims: dict[str, Any], id: str, name: str) -> None:
    told = read_claims(PLAIN, {"sub": "u-1", **claims})
    assert (told.subject, told.id, told.name) == ("u-1", id, name)


@pytest.mark.parametrize(
    ("groups", "role", "here"),
    [
        (["ops"], Role.OPERATOR, ("on-call",)),
        (["all", "ops", "ops"], Role.OPERATOR, ("on-call",)),
        (["Finance Team", "other"], None, ("finance",)),
        ("=boss=", Role.ADMIN, ()),
        (["OPS"], None, ()),
        ([7, None, ["ops"]], None, ()),
        ({"ops": True}, None, ()),
        (None, None, ()),
    ],
)
def test_groups_there_give_the_highest_role_and_the_groups_that_are_mapped(
    groups: object, role: Role | None, here: tuple[str, ...]
) -> None:
    told = read_claims(MAPPED, {"sub": "u-1", "groups": groups})
    assert (told.role, told.groups) == (role, here)


@given(st.dictionaries(st.text(max_size=20), st.none() | st.text() | st.lists(st.text()) | st.integers()))
def test_whatever_a_token_says_can_be_kept(claims: dict[str, Any]) -> None:
    told = read_claims(PLAIN, {**claims, "sub": "u-1"})
    for each in (told.id, *told.groups):
        try:
            check_name(each)
        except InvalidInputError:
            pytest.fail(f"{each!r} is no name")
    assert told.name
    assert told.name.isprintable()
    assert told.role is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        (" , ", {}),
        ("a=b", {"a": "b"}),
        ("cn=ops,a=b , c d = e", {"cn": "ops", "a": "b", "c d": "e"}),
        ("a=b=c", {"a=b": "c"}),
        ("a=b, a=b", {"a": "b"}),
    ],
)
def test_pairs_are_read(text: str, found: dict[str, str]) -> None:
    assert pairs(text) == found
