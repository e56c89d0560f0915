"""Access: who calls. Every route but health asks here, and who it is never comes from the body."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from clearance.credential import read_credential
from clearance.errors import ForbiddenError, UnauthorizedError
from clearance.people import Person
from clearance.store import keys
from clearance.workspace import Clearance

_bearer = HTTPBearer(
    auto_error=False, description="A key, made with `clearance keys add`.", scheme_name="key"
)


def workspace(request: Request) -> Clearance:
    """Return the workspace that the application serves."""
    found: Clearance = request.app.state.workspace
    return found


Workspace = Annotated[Clearance, Depends(workspace)]


def caller(
    here: Workspace, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Person:
    """Return whose key was shown; `UnauthorizedError` for none, a wrong, a revoked or a disabled one's."""
    credential = read_credential(shown.credentials) if shown is not None else None
    if credential is None:
        raise UnauthorizedError(
            "Show a key: the header Authorization: Bearer KEY. Make one with `clearance keys add`."
        )
    with here.database.read() as tx:
        found = keys.opened_by(tx, credential.id, digest=credential.digest)
        now = here.database.now(tx)
    if found is None:
        raise UnauthorizedError(
            "This key is not known here, or was revoked. Make another with `clearance keys add`."
        )
    key, person = found
    if person.disabled:
        raise ForbiddenError(f"{person.name} is disabled here.")
    if not keys.is_seen(key, now=now):
        with here.database.write() as tx:
            keys.seen(tx, key, now=now)
    return person


Caller = Annotated[Person, Depends(caller)]
