"""Access: who calls, and how far their key goes. Every route but health asks here, and never the body."""

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Connection

from clearance.credential import Credential, Scope, in_words, read_credential
from clearance.errors import ForbiddenError, KeyScopeError, UnauthorizedError
from clearance.people import AGENTS_PROPOSE, Kind, Person
from clearance.store import keys, people
from clearance.workspace import Clearance

_bearer = HTTPBearer(
    auto_error=False, description="A key, made with `clearance keys add`.", scheme_name="key"
)

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_NEEDS = "_clearance_scopes"
_Route = TypeVar("_Route", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Holder(Person):
    """Who calls, and how far the key goes that they showed."""

    scopes: frozenset[Scope]


def needs(*any_of: Scope) -> Callable[[_Route], _Route]:
    """Say which scopes open a route, each by itself; stands below the route's own decorator.

    A route that does not say needs `manage`, unless it only reads by its method. One that says none only
    reads all the same. One that says several tells by `allow` which of them a request needs.
    """

    def marked(endpoint: _Route) -> _Route:
        setattr(endpoint, _NEEDS, any_of)
        return endpoint

    return marked


def allow(by: Holder, *any_of: Scope) -> None:
    """Raise `KeyScopeError` unless the key that was shown has one of these scopes."""
    if any_of and not by.scopes.intersection(any_of):
        if by.kind is Kind.AGENT and any_of == (Scope.DECIDE,):
            raise ForbiddenError(AGENTS_PROPOSE)  # no key would change that
        raise KeyScopeError(any_of, person=by.id, key=in_words(by.scopes))


def allow_taking_back(tx: Connection, by: Holder, *, requester: str) -> None:
    """Raise `KeyScopeError` unless the key goes so far as to end what `requester` asked for.

    One's own is a part of proposing; what others asked for is not.
    """
    own = by.id in (requester, people.party(tx, requester))
    allow(by, Scope.PROPOSE if own else Scope.MANAGE)


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


async def knocked(request: Request) -> Request:
    """Return the request. A function asks for one once at most; what is put around a route asks here."""
    return request


Workspace = Annotated[Clearance, Depends(workspace)]
Shown = Annotated[Credential, Depends(credential)]
Knock = Annotated[Request, Depends(knocked)]


def caller(knock: Knock, here: Workspace, shown: Shown) -> Holder:
    """Return whose key was shown.

    Raises `UnauthorizedError` for a wrong or revoked one, `KeyScopeError` for one that does not open this
    route, `ForbiddenError` when that person, or whom an agent acts for, is disabled.
    """
    with here.database.read() as tx:
        found = holder(tx, shown)
    # When the use of each key is to be noted next, by a clock of this process.
    noted: dict[str, float] = knock.app.state.noted
    if time.monotonic() >= noted.get(shown.id, 0.0):
        noted[shown.id] = time.monotonic() + keys.SEEN_EVERY.total_seconds()
        with here.database.write() as tx:
            keys.seen(tx, shown.id, now=here.database.now(tx))
    allow(found, *_needed(knock))
    return found


def _needed(knock: Request) -> tuple[Scope, ...]:
    said: tuple[Scope, ...] | None = getattr(knock.scope.get("endpoint"), _NEEDS, None)
    if said is not None:
        return said
    return () if knock.method in _SAFE else (Scope.MANAGE,)


def holder(tx: Connection, shown: Credential) -> Holder:
    """Return whose key this is, as of this transaction. Raises what `caller` does, but for scopes."""
    found = keys.opened_by(tx, shown.id, digest=shown.digest)
    if found is None:
        raise UnauthorizedError(
            "This key is not known here, or was revoked. Make another with `clearance keys add`."
        )
    key, person = found
    for each in people.acting(tx, person.id, known={person.id: person}):
        # Nothing acts on behalf of somebody who may not act.
        if each.disabled:
            raise ForbiddenError(f"{each.name} is disabled here.")
    return Holder(**vars(people.with_sight(tx, person)), scopes=key.scopes)


Caller = Annotated[Holder, Depends(caller)]


def person_only(by: Caller) -> Holder:
    """Return who calls, of those who see the whole workspace."""
    check_sight(by)
    return by


def check_sight(by: Person) -> None:
    """Raise `ForbiddenError` for who does not see the whole workspace, as every agent."""
    if by.kind is Kind.AGENT:
        raise ForbiddenError("This tells about the whole workspace. An agent sees only what it asked for.")
    if by.sees is not None:
        raise ForbiddenError(f"This tells about the whole workspace. {by.name} sees that of their groups.")


PersonOnly = Annotated[Holder, Depends(person_only)]


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

    def entered(*, key_knock: Knock, key_here: Workspace, key_shown: Shown, **given: Any) -> Any:
        return endpoint(**{by.name: allowed(caller(key_knock, key_here, key_shown))}, **given)

    *added, _ = inspect.signature(entered).parameters.values()
    rest = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in signature.parameters.values()
        if each is not by
    ]
    entered.__signature__ = signature.replace(parameters=[*added, *rest])  # type: ignore[attr-defined]
    entered.__name__, entered.__doc__ = endpoint.__name__, endpoint.__doc__
    vars(entered).update(vars(endpoint))
    return entered
