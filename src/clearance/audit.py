"""The trail's two kinds of record: entries, one for each state change, and seals, signed over ranges of them.

An entry is hashed when it is written, numbered after its transaction has committed, and sealed soon after:
a seal signs which numbers it covers, the hashes of those entries in their order, and the seal before it.
`docs/audit.md` has the formats and a test vector for other languages; `proof.py` checks a whole trail.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from clearance.errors import InvalidInputError
from clearance.toolcall import canonical

# What the first seal names as the one before it.
NO_SEAL = "0" * 64

Sign = Callable[[bytes], bytes]


class AuditKind(StrEnum):
    """What an entry says happened: the subject's sort and a past tense. A kind is never renamed."""

    RUN_QUEUED = "run:queued"
    RUN_RESUMED = "run:resumed"
    RUN_WAITING = "run:waiting"
    RUN_DONE = "run:done"
    RUN_FAILED = "run:failed"
    RUN_CANCELLED = "run:cancelled"
    REVIEW_ASKED = "review:asked"
    REVIEW_CLAIMED = "review:claimed"
    REVIEW_RELEASED = "review:released"
    REVIEW_REMINDED = "review:reminded"
    REVIEW_ESCALATED = "review:escalated"
    REVIEW_DECIDED = "review:decided"
    REVIEW_SETTLED = "review:settled"
    REVIEW_EXPIRED = "review:expired"
    REVIEW_WITHDRAWN = "review:withdrawn"
    REVIEW_INVALIDATED = "review:invalidated"
    CLEARANCE_MINTED = "clearance:minted"
    CLEARANCE_USED = "clearance:used"
    CLEARANCE_VOIDED = "clearance:voided"
    CALL_HELD = "call:held"
    CALL_STARTED = "call:started"
    CALL_EXECUTED = "call:executed"
    CALL_FAILED = "call:failed"
    CALL_REJECTED = "call:rejected"
    CALL_RESPONDED = "call:responded"
    CALL_BLOCKED = "call:blocked"
    CALL_UNCERTAIN = "call:uncertain"
    CALL_LATE = "call:late"
    POLICY_ACTIVATED = "policy:activated"
    STANDING_RULE_DRAFTED = "standing-rule:drafted"
    STANDING_RULE_APPROVED = "standing-rule:approved"
    STANDING_RULE_ACTIVATED = "standing-rule:activated"
    STANDING_RULE_USED = "standing-rule:used"
    STANDING_RULE_REVOKED = "standing-rule:revoked"
    STANDING_RULE_EXPIRED = "standing-rule:expired"
    AGENT_PARKED = "agent:parked"
    AGENT_RESUMED = "agent:resumed"
    PERSON_ADDED = "person:added"
    PERSON_DISABLED = "person:disabled"
    PERSON_ENABLED = "person:enabled"
    PERSON_ROLE_CHANGED = "person:role-changed"
    PERSON_GROUPS_CHANGED = "person:groups-changed"
    PERSON_INVITED = "person:invited"
    PERSON_JOINED = "person:joined"
    PERSON_PASSWORD_SET = "person:password-set"
    PERSON_SIGNED_IN = "person:signed-in"
    PERSON_SIGNED_OUT = "person:signed-out"
    PERSON_SIGN_IN_FAILED = "person:sign-in-failed"
    SESSION_REVOKED = "session:revoked"
    WORKSPACE_MODE_CHANGED = "workspace:mode-changed"
    KEY_ADDED = "key:added"
    KEY_REVOKED = "key:revoked"
    CHANNEL_ADDED = "channel:added"
    CHANNEL_ENABLED = "channel:enabled"
    CHANNEL_DISABLED = "channel:disabled"
    CHANNEL_REMOVED = "channel:removed"
    NOTICE_UNDELIVERED = "notice:undelivered"
    THREAD_REDACTED = "thread:redacted"
    WORKSPACE_RESTORED = "workspace:restored"


@dataclass(frozen=True)
class Entry:
    """One thing that happened. `seq` is its number in the trail, None until the notary has given it one.

    `kind` is an `AuditKind`, or a word that a newer version wrote. `facts` is what JSON can carry.
    """

    id: str
    time: datetime
    kind: str
    subject: str
    actor: str
    facts: Mapping[str, Any]
    hash: str
    seq: int | None = None


@dataclass(frozen=True)
class Seal:
    """A signature over the entries `first_seq` to `last_seq`, in their order, and over the seal before it.

    `digest`, `previous` and `signature` are lower-case hexadecimal.
    """

    number: int
    first_seq: int
    last_seq: int
    digest: str
    previous: str
    key_id: str
    time: datetime
    signature: str

    @property
    def hash(self) -> str:
        """What the next seal names as the one before it; it covers the signature too."""
        return _sha256(canonical({**seal_statement(self), "signature": self.signature}))

    @property
    def head(self) -> str:
        """`number:hash`: who keeps it elsewhere can later tell that the trail was not cut off before it."""
        return f"{self.number}:{self.hash}"


