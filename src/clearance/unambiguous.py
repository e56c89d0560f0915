"""Values that can be read in one way only: what conditions take for an address, a domain, a path, an amount.

Each function returns the value in its one form, or raises `AmbiguousError`, which never shows the value.
"""

import math
import re
import unicodedata

_LOCAL = re.compile(r"[A-Za-z0-9_+'=-]+(?:\.[A-Za-z0-9_+'=-]+)*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LARGEST = 2**53


class AmbiguousError(ValueError):
    """The value could be read as more than one thing, or as none."""


def address(value: object) -> str:
    """Return one plain mail address in lower case: no list, no display name, no quotes, no routing, ASCII."""
    local, at, rest = _text(value).partition("@")
    if not at or not _LOCAL.fullmatch(local) or len(local) > 64:
        raise AmbiguousError("address() takes one plain mail address")
    return f"{local.lower()}@{_host(rest, said='address() takes one plain mail address')}"


def domain(value: object) -> str:
    """Return the domain of a mail address, or a bare domain, in lower case.

    International names are refused, also as `xn--`: people read them as others.
    """
    text = _text(value)
    if "@" in text:
        return address(text).partition("@")[2]
    return _host(text, said="domain() takes a mail address or a domain name in plain ASCII")


def path(value: object) -> str:
    """Return a path that leads where it says: `/` only, no `.` or `..`, nothing hidden, nothing encoded."""
    text = _text(value)
    steps = text.removeprefix("/").removesuffix("/").split("/")
    hidden = any(not char.isprintable() for char in text) or unicodedata.normalize("NFKC", text) != text
    if hidden or not text or any(char in "\\%:~*?$" for char in text):
        raise AmbiguousError("path() takes a plain path with / between its names")
    if text != "/" and any(step.strip() in ("", ".", "..") for step in steps):
        raise AmbiguousError("path() takes no path with empty, . or .. steps")
    return text


def money(value: object) -> float:
    """Return an amount: a number, no text and no bool, finite, not negative, below 2^53."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AmbiguousError("money() takes a number")
    if not math.isfinite(value) or not 0 <= value < _LARGEST:
        raise AmbiguousError("money() takes an amount from 0 to below 2^53")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise AmbiguousError("a text was expected")
    return value


def _host(text: str, *, said: str) -> str:
    labels = text.lower().split(".")
    plain = text.isascii() and len(text) <= 253 and len(labels) > 1
    if not plain or not all(_LABEL.fullmatch(label) for label in labels) or labels[-1].isdigit():
        raise AmbiguousError(said)
    if any(label.startswith("xn--") for label in labels):
        raise AmbiguousError(said)
    return text.lower()
