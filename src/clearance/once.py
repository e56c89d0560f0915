"""Once: a request that carries a key of its own is done once, however often it is sent.

The key is taken at the beginning of the fact's own transaction and the answer is kept at its end, so the
fact, the key and the answer are there together or not at all. Whoever sends the same at the same moment waits
at the key, and gets the same answer. Keys are a person's own, count for one route, and are kept for a day.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from sqlalchemy import Connection

from clearance.errors import IdempotencyKeyReusedError
from clearance.store import answers
from clearance.store.database import Database

KEPT_FOR = timedelta(hours=24)

Done = TypeVar("Done")


@dataclass(frozen=True)
class Once(Generic[Done]):
    """One request: whose, to what, under which key, and a digest of what it says.

    `answer` makes the text that is kept and given to a repetition, from what was done.
    """

    person: str
    route: str
    key: str
    body: str
    answer: Callable[[Connection, Done], str]


class Repeated(Exception):
    """The request was done before, and nothing was done now; `answer` is what was kept then."""

    def __init__(self, answer: str) -> None:
        super().__init__("The request was done before.")
        self.answer = answer


def claim(database: Database, tx: Connection, once: Once[Done] | None) -> None:
    """Take the key for what this transaction does: its first lock.

    Raises `Repeated` when it was done before, and `IdempotencyKeyReusedError` for another body.
    """
    if once is None:
        return
    now = database.now(tx)
    answers.forget(tx, once.person, once.route, once.key, before=now - KEPT_FOR)
    if not answers.claim(tx, once.person, once.route, once.key, body=once.body, now=now):
        _compare(tx, once)


def look(database: Database, tx: Connection, once: Once[Done] | None) -> None:
    """Raise as `claim` does when the request was done before; for a verb that reads before it writes."""
    if once is None:
        return
    found = answers.kept(tx, once.person, once.route, once.key)
    if found is not None and found.at > database.now(tx) - KEPT_FOR:
        _compare(tx, once)


def keep(tx: Connection, once: Once[Done] | None, done: Done) -> None:
    """Keep the answer to what was done; the last thing before the commit."""
    if once is not None:
        answer = once.answer(tx, done)
        answers.keep(tx, once.person, once.route, once.key, answer=answer)


def purge(database: Database) -> None:
    """Delete the keys that have been kept long enough."""
    with database.read() as tx:
        before = database.now(tx) - KEPT_FOR
        if not answers.any_before(tx, before):
            return
    with database.write() as tx:
        answers.purge(tx, before)


def _compare(tx: Connection, once: Once[Done]) -> None:
    found = answers.kept(tx, once.person, once.route, once.key)
    if found is None:
        raise LookupError("an answer that this transaction waited for is not there")
    if found.body != once.body:
        raise IdempotencyKeyReusedError(once.key)
    raise Repeated(found.answer)