def make_entry(
    kind: AuditKind, subject: str, *, actor: str, facts: Mapping[str, Any], id: str, now: datetime
) -> Entry:
    """Return the entry with its hash.

    `facts` is taken as JSON has it (names are text, tuples are lists), so that the entry reads back equal.
    Raises `InvalidInputError` for facts that JSON cannot carry.
    """
    try:
        # Canonical JSON refuses names that are no text; here they become text before anything is hashed.
        plain = json.loads(json.dumps(dict(facts), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("The facts of an entry hold a value that JSON has no form for.") from None
    entry = Entry(id, now.astimezone(UTC), str(kind), subject, actor, plain, hash="")
    return replace(entry, hash=entry_hash(entry))


def entry_hash(entry: Entry) -> str:
    """Return the hash that an entry with this content must have. Its number is not part of it."""
    return _sha256(canonical(entry_content(entry)))


def entry_content(entry: Entry) -> dict[str, object]:
    """Return what the hash of an entry is made over, as JSON has it."""
    return {
        "id": entry.id,
        "time": time_text(entry.time),
        "kind": entry.kind,
        "subject": entry.subject,
        "actor": entry.actor,
        "facts": dict(entry.facts),
    }


def salted_hash(text: str, *, salt: str) -> str:
    """Return what stands in the trail for a text that may be redacted: the salt is kept with the text."""
    return _sha256(canonical({"salt": salt, "text": text}))


def make_seal(
    hashes: Iterable[str], sign: Sign, *, first_seq: int, last_seq: int, after: Seal | None, key_id: str,
    now: datetime,
) -> Seal:  # fmt: skip
    """Return the seal over the entries from `first_seq` to `last_seq`, whose hashes are given in order.

    `after` is the seal before it, None for the first. `sign` makes an Ed25519 signature.
    """
    digest = hashlib.sha256()
    for each in hashes:
        digest.update(digest_part(each))
    seal = Seal(
        number=after.number + 1 if after else 1,
        first_seq=first_seq,
        last_seq=last_seq,
        digest=digest.hexdigest(),
        previous=after.hash if after else NO_SEAL,
        key_id=key_id,
        time=now.astimezone(UTC),
        signature="",
    )
    return replace(seal, signature=sign(signed_bytes(seal)).hex())


def digest_part(entry_hash: str) -> bytes:
    """Return what one entry adds to the digest of its seal: its hash and a line feed."""
    return f"{entry_hash}\n".encode()


def seal_statement(seal: Seal) -> dict[str, object]:
    """Return what a seal says, and its signature is made over, as JSON has it."""
    return {
        "type": "seal",
        "number": seal.number,
        "previous": seal.previous,
        "first_seq": seal.first_seq,
        "last_seq": seal.last_seq,
        "digest": seal.digest,
        "key_id": seal.key_id,
        "time": time_text(seal.time),
    }


def signed_bytes(seal: Seal) -> bytes:
    """Return the bytes that the signature is made over: all that the seal says, as canonical JSON."""
    return canonical(seal_statement(seal)).encode()


def is_signed_by(seal: Seal, public_key: bytes) -> bool:
    """Whether the signature is good under this public key (32 bytes)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if re.fullmatch("[0-9a-f]{128}", seal.signature) is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            bytes.fromhex(seal.signature), signed_bytes(seal)
        )
    except InvalidSignature:
        return False
    return True


def key_id(public_key: bytes) -> str:
    """Return the short name of a public key (32 bytes) that its seals carry."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def public_keys(pem: bytes) -> dict[str, bytes]:
    """Return the Ed25519 public keys of a PEM text, one or several blocks, by their `key_id`.

    Raises `InvalidInputError` for anything else.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found: dict[str, bytes] = {}
    blocks = re.findall(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", pem, re.DOTALL)
    for block in blocks:
        try:
            key = load_pem_public_key(block)
        except (ValueError, UnsupportedAlgorithm):
            raise _no_key() from None
        if not isinstance(key, Ed25519PublicKey):
            raise _no_key()
        raw = key.public_bytes_raw()
        found[key_id(raw)] = raw
    if not found:
        raise _no_key()
    return found


def time_text(time: datetime) -> str:
    """Return the one form that an instant has in the trail: UTC, microseconds, `Z`."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _no_key() -> InvalidInputError:
    return InvalidInputError(
        "The public key cannot be read. Give the notary's public key file, PEM with Ed25519 keys."
    )
