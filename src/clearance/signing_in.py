"""Signing in: what a person shows to be known in a browser, the session that follows, and its end.

Whoever cannot be known gets one answer after one time, whatever was wrong, and waits longer each time.
"""

import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network

from sqlalchemy import Connection

from clearance.audit import AuditKind
from clearance.credential import digest_of
from clearance.errors import ForbiddenError, NotFoundError, TooManyTriesError, UnauthorizedError
from clearance.passwords import check_password, hashed, is_right
from clearance.people import FRESH, PER_ADDRESS, PER_PERSON, SYSTEM, Person, SessionLimits, wait_after
from clearance.store import audit, failed_sign_ins, identities, invitations, passwords, people, sessions
from clearance.store.database import Database
from clearance.store.invitations import Purpose
from clearance.store.sessions import Session

NOT_RIGHT = "That name and password do not belong together here. Try again, or ask an admin for a new link."
LINK_OVER = (
    "This link is not good any more: it was used, is over, or a newer one was made. Ask an admin for one."
)
_MOST_OF_A_BROWSER = 120
_KEPT_FOR = timedelta(days=90)


@dataclass(frozen=True)
class Client:
    """Who asks, as far as the connection tells: its `address`, and what its browser says it is."""

    address: str
    browser: str = ""

    @property
    def network(self) -> str:
        """Whose failures are counted together: an address, or the network of one household in IPv6."""
        try:
            address = ip_address(self.address)
        except ValueError:
            return "unknown"
        return str(address) if address.version == 4 else str(ip_network((address, 64), strict=False))


@dataclass(frozen=True)
class SignedIn:
    """A sign-in. `token` is what the browser shows from now on; nobody else ever sees it."""

    token: str
    session: Session
    person: Person

    def __repr__(self) -> str:
        return f"SignedIn({self.person.id!r}, session {self.session.id!r})"


def sign_in(
    database: Database,
    name: str,
    password: str,
    *,
    client: Client,
    limits: SessionLimits,
    instead_of: str | None = None,
) -> SignedIn:
    """Sign a person in by their id or name and their password.

    `instead_of` is the token that the browser showed before, whose session ends. Raises `UnauthorizedError`
    for whatever is wrong, `TooManyTriesError` when it was wrong too often.
    """
    with database.read() as tx:
        person = _by_name(tx, name)
        hash = None if person is None or person.disabled else passwords.of(tx, person.id)
    # A part of the digest: enough to slow one name down, too little to find out what was typed for it.
    slowed = f"name:{digest_of(name if person is None else person.id)[:4]}"
    with _tried(database, own=slowed, address=f"address:{client.network}"):
        if not is_right(password, hash):
            _record_failure(database, person, at="login")
            raise UnauthorizedError(NOT_RIGHT)
    with database.write() as tx:
        found = _by_name(tx, name)
        # Both may have changed while the password was looked at.
        if found is None or found.disabled or passwords.of(tx, found.id) != hash:
            raise UnauthorizedError(NOT_RIGHT)
        return start_session(
            database, tx, found, client=client, limits=limits, how="password", instead_of=instead_of
        )


def start_session(
    database: Database,
    tx: Connection,
    person: Person,
    *,
    client: Client,
    limits: SessionLimits,
    how: str,
    fresh: bool = True,
    instead_of: str | None = None,
) -> SignedIn:
    """Begin a session of a person who has shown who they are, in this transaction.

    It has a token of its own, whatever the browser showed before; `instead_of` is the token of the one that
    it replaces. `fresh` is False where they may have shown it long ago, to somebody else.
    """
    now, token = database.now(tx), secrets.token_urlsafe(32)
    session = Session(
        id=secrets.token_hex(6),
        person=person.id,
        browser=_short(client.browser),
        created_at=now,
        fresh_at=now if fresh else now - FRESH,
        spent_at=None,
        used_at=now,
        expires_at=now + limits.lifetime,
        revoked_at=None,
    )
    sessions.add(tx, session, digest=digest_of(token))
    sessions.forget(tx, before=now - _KEPT_FOR)
    facts: dict[str, object] = {"session": session.id, "how": how}
    if instead_of is not None:
        before = sessions.opened_by(tx, digest_of(instead_of), now=now, idle=limits.idle)
        if before is not None:
            sessions.revoke(tx, before[1].id, now=now, only=before[0].id)
            facts["instead_of"] = before[0].id
    audit.write(tx, AuditKind.PERSON_SIGNED_IN, person.id, actor=person.id, now=now, facts=facts)
    return SignedIn(token, session, person)


