"""Links in messages: one person's way to one version of one review, once, and for a while.

A token is the link's id and a signature over everything that the link is bound to. The signature's key is in
no database: whoever writes there can neither make a link nor bind one to somebody else.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from itsdangerous import Signer

from clearance.audit import time_text
from clearance.deadline import earliest, is_over
from clearance.policy import DecisionType, Risk
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.toolcall import canonical

LASTS = timedelta(hours=24)
RISKS = (Risk.LOW, Risk.MEDIUM)
"""The risks at which a link may decide; at others it leads to the page behind the login."""
ANSWERS = (DecisionType.APPROVE, DecisionType.REJECT)
_TOKEN = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{43})")


class Standing(StrEnum):
    """How a link stands to its review."""

    GOOD = "good"
    USED = "used"
    EXPIRED = "expired"
    CHANGED = "changed"
    CLOSED = "closed"
    SHUT = "shut"
    BARRED = "barred"


@dataclass(frozen=True)
class Link:
    """What a link is bound to. `digest` is one over the fingerprints of the review's calls.

    `channel` is what the link came by; None for one that was sent before that was kept.
    """

    id: str
    review_id: str
    version: int
    digest: str
    person: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    channel: str | None = None


def new_link(review: Review, *, person: str, channel: str, id: str, now: datetime) -> Link | None:
    """Return a link to a review as it is now; None where no link may decide it. `id`: 32 hex digits."""
    if review.status is not ReviewStatus.PENDING or not may_link(review):
        return None
    until = earliest(review.deadline, now + LASTS) or now + LASTS
    return Link(
        id,
        review.id,
        review.version,
        digest(review),
        person,
        created_at=now,
        expires_at=until,
        channel=channel,
    )


def may_link(review: Review) -> bool:
    """Whether a link may decide the review: low or medium risk, and no question what became of a call."""
    return review.risk in RISKS and review.kind is not ReviewKind.OUTCOME and bool(answers(review))


def answers(review: Review) -> tuple[DecisionType, ...]:
    """Return what a link may answer: what every call that waits allows."""
    waiting = review.waiting
    return tuple(item for item in ANSWERS if waiting and all(item in c.verdict.decisions for c in waiting))


def digest(review: Review) -> str:
    """Return one digest over what the review asks about."""
    calls = [[call.key, call.fingerprint, call.revision] for call in review.calls]
    return hashlib.sha256(canonical(calls).encode()).hexdigest()


def token(link: Link, key: bytes) -> str:
    """Return the secret that stands in the message."""
    return f"{link.id}.{_signer(key).get_signature(_bound(link)).decode()}"


def link_id(text: str) -> str | None:
    """Return which link a token names; None for what has not the form of one."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else found[1]


def is_signed(text: str, link: Link, key: bytes) -> bool:
    """Whether the token is that of this link, bound as it is."""
    found = _TOKEN.fullmatch(text)
    return (
        found is not None
        and found[1] == link.id
        and _signer(key).verify_signature(_bound(link), found[2].encode())
    )


def standing(link: Link, review: Review, *, now: datetime, in_use: bool) -> Standing:
    """Return how a link stands to its review at this instant. `in_use`: whether its channel is still used."""
    if link.used_at is not None:
        return Standing.USED
    if review.status is not ReviewStatus.PENDING:
        return Standing.CLOSED
    if is_over(link.expires_at, now=now):
        return Standing.EXPIRED
    if link.channel is None or not may_link(review):
        return Standing.BARRED
    if not in_use:
        return Standing.SHUT
    if review.version != link.version or digest(review) != link.digest:
        return Standing.CHANGED
    return Standing.GOOD


def _signer(key: bytes) -> Signer:
    return Signer(key, salt=b"clearance.links", key_derivation="hmac", digest_method=hashlib.sha256)


def _bound(link: Link) -> bytes:
    times = [time_text(link.created_at), time_text(link.expires_at)]
    bound = [link.id, link.review_id, link.version, link.digest, link.person, times]
    return canonical(bound if link.channel is None else [*bound, link.channel]).encode()
