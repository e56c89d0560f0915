"""The viewer: who looks at a page, known by a session's cookie, and never by a key or by what was sent."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from clearance.credential import digest_of
from clearance.errors import ForbiddenError, NotFoundError, UnauthorizedError
from clearance.people import Mode, Person
from clearance.store import audit, people, sessions
from clearance.store.sessions import SEEN_EVERY, Session
from clearance.web.access import Workspace
from clearance.web.pages.guard import host_of
from clearance.web.pages.submitted import Submitted, read_form
from clearance.workspace import Clearance

CSRF_FIELD = "csrf"
SECURE_COOKIE, LOOPBACK_COOKIE = "__Host-clearance", "clearance"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page. `csrf` is the token that every form of their session carries.

    `fresh_at` is when they last showed all that they sign in with; `seen` how far the trail was when the page
    began to be made: its stream goes on from there.
    """

    person: Person
    session_id: str
    csrf: str
    fresh_at: datetime
    mode: Mode
    seen: int


class SignInNeededError(UnauthorizedError):
    """Nobody is signed in. `next` is the local address to come back to."""

    def __init__(self, next: str = "/") -> None:
        super().__init__("Sign in first.")
        self.next = next


def viewer(request: Request, here: Workspace) -> Viewer:
    """Return who looks at this page. Raises `SignInNeededError`, which is answered by the way to sign in.

    `NotFoundError` for an address with a null character, which names nothing that a database keeps.
    """
    if "\0" in request.scope["path"]:
        raise NotFoundError("There is nothing at this address.")
    token = shown(request, here)
    if token is None:
        raise SignInNeededError(_back_to(request))
    database, limits = here.database, here.session_limits
    with database.read() as tx:
        now = database.now(tx)
        found = sessions.opened_by(tx, digest_of(token), now=now, idle=limits.idle)
        mode = people.mode(tx)
        seen = audit.last_seq(tx)
    if found is None:
        raise SignInNeededError(_back_to(request))
    session, person = found
    if now >= session.used_at + SEEN_EVERY:
        with database.write() as tx:
            sessions.seen(tx, session.id, now=now)
    return viewer_of(session, person, token=token, mode=mode, seen=seen)


Signed = Annotated[Viewer, Depends(viewer)]
"""Who looks at a page, for a route: whoever is not signed in is sent to do so."""


async def submitted(request: Request, seen: Signed) -> Submitted:
    """Return what a form of this session sent. Raises `ForbiddenError` for a form of another one."""
    return _own(await read_form(request), seen)


async def submitted_with_file(request: Request, seen: Signed) -> Submitted:
    """Return the same of a form that may send one text file."""
    return _own(await read_form(request, files=1), seen)


def _own(form: Submitted, seen: Viewer) -> Submitted:
    if not hmac.compare_digest(form.get(CSRF_FIELD, "").encode(), seen.csrf.encode()):
        raise ForbiddenError(
            "This form is not of your present sign-in, so nothing was done. Load its page and repeat it."
        )
    return form


Form = Annotated[Submitted, Depends(submitted)]
"""What the form of a page sent, for a route: from whoever is signed in, by a form of their own session."""
FormWithFile = Annotated[Submitted, Depends(submitted_with_file)]
"""The same with one text file, which stands for its field."""


def viewer_of(session: Session, person: Person, *, token: str, mode: Mode, seen: int) -> Viewer:
    """Return the viewer of a session."""
    return Viewer(person, session.id, csrf_of(token), session.fresh_at, mode, seen)


def csrf_of(token: str) -> str:
    """Return what the forms of a session carry: it follows from the cookie, and does not give it away."""
    return hmac.new(token.encode(), b"clearance form", hashlib.sha256).hexdigest()


def cookie_name(request: Request, here: Clearance) -> str | None:
    """Return what the session's cookie is called, by how the page was reached.

    None over plain HTTP from elsewhere: there a cookie would travel as it is, so nobody is signed in.
    """
    if is_secure(request, here):
        return SECURE_COOKIE
    return LOOPBACK_COOKIE if request.url.hostname in LOOPBACK else None


def is_secure(request: Request, here: Clearance) -> bool:
    """Whether people reach this page over HTTPS: they say so, or a proxy before it does by the setting."""
    if request.url.scheme == "https":
        return True
    public = urlsplit(here.public_url or "")
    return public.scheme == "https" and request.headers.get("host", "").lower() == public.netloc.lower()


def shown(request: Request, here: Clearance) -> str | None:
    """Return the session's cookie that the browser shows."""
    name = cookie_name(request, here)
    return None if name is None else request.cookies.get(name) or None


def add_sign_in(app: FastAPI) -> None:
    """Answer whoever is not signed in by the way to the page where they can."""

    @app.exception_handler(SignInNeededError)
    def _sign_in(request: Request, error: SignInNeededError) -> Response:
        where = f"/login?next={quote(error.next, safe='/')}"
        headers = {"Cache-Control": "no-store", "Vary": "Cookie"}
        if request.headers.get("HX-Request") == "true":
            return Response(status_code=401, headers={**headers, "HX-Redirect": where})
        return RedirectResponse(where, 303, headers)


def local(path: str) -> str:
    """Return a path to go to after signing in; `/` for everything that could lead elsewhere."""
    parts = path.split("?", 1)[0]
    bad = not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable()
    return "/" if bad or " " in path or "//" in parts or ":" in parts.split("/")[1] else path


def _back_to(request: Request) -> str:
    """Return where to come back to: this page, or for what a form did or htmx fetched, the page it is on."""
    if request.headers.get("HX-Request") == "true":
        return _local_part(request.headers.get("HX-Current-URL", ""), request)
    if request.method in ("GET", "HEAD"):
        query = request.url.query
        return local(request.url.path + (f"?{query}" if query else ""))
    return _local_part(request.headers.get("Referer", ""), request)


def _local_part(address: str, request: Request) -> str:
    if host_of(address) != request.headers.get("host", ""):
        return "/"
    parts = urlsplit(address)
    return local(parts.path + (f"?{parts.query}" if parts.query else ""))