def sign_out(database: Database, person: str, session_id: str) -> None:
    """End the session of a person from which they say so."""
    with database.write() as tx:
        now = database.now(tx)
        if sessions.revoke(tx, person, now=now, only=session_id):
            facts = {"session": session_id}
            audit.write(tx, AuditKind.PERSON_SIGNED_OUT, person, actor=person, now=now, facts=facts)


def end_sessions(
    database: Database, tx: Connection, person: str, *, by: str, reason: str, but: str | None = None,
    only: str | None = None,
) -> list[str]:  # fmt: skip
    """End sessions of a person from elsewhere, in this transaction: all, `only` one, or all `but` one."""
    now = database.now(tx)
    ended = sessions.revoke(tx, person, now=now, but=but, only=only)
    for each in ended:
        facts = {"person": person, "reason": reason}
        audit.write(tx, AuditKind.SESSION_REVOKED, each, actor=by, now=now, facts=facts)
    return ended


def end_session(database: Database, person: str, session_id: str) -> None:
    """End one of a person's own sessions. Raises `NotFoundError` for one that is not theirs, or is over."""
    with database.write() as tx:
        reason = "by its person"
        ended = "\0" not in session_id and end_sessions(
            database, tx, person, by=person, reason=reason, only=session_id
        )
        if not ended:
            raise NotFoundError("You have no such session any more.")


def end_other_sessions(database: Database, person: str, *, but: str) -> list[str]:
    """End all of a person's own sessions but one, and return which."""
    with database.write() as tx:
        return end_sessions(database, tx, person, by=person, reason="by its person", but=but)


def confirm(database: Database, person: Person, password: str, *, session_id: str, at: str) -> None:
    """Have somebody who is signed in show their password once more, for which their session is fresh again.

    `at` says where they were asked. Raises `ForbiddenError` when it is wrong, `TooManyTriesError` when it
    was too often. Only who has a session can use up these tries, so nobody else makes its person wait.
    """
    with _tried(database, own=f"session:{person.id}"):
        with database.read() as tx:
            hash = passwords.of(tx, person.id)
        if not is_right(password, hash):
            _record_failure(database, person, at=at)
            raise ForbiddenError("This is not your password. Nothing was done; type it again.")
    with database.write() as tx:
        now = database.now(tx)
        sessions.freshen(tx, session_id, now=now)
        facts = {"session": session_id, "how": "password", "again": True}
        audit.write(tx, AuditKind.PERSON_SIGNED_IN, person.id, actor=person.id, now=now, facts=facts)


def change_password(database: Database, person: Person, *, old: str, new: str, session_id: str) -> list[str]:
    """Replace somebody's password; their other sessions end, and are returned.

    Raises `InvalidInputError` for what cannot be one, and what `confirm` does.
    """
    check_password(new)
    confirm(database, person, old, session_id=session_id, at="password")
    hash = hashed(new)
    with database.write() as tx:
        _set_password(database, tx, person.id, hash, how="page")
        return end_sessions(
            database, tx, person.id, by=person.id, reason="the password was changed", but=session_id
        )


def may_set_first(tx: Connection, person: str, *, session_id: str, fresh_at: datetime, now: datetime) -> bool:
    """Whether somebody may set their first password from this session; False for who has one, or a provider.

    Only a sign-in by a one-time link of the last minutes stands for them, and only until it is used up.
    """
    if passwords.of(tx, person) is not None or person in identities.those_with(tx):
        return False
    return fresh_at <= now < fresh_at + FRESH and sessions.is_unspent(tx, session_id)


def set_first_password(
    database: Database, person: Person, new: str, *, session_id: str, fresh_at: datetime
) -> list[str]:
    """Keep the first password of somebody who has just come in by a link; their other sessions end.

    It uses up that sign-in, as a critical decision does: a session that was left open, or taken, sets none.
    Raises `InvalidInputError` for what cannot be a password, `ForbiddenError` unless `may_set_first`.
    """
    check_password(new)
    hash = hashed(new)
    with database.write() as tx:
        now = database.now(tx)
        may = may_set_first(tx, person.id, session_id=session_id, fresh_at=fresh_at, now=now)
        if not may or not sessions.spend(tx, session_id, now=now):
            raise ForbiddenError(
                "No password was set. A first one is set just after a one-time link was used."
            )
        _set_password(database, tx, person.id, hash, how="page")
        reason = "the first password was set"
        return end_sessions(database, tx, person.id, by=person.id, reason=reason, but=session_id)


