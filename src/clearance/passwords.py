"""Passwords: what may be one, and the slow hashing that makes a stolen copy of the database of little use."""

import threading
from functools import cache
from typing import TYPE_CHECKING

from clearance.errors import InvalidInputError

if TYPE_CHECKING:
    from pwdlib import PasswordHash

MIN_LENGTH, MAX_LENGTH = 12, 1024
# Each hash takes 64 MiB for its while: many at once would be a way to fill the memory from outside.
_AT_ONCE = threading.BoundedSemaphore(4)


def check_password(password: str) -> None:
    """Raise `InvalidInputError` for what cannot be a password: only its length matters."""
    if len(password) < MIN_LENGTH:
        raise InvalidInputError(
            f"A password has at least {MIN_LENGTH} characters; this one has {len(password)}. "
            "Several words in a row are easy to remember."
        )
    if len(password) > MAX_LENGTH:
        raise InvalidInputError(f"A password has at most {MAX_LENGTH} characters.")


def hashed(password: str) -> str:
    """Return what is kept of a password."""
    with _AT_ONCE:
        return _hasher().hash(password)


def is_right(password: str, hash: str | None) -> bool:
    """Whether this is the password of a hash. Without a hash it is not, which takes as long to tell."""
    with _AT_ONCE:
        right = len(password) <= MAX_LENGTH and _hasher().verify(password, hash or _nobodys())
    return right and hash is not None


@cache
def _hasher() -> "PasswordHash":
    from pwdlib import PasswordHash

    return PasswordHash.recommended()


@cache
def _nobodys() -> str:
    return _hasher().hash("the password of nobody")
