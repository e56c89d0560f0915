"""Small trails that are right, made in memory, for tests that tamper with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from clearance.audit import AuditKind, Entry, Seal, entry_hash, key_id, make_entry, make_seal
from clearance.proof import Extent, Report, verify

START = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


@dataclass(frozen=True)
class Key:
    """A notary's key, made from a number."""

    private: Ed25519PrivateKey

    @property
    def id(self) -> str:
        """The name that its seals carry."""
        return key_id(self.private.public_key().public_bytes_raw())

    @property
    def pem(self) -> bytes:
        """The public key."""
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def key(number: int) -> Key:
    """Return the key with this number, always the same."""
    return Key(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


NOTARY, SOMEBODY = key(1), key(2)


@dataclass(frozen=True)
class Trail:
    """Entries and seals in their order."""

    entries: tuple[Entry, ...]
    seals: tuple[Seal, ...]

    @property
    def extent(self) -> Extent:
        """How much there is."""
        return Extent(len(self.entries), len(self.seals))


def make_trail(sealed: Sequence[int] = (3, 3, 3), *, unsealed: int = 2, signer: Key = NOTARY) -> Trail:
    """Return a trail with ranges of these lengths, sealed one after another, and some entries after them."""
    entries = tuple(make_numbered(seq) for seq in range(1, sum(sealed) + unsealed + 1))
    seals: list[Seal] = []
    for length in sealed:
        seals.append(make_next(entries, seals, length=length, signer=signer))
    return Trail(entries, tuple(seals))


def make_numbered(seq: int, *, about: str = "run") -> Entry:
    """Return the entry with this number."""
    entry = make_entry(
        AuditKind.RUN_QUEUED,
        f"{about}-{seq}",
        actor="ann",
        facts={"place": seq, "exact": [2**64 + seq, 7.0, "é"]},
        id=f"{seq:032x}",
        now=START + timedelta(seconds=seq),
    )
    return replace(entry, seq=seq)


def make_next(entries: Sequence[Entry], seals: Sequence[Seal], *, length: int, signer: Key = NOTARY) -> Seal:
    """Return the seal that follows these."""
    first = seals[-1].last_seq + 1 if seals else 1
    return make_seal(
        [entry.hash for entry in entries[first - 1 : first - 1 + length]],
        signer.private.sign,
        first_seq=first,
        last_seq=first + length - 1,
        after=seals[-1] if seals else None,
        key_id=signer.id,
        now=START + timedelta(seconds=first),
    )


def check(trail: Trail, *, key: bytes | None = NOTARY.pem, head: str | None = None) -> Report:
    """Return what a check of the trail finds."""
    return verify(trail.entries, trail.seals, public_key=key, expect_head=head)


def rehashed(entry: Entry) -> Entry:
    """Return the entry with the hash that its content has now."""
    return replace(entry, hash=entry_hash(entry))


def renumbered(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries with numbers by their place."""
    return tuple(replace(entry, seq=seq) for seq, entry in enumerate(entries, start=1))
