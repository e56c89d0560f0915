"""Access: who calls. Every route but health asks here, and who it is never comes from the body."""

import inspect
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Connection

from clearance.credential import Credential, read_credential
from clearance.errors import ForbiddenError, UnauthorizedError
from clearance.people import Kind, Person
from clearance.store import keys, people
from clearance.workspace import Clearance

_bearer = HTTPBearer(
    auto_error=False, description="A key, made with `clearance keys add`.", scheme_name="key"
)


async def workspace(request: Request) -> Clearance:
    """Return the workspace that the application serves."""
    found: Clearance = request.app.state.workspace
    return found


async def credential(
    shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Credential:
    """Return what the caller shows; `UnauthorizedError` for what has not the form of a key."""
    found = read_credential(shown.credentials) if shown is not None else None
    if found is None:
        raise UnauthorizedError(
            "Show a key: the header Authorization: Bearer KEY. Make one with `clearance keys add`."
        )
    return found


async def notes(request: Request) -> dict[str, float]:
    """Return when the use of each key is to be noted next, by a clock of this process."""
    found: dict[str, float] = request.app.state.noted
    return found


Workspace = Annotated[Clearance, Depends(workspace)]
Shown = Annotated[Credential, Depends(credential)]
Notes = Annotated[dict[str, float], Depends(notes)]


def caller(noted: Notes, here: Workspace, shown: Shown) -> Person:
    """Return whose key was shown; `UnauthorizedError` for a wrong or revoked one, `ForbiddenError` when
    that person, or whom an agent acts for, is disabled."""
    with here.database.read() as tx:
        person = holder(tx, shown)
    if time.monotonic() >= noted.get(shown.id, 0.0):
        noted[shown.id] = time.monotonic() + keys.SEEN_EVERY.total_seconds()
        with here.database.write() as tx:
            keys.seen(tx, shown.id, now=here.database.now(tx))
    return person


def holder(tx: Connection, shown: Credential) -> Person:
    """Return whose key this is, as of this transaction. Raises what `caller` does."""
    found = keys.opened_by(tx, shown.id, digest=shown.digest)
    if found is None:
        raise UnauthorizedError(
            "This key is not known here, or was revoked. Make another with `clearance keys add`."
        )
    _, person = found
    for each in people.acting(tx, person.id, known={person.id: person}):
        # Nothing acts on behalf of somebody who may not act.
        if each.disabled:
            raise ForbiddenError(f"{each.name} is disabled here.")
    return people.with_sight(tx, person)


Caller = Annotated[Person, Depends(caller)]


def person_only(by: Caller) -> Person:
    """Return who calls; `ForbiddenError` for who does not see the whole workspace, as every agent."""
    if by.kind is Kind.AGENT:
        raise ForbiddenError("This tells about the whole workspace. An agent sees only what it asked for.")
    if by.sees is not None:
        raise ForbiddenError(f"This tells about the whole workspace. {by.name} sees that of their groups.")
    return by


PersonOnly = Annotated[Person, Depends(person_only)]


def in_one_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Let a route that is not async learn who calls in the thread that it runs in.

    Each further thread that a request passes through costs more than the look itself. So whether the key
    opens anything is told after what is wrong with the request; that none was shown is told before.
    """
    known = {Caller: lambda who: who, PersonOnly: person_only}
    signature = inspect.signature(endpoint)
    asking = [each for each in signature.parameters.values() if each.annotation in known]
    if not asking or inspect.iscoroutinefunction(endpoint):
        return endpoint
    [by] = asking
    allowed = known[by.annotation]

    def entered(*, key_notes: Notes, key_here: Workspace, key_shown: Shown, **given: Any) -> Any:
        return endpoint(**{by.name: allowed(caller(key_notes, key_here, key_shown))}, **given)

    *added, _ = inspect.signature(entered).parameters.values()
    rest = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in signature.parameters.values()
        if each is not by
    ]
    entered.__signature__ = signature.replace(parameters=[*added, *rest])  # type: ignore[attr-defined]
    entered.__name__, entered.__doc__ = endpoint.__name__, endpoint.__doc__
    return entered
