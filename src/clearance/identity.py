"""Identity: what an identity provider says of somebody, and what that makes them here.

Who somebody is follows from the provider and its subject alone; names and addresses of mail are only shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clearance.people import Role

_ROLES = tuple(Role)
_MOST_OF_A_NAME = 100
_MOST_OF_AN_ID = 40
_NOBODY = "person"


@dataclass(frozen=True)
class IdentityProvider:
    """Where people sign in elsewhere, as this installation is told of it. `name` stands on the button.

    `roles` says which role a group there gives; the highest counts. `groups` says what a group is called
    here; empty: all keep their names. `otherwise` is the role of whom no group gives one; None: they stay
    out. With an empty `claim` the provider says nothing about groups, and both are given here.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    name: str = "single sign-on"
    scopes: str = "openid profile email"
    claim: str = "groups"
    roles: Mapping[str, Role] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    otherwise: Role | None = None


@dataclass(frozen=True)
class Told:
    """What a provider told of somebody. `role` is None where nothing lets them in."""

    subject: str
    id: str
    name: str
    role: Role | None
    groups: tuple[str, ...]


def read_claims(provider: IdentityProvider, claims: Mapping[str, Any]) -> Told:
    """Return what a token that holds says, by the settings. `sub` is a text in it; the rest may be anything.

    `id` is what they may be called here when nobody else is.
    """
    theirs = _texts(claims.get(provider.claim)) if provider.claim else ()
    given = [provider.roles[each] for each in theirs if each in provider.roles]
    here = (provider.groups.get(each, "") if provider.groups else each for each in theirs)
    wanted = _text(claims.get("preferred_username")) or _text(claims.get("email"))
    shown = _text(claims.get("name")) or wanted
    return Told(
        subject=claims["sub"],
        id=_id(wanted),
        name=shown[:_MOST_OF_A_NAME].strip() or _id(wanted),
        role=max(given, key=_ROLES.index, default=provider.otherwise),
        groups=tuple(sorted({each for each in here if is_name(each)})),
    )


def is_name(text: str) -> bool:
    """Whether a group may be called so here."""
    return (
        1 <= len(text) <= _MOST_OF_A_NAME and text.isprintable() and text.strip() == text and "/" not in text
    )


def pairs(text: str) -> dict[str, str]:
    """Read `GROUP=NAME, GROUP=NAME`. Raises `ValueError` with what is wrong."""
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        left, sign, right = (each.strip() for each in part.rpartition("="))
        if not (left and sign and right):
            raise ValueError("write GROUP=NAME, several with commas between")
        if found.setdefault(left, right) != right:
            raise ValueError(f"{left} is there twice")
    return found


def _id(text: str) -> str:
    """Return an id like what somebody is called there, in characters that everybody can tell apart."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", text.partition("@")[0].lower()).strip("-._")
    return plain[:_MOST_OF_AN_ID] or _NOBODY


def _text(value: object) -> str:
    return "".join(each for each in value if each.isprintable()).strip() if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
