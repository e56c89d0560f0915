"""Linking: making links for messages, and finding what a token leads to. The key lies beside the notary's."""

import os
import secrets
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from clearance import links
from clearance.errors import NotFoundError, SettingsError
from clearance.links import Link
from clearance.review import Review
from clearance.store import links as rows

KEY_BYTES = 32


def load_or_create(path: Path) -> bytes:
    """Return the key in this file; the first process that asks makes it, readable by its owner only.

    Raises `SettingsError` when it cannot be used, or others may read it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        if path.stat().st_mode & (stat.S_IRWXO | stat.S_IRWXG):
            raise SettingsError(f"Others can read the key of links. Close it: chmod 600 {path}")
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise SettingsError(f"The key of links {path} cannot be used: {error.strerror}") from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path} holds no key. Move it away: a new one is made, and earlier links end.")
    return key


@dataclass(frozen=True)
class Linking:
    """Makes and finds links; `key` is made when it is first needed."""

    path: Path

    def make(self, tx: Connection, review: Review, *, person: str, channel: str, now: datetime) -> str | None:
        """Keep a new link to a review and return its token; None where no link may decide the review.

        `channel` is the id of the one that it is sent by: the link is good while that is in use.
        """
        made = links.new_link(review, person=person, channel=channel, id=secrets.token_hex(16), now=now)
        if made is None:
            return None
        rows.add(tx, made)
        return links.token(made, load_or_create(self.path))

    def find(self, tx: Connection, token: str) -> Link:
        """Return the link of a token; `NotFoundError` for a forged or damaged one, which is not repeated."""
        link_id = links.link_id(token)
        found = None if link_id is None else rows.link(tx, link_id)
        if found is None or not links.is_signed(token, found, load_or_create(self.path)):
            raise NotFoundError("This link is not one of this workspace, or it was cut on the way.")
        return found


def _create(path: Path) -> None:
    """Make the file at once and whole, unless another process was first."""
    whole = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(whole, path)
    except FileExistsError:
        pass
    finally:
        whole.unlink()