def welcomed(database: Database, token: str) -> tuple[invitations.Invitation, Person]:
    """Return what a link is for, and whom; nothing is used up. Raises `NotFoundError` when it is over."""
    with database.read() as tx:
        found = invitations.opened_by(tx, digest_of(token), now=database.now(tx))
    if found is None:
        raise NotFoundError(LINK_OVER)
    return found


def accept(
    database: Database, token: str, password: str, *, client: Client, limits: SessionLimits,
    instead_of: str | None = None,
) -> SignedIn:  # fmt: skip
    """Use a link up: set this password, end every session its person had, and sign them in.

    A link that is only for signing in sets and ends nothing. Raises `InvalidInputError` for what cannot be a
    password, and then the link stays good; `NotFoundError` when it opens nothing, `TooManyTriesError` when
    too many that open nothing came from this address.
    """
    with _tried(database, address=f"link:{client.network}"):
        invitation, _ = welcomed(database, token)
    digest, hash = digest_of(token), None
    if invitation.purpose is not Purpose.SIGN_IN:
        check_password(password)
        hash = hashed(password)
    with database.write() as tx:
        found = invitations.opened_by(tx, digest, now=database.now(tx))
        if found is None or not invitations.use(tx, digest, now=database.now(tx)):
            raise NotFoundError(LINK_OVER)
        _, person = found
        if hash is not None:
            _set_password(database, tx, person.id, hash, how="link")
            end_sessions(database, tx, person.id, by=person.id, reason="a new password was set by a link")
        return start_session(
            database, tx, person, client=client, limits=limits, how="link", instead_of=instead_of
        )


def tried_from(database: Database, client: Client) -> AbstractContextManager[None]:
    """Count what is done within it as a failure of an address, unless it ends well; see `sign_in`."""
    return _tried(database, address=f"provider:{client.network}")


def _set_password(database: Database, tx: Connection, person: str, hash: str, *, how: str) -> None:
    now = database.now(tx)
    passwords.put(tx, person, hash, now=now)
    invitations.withdraw(tx, person)
    audit.write(tx, AuditKind.PERSON_PASSWORD_SET, person, actor=person, now=now, facts={"how": how})


@contextmanager
def _tried(database: Database, *, own: str | None = None, address: str | None = None) -> Iterator[None]:
    """Count what is done within it as a failure, unless it ends well. Raises `TooManyTriesError`.

    It is counted before anything is looked at, so that many tries at once count as many. One success ends
    the waiting for its `own` subject; at its `address` others may have failed, so there it only counts not.
    """
    subjects = {name: patience for name, patience in ((own, PER_PERSON), (address, PER_ADDRESS)) if name}
    with database.write() as tx:
        now, waits = database.now(tx), []
        failed_sign_ins.forget(tx, now=now)
        for subject, patience in sorted(subjects.items()):
            count, last_at = failed_sign_ins.held(tx, subject, now=now)
            waits.append(last_at + wait_after(count, patience) - now)
            failed_sign_ins.note(tx, subject, count=count + 1, now=now)
        if max(waits) > timedelta(0):
            raise TooManyTriesError(max(waits))
    yield
    with database.write() as tx:
        if own is not None:
            failed_sign_ins.clear(tx, own)
        if address is not None:
            failed_sign_ins.give_back(tx, address)


def _by_name(tx: Connection, name: str) -> Person | None:
    return None if "\0" in name else people.signing_in_as(tx, name)


def _record_failure(database: Database, person: Person | None, *, at: str) -> None:
    """Say in the trail that somebody was not let in; what they typed may be a password, and is not kept."""
    who = SYSTEM if person is None else person.id
    with database.write() as tx:
        now = database.now(tx)
        audit.write(tx, AuditKind.PERSON_SIGN_IN_FAILED, who, actor=SYSTEM, now=now, facts={"at": at})


def _short(browser: str) -> str:
    """Return what a browser says it is, as far as it may be kept and shown."""
    return "".join(each for each in browser if each.isprintable())[:_MOST_OF_A_BROWSER]
