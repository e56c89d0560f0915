"""Repeats: the header Idempotency-Key, by which a client may send a request again without fear."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Header
from pydantic import BaseModel
from sqlalchemy import Connection

from clearance.once import Once, Repeated
from clearance.people import Person
from clearance.store.database import Database
from clearance.toolcall import canonical

Done = TypeVar("Done")

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="A name that you give this request. The same request under the same name is done once, "
        "and answered the same, for 24 hours.",
    ),
]


def once(
    key: str | None,
    *,
    by: Person,
    route: str,
    said: BaseModel | None,
    answer: Callable[[Connection, Done], str],
    more: Any = None,
) -> Once[Done] | None:
    """Return a request as one that is done once; None without a key. How long it waits makes no difference.

    `route` names what is asked for, whatever its address; `said` is the body, and `more` what else counts.
    """
    if key is None:
        return None
    text = canonical([None if said is None else said.model_dump(exclude={"wait"}), more])
    return Once(by.id, route, key, hashlib.sha256(text.encode()).hexdigest(), answer)


def answered(
    database: Database,
    key: str | None,
    act: Callable[[Once[Done] | None], Done],
    *,
    by: Person,
    route: str,
    said: BaseModel | None,
    answer: Callable[[Connection, Done], str],
    more: Any = None,
) -> str:
    """Do something, once where there is a key, and return what is answered to it, as of when it was done.

    A repetition gets the text of the first time.
    """
    made: list[str] = []

    def kept(tx: Connection, done: Done) -> str:
        made.append(answer(tx, done))
        return made[-1]

    try:
        done = act(once(key, by=by, route=route, said=said, answer=kept, more=more))
    except Repeated as repeated:
        return repeated.answer
    if not made:
        with database.read() as tx:
            kept(tx, done)
    return made[-1]
