"""What people do with their own sign-in: set or change the password, see their sessions, and end them."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from clearance.errors import ClearanceError, InvalidInputError
from clearance.passwords import MIN_LENGTH
from clearance.signing_in import (
    change_password,
    end_other_sessions,
    end_session,
    may_set_first,
    set_first_password,
)
from clearance.store import identities, passwords, sessions
from clearance.web.access import Workspace
from clearance.web.pages.login import headers_of
from clearance.web.pages.rendering import render
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

if TYPE_CHECKING:
    # Loaded only where a provider is set.
    from clearance.web.pages.provider import Provider

router = APIRouter(include_in_schema=False)

_READ = ["GET", "HEAD"]


@router.api_route("/me/password", methods=_READ)
def password(request: Request, here: Workspace, by: Signed) -> Response:
    """Show where a password is changed, or a first one set."""
    return _password_page(request, here, by)


@router.post("/me/password")
def change(request: Request, here: Workspace, by: Signed, sent: Form) -> Response:
    """Change the password, or set the first one; every other session of its person ends."""
    new = sent.get("password", "")
    try:
        if new != sent.get("repeated", ""):
            raise InvalidInputError("The two new passwords differ. Type the same one twice.")
        if "old" in sent:
            change_password(
                here.database, by.person, old=sent.get("old", ""), new=new, session_id=by.session_id
            )
        else:
            set_first_password(here.database, by.person, new, session_id=by.session_id, fresh_at=by.fresh_at)
    except ClearanceError as error:
        return _password_page(request, here, by, error=error)
    return RedirectResponse("/me/sessions?changed=1", 303)


@router.api_route("/me/sessions", methods=_READ)
def own_sessions(request: Request, here: Workspace, by: Signed, changed: str = "") -> Response:
    """List where somebody is signed in."""
    with here.database.read() as tx:
        now = here.database.now(tx)
        found = sessions.open_of(tx, by.person.id, now=now, idle=here.session_limits.idle)
    return render(request, "sessions.html", viewer=by, sessions=found, now=now, changed=bool(changed))


@router.post("/me/sessions")
def end(here: Workspace, by: Signed, sent: Form) -> Response:
    """End one session of one's own, or all but this one."""
    session = sent.get("session", "")
    if session:
        end_session(here.database, by.person.id, session)
    else:
        end_other_sessions(here.database, by.person.id, but=by.session_id)
    return RedirectResponse("/me/sessions", 303)


def _password_page(
    request: Request, here: Clearance, by: Viewer, *, error: ClearanceError | None = None
) -> Response:
    provider: Provider | None = request.app.state.provider
    with here.database.read() as tx:
        has_one = passwords.of(tx, by.person.id) is not None
        has_provider = by.person.id in identities.those_with(tx)
        may_set = may_set_first(
            tx, by.person.id, session_id=by.session_id, fresh_at=by.fresh_at, now=here.database.now(tx)
        )
    answer = render(
        request,
        "password.html",
        viewer=by,
        status=200 if error is None else error.status,
        least=MIN_LENGTH,
        has_one=has_one,
        has_provider=has_provider,
        provider=None if provider is None else provider.settings.name,
        may_set=may_set,
        error="" if error is None else str(error),
    )
    answer.headers.update(headers_of(error))
    return answer
