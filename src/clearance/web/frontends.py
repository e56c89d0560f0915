"""Front ends of others: with which key they come in, and from which origins a browser lets them.

They are programs of somebody else in a browser of a person's. So a cookie opens nothing here, whoever sends
it, and no origin may read an answer but those that the installation names.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from clearance.credential import Credential, read_credential
from clearance.errors import UnauthorizedError
from clearance.web.access import Holder, Knock, Workspace, caller

LANGGRAPH, AGUI = "/langgraph", "/agui"
"""Where these doors are."""


async def credential(request: Request) -> Credential:
    """Return the key that is shown in either of two headers; `UnauthorizedError` where there is none."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    shown = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
    found = read_credential(shown)
    if found is None:
        raise UnauthorizedError(
            "Show a key: the header Authorization: Bearer KEY, or X-Api-Key: KEY, as the front end's field "
            "for an API key does. Make one with `clearance keys add`."
        )
    return found


FrontEndKey = Annotated[Credential, Depends(credential)]


def holder(knock: Knock, here: Workspace, shown: FrontEndKey) -> Holder:
    """Return whose key the front end shows. Raises what `access.caller` does."""
    return caller(knock, here, shown)


FrontEndUser = Annotated[Holder, Depends(holder)]


class FrontEndOrigins:
    """Lets the pages of these origins, and of no others, read what the doors for front ends answer."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self._app = app
        self._doors = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Content-Location"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser's question before a request; say with an answer who may read it."""
        path = scope.get("path", "")
        is_door = any(path == door or path.startswith(f"{door}/") for door in (LANGGRAPH, AGUI))
        await (self._doors if is_door else self._app)(scope, receive, send)
