"""Credentials: the text of a key that a caller shows, and the digest that is kept of it."""

import hashlib
import re
from dataclasses import dataclass

PREFIX = "clr"
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})")


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
