"""The notary: the part of the worker that numbers and seals the trail, and the key that it seals with."""

import os
import secrets
import stat
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from clearance.audit import Seal, key_id, public_keys
from clearance.errors import InvalidInputError, SettingsError
from clearance.killpoints import at
from clearance.store import audit
from clearance.store.database import Database

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEAL_EVERY = timedelta(seconds=1)
# A turn ends after so many transactions: the worker that calls it has other duties.
_MOST_AT_ONCE = 20
# Most turns look only at recent entries, which costs the same however long the trail is; a transaction
# that was open for longer than this is found by the full look.
_RECENT = timedelta(minutes=2)
_FULL_LOOK = timedelta(seconds=10)


class SigningKey:
    """The private key that seals are signed with (Ed25519). It is in a file and in memory, nowhere else."""

    def __init__(self, private: "Ed25519PrivateKey") -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.key_id = key_id(self.public)

    @classmethod
    def load_or_create(cls, path: Path) -> "SigningKey":
        """Return the key in this file; the first process that asks makes it, readable by its owner only.

        The public key is written beside it (`notary.pub` for `notary.key`), PEM. When the private key was
        replaced, the earlier public key stays as `notary-KEY_ID.pub`: see `published_keys`. Raises
        `SettingsError` when the file cannot be used or others may read it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                _create(path)
            key = cls(_load(path))
            _publish(key, path.with_suffix(".pub"))
        except OSError as error:
            raise SettingsError(f"The notary's key {path} cannot be used: {error.strerror}") from error
        return key

    def sign(self, content: bytes) -> bytes:
        """Return the signature."""
        return self._private.sign(content)

    @property
    def public_pem(self) -> bytes:
        """The public key as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def published_keys(path: Path) -> bytes:
    """Return the public keys that lie beside the key file, the present one and earlier ones, as one PEM text.

    Keys from the workspace are no stronger than the workspace: who wants proof keeps a copy elsewhere.
    """
    own = path.with_suffix(".pub")
    files = [own, *sorted(path.parent.glob(f"{path.stem}-*.pub"))]
    return b"".join(file.read_bytes() for file in files if file.exists())


def keep_keys(path: Path, pem: bytes) -> None:
    """Keep public keys of seals that came from elsewhere beside the key file, among those published.

    Raises `InvalidInputError` when they cannot be read, `SettingsError` when they cannot be kept.
    """
    try:
        there = published_keys(path)
        known = public_keys(there) if there else {}
        new = sorted(public_keys(pem).keys() - known.keys())
        if new:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            own = path.with_suffix(".pub")
            os.replace(_written(own, pem, mode=0o644), own.with_stem(f"{own.stem}-{new[0]}"))
    except OSError as error:
        raise SettingsError(f"The public keys cannot be kept beside {path}: {error.strerror}") from error


class Notary:
    """Numbers and seals the trail of one database. Any number of them may work on it, in any processes."""

    def __init__(self, database: Database, key: SigningKey, *, seal_every: timedelta = SEAL_EVERY) -> None:
        self._database = database
        self._key = key
        self._seal_every = seal_every
        self._looked_at: datetime | None = None
        self._last: Seal | None = None

    def turn(self) -> int:
        """Number the entries that wait, seal when that is due; return how many got a number.

        Costs one short reading transaction when nothing is to be done. Raises `StoreError`; the next turn
        does what is left.
        """
        with self._database.read() as tx:
            now = self._database.now(tx)
            since = self._since(now)
            standing = audit.standing(tx, since=since)
        numbered = self._number(since) if standing.waiting else 0
        if numbered:
            at("numbered")
        if since is None and numbered < _MOST_AT_ONCE * audit.NUMBER_AT_ONCE:
            self._looked_at = now
        due = standing.sealed_at is None or abs(now - standing.sealed_at) >= self._seal_every
        if due and standing.last_seq + numbered > standing.sealed_to:
            self._seal(self._seal_every)
        return numbered

    def seal_now(self) -> Seal | None:
        """Number and seal all that is committed; return the last seal made, None when nothing was left."""
        while self._number(None) == _MOST_AT_ONCE * audit.NUMBER_AT_ONCE:
            pass
        made = None
        while sealed := self._seal(timedelta(0)):
            made = sealed
        return made

    def _since(self, now: datetime) -> datetime | None:
        if self._looked_at is None or abs(now - self._looked_at) >= _FULL_LOOK:
            return None
        return now - _RECENT

    def _number(self, since: datetime | None) -> int:
        numbered = 0
        for _ in range(_MOST_AT_ONCE):
            with self._database.write() as tx:
                count = audit.number(tx, since=since)
                at("in-number")
            numbered += count
            if count < audit.NUMBER_AT_ONCE:
                break
        return numbered

    def _seal(self, every: timedelta) -> Seal | None:
        made: Seal | None = None
        for _ in range(_MOST_AT_ONCE):
            with self._database.write() as tx:
                sealed = audit.seal(
                    tx,
                    self._key.sign,
                    key_id=self._key.key_id,
                    now=self._database.now(tx),
                    every=every,
                    known=self._last,
                )
                at("in-seal")
            if sealed is None:
                break
            made = self._last = sealed
            if sealed.last_seq - sealed.first_seq + 1 < audit.SEAL_AT_ONCE:
                break
            every = timedelta(0)
        return made


def _create(path: Path) -> None:
    """Make the key file with a new key, unless another process was first."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    whole = _written(path, pem, mode=0o600)
    try:
        # A link is there at once, whole, and only if nothing was there before.
        os.link(whole, path)
    except FileExistsError:
        pass
    finally:
        whole.unlink()


def _load(path: Path) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if path.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise SettingsError(f"Others can read the notary's key. Close it: chmod 600 {path}")
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(
            f"{path} holds no Ed25519 private key in PEM. Put the notary's key back, or move the file "
            "away to begin with a new key: earlier seals need the earlier public key then."
        )
    return key


def _publish(key: SigningKey, path: Path) -> None:
    """Write the public key, unless it is there; an earlier one stays under its own name."""
    present = path.read_bytes() if path.exists() else b""
    try:
        earlier = public_keys(present)
    except InvalidInputError:
        earlier = {}
    if key.key_id in earlier:
        return
    for each in earlier:
        os.replace(_written(path, present, mode=0o644), path.with_stem(f"{path.stem}-{each}"))
    os.replace(_written(path, key.public_pem, mode=0o644), path)


def _written(path: Path, content: bytes, *, mode: int) -> Path:
    """Write a new file beside `path`, to the disk, and return where it is."""
    whole = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return whole
