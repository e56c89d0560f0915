"""Credentials: the text of a key that a caller shows, the digest that is kept of it, and how far it goes."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "clr"
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})")


class Scope(StrEnum):
    """One part of what the holder of a key may do, and do with that key. It adds nothing to their role.

    What the holder may see is read with every key.
    """

    PROPOSE = "propose"
    """Propose calls, take them and report on them; say something, start runs; take back one's own."""
    DECIDE = "decide"
    """Decide reviews, claim them, draft standing rules and approve of them."""
    MANAGE = "manage"
    """Whatever else changes something, such as channels, parked agents and the work of others."""


EVERY_SCOPE = frozenset(Scope)


def in_words(scopes: Collection[Scope]) -> str:
    """Return how far a key goes: `propose, decide`, or `read only`."""
    return ", ".join(each.value for each in Scope if each in scopes) or "read only"


@dataclass(frozen=True)
class Credential:
    """A key as it is shown once, when it is made. `id` may be shown again; `secret` is 32 random bytes."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        """What the caller shows: `clr_<id>_<secret>`; the prefix lets scanners find keys that leaked."""
        return f"{PREFIX}_{self.id}_{self.secret}"

    @property
    def digest(self) -> str:
        """What is kept. The secret is as long as a hash, so that a slow hash would protect nothing more."""
        return digest_of(self.text)

    def __repr__(self) -> str:
        return f"Credential({self.id!r})"


def read_credential(text: str) -> Credential | None:
    """Return the credential that a caller showed; None for what has not its form."""
    found = _FORM.fullmatch(text)
    return None if found is None else Credential(found[1], found[2])


def digest_of(secret: str) -> str:
    """Return what is kept of a secret of 32 random bytes: nobody gets from it to the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
