"""What pages are told as it happens: the stream of the API, by the cookie of a session."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import Connection

from clearance.credential import digest_of
from clearance.errors import UnauthorizedError
from clearance.people import Person
from clearance.store import sessions
from clearance.web.access import Workspace
from clearance.web.events import LastEventId, Topics, streamed
from clearance.web.pages.viewer import Signed, shown
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)


@router.get("/events")
async def page_events(
    request: Request,
    here: Workspace,
    viewer: Signed,
    *,
    topics: Topics = "reviews,runs",
    seen: Annotated[str | None, Query(pattern="^[0-9]{1,15}$")] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream what happens to a page that has `seen` the trail so far. It ends with the session."""
    return await streamed(
        request,
        here,
        viewer.person,
        still=session_check(request, here),
        topics=topics,
        last_event_id=last_event_id or seen,
    )


def session_check(request: Request, here: Clearance) -> Callable[[Connection], Person]:
    """Return what gives who asks, as of now, for streams. `UnauthorizedError`: the session has ended."""
    digest = digest_of(shown(request, here) or "")

    def still(tx: Connection) -> Person:
        found = sessions.opened_by(tx, digest, now=here.database.now(tx), idle=here.session_limits.idle)
        if found is None:
            raise UnauthorizedError("This session has ended.")
        return found[1]

    return still
