"""One response as the rest of the pipeline sees it, and what names the request that it answers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from clearance.toolcall import canonical

SECRET_PARAMETERS = frozenset({"api_key", "email", "tool"})
"""Parameters that say who asks, not what for: in no key, no record and no message."""


class Origin(StrEnum):
    """Where a response came from. `STALE` is a copy that its source could not confirm."""

    LIVE = "live"
    CACHED = "cached"
    STALE = "stale"
    REPLAYED = "replayed"


class Body(StrEnum):
    """What a body must be to count as whole; anything else was cut off on the way."""

    JSON = "json"
    XML = "xml"
    FASTA = "fasta"


@dataclass(frozen=True)
class Fetched:
    """The answer to one GET: its bytes as they came, their sha256 (hex), when and from where."""

    url: str
    status: int
    body: bytes
    retrieved_at: datetime
    origin: Origin
    etag: str | None = None
    stale: bool = False

    @property
    def sha256(self) -> str:
        """The sha256 of the body, in hexadecimal."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode("utf-8", errors="replace")

    def json(self) -> Any:
        """The body's JSON value, with its numbers with a fraction as text, exactly as they came."""
        return json.loads(self.body, parse_float=str)


def request_key(url: str, params: Mapping[str, str]) -> str:
    """Return the name of a request: the sha256 of its URL and parameters, without those that say who asks."""
    return hashlib.sha256(canonical({"url": url, "params": public(params)}).encode()).hexdigest()


def public(params: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that may be kept and shown."""
    return {name: value for name, value in params.items() if name not in SECRET_PARAMETERS}


def is_whole(body: bytes, expected: Body) -> bool:
    """Return whether a body can be read to its end as what was asked for."""
    match expected:
        case Body.JSON:
            try:
                json.loads(body)
            except ValueError:
                return False
            return True
        case Body.XML:
            from xml.parsers import expat

            try:
                expat.ParserCreate().Parse(body, True)
            except expat.ExpatError:
                return False
            return True
        case Body.FASTA:
            return body.startswith(b">") and b"\n" in body.strip()
