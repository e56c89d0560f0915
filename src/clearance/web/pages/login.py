"""Signing in and out, and what a one-time link leads to: the first password."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from clearance.errors import (
    ClearanceError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    TooManyTriesError,
)
from clearance.membership import MOST_OF_A_NAME, can_sign_in
from clearance.passwords import MIN_LENGTH
from clearance.signing_in import Client, SignedIn, accept, sign_in, sign_out, welcomed
from clearance.store import passwords
from clearance.store.invitations import Purpose
from clearance.web.access import Workspace
from clearance.web.pages.rendering import render
from clearance.web.pages.submitted import Submitted, read_form
from clearance.web.pages.viewer import (
    Form,
    Signed,
    SignInNeededError,
    Viewer,
    cookie_name,
    is_secure,
    local,
    shown,
    viewer,
)
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

Sent = Annotated[Submitted, Depends(read_form)]
NOT_HERE = (
    "Signing in needs HTTPS, or a browser on the machine itself: over plain HTTP a password would travel as "
    "it is. Where a proxy ends TLS before this server, set CLEARANCE_PUBLIC_URL to the address people open."
)
_READ = ["GET", "HEAD"]


@router.api_route("/login", methods=_READ)
def login(
    request: Request,
    here: Workspace,
    next: Annotated[str, Query()] = "/",
    again: Annotated[str, Query()] = "",
) -> Response:
    """Show where to sign in, or go on where somebody is signed in and need not do so `again`."""
    who = signed_in(request, here)
    if who is not None and not again:
        return RedirectResponse(local(next), 303)
    return login_page(request, here, next=next, name="" if who is None else who.person.id, again=bool(again))


@router.post("/login")
def log_in(request: Request, here: Workspace, sent: Sent) -> Response:
    """Sign somebody in by what they typed."""
    # What is longer is nobody's name, and stands in the answer again.
    name = sent.get("name", "")[: MOST_OF_A_NAME + 1]
    next, again = sent.get("next", "/"), bool(sent.get("again"))
    try:
        _check_cookie(request, here)
        found = sign_in(
            here.database,
            name,
            sent.get("password", ""),
            client=client_of(request),
            limits=here.session_limits,
            instead_of=shown(request, here),
        )
    except ClearanceError as error:
        return login_page(request, here, next=next, name=name, again=again, error=error)
    return let_in(request, here, found, to=next)


@router.post("/logout")
def log_out(request: Request, here: Workspace, by: Signed, _: Form) -> Response:
    """End the session, here and in the browser."""
    sign_out(here.database, by.person.id, by.session_id)
    answer = RedirectResponse("/login", 303)
    name = cookie_name(request, here)
    assert name is not None, "who has no cookie is not signed in"
    secure = is_secure(request, here)
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


@router.api_route("/welcome/{token}", methods=_READ)
def welcome(request: Request, here: Workspace, token: str) -> Response:
    """Show whom a link is for, and ask for what it wants. Looking uses nothing up."""
    return _welcome_page(request, here, token)


@router.post("/welcome/{token}")
def accept_welcome(request: Request, here: Workspace, token: str, sent: Sent) -> Response:
    """Use the link up: keep the password where it sets one, and sign its person in."""
    password = sent.get("password", "")
    try:
        _check_cookie(request, here)
        if password != sent.get("repeated", ""):
            raise InvalidInputError("The two passwords differ. Type the same one twice.")
        found = accept(
            here.database,
            token,
            password,
            client=client_of(request),
            limits=here.session_limits,
            instead_of=shown(request, here),
        )
    except ClearanceError as error:
        return _welcome_page(request, here, token, error=error)
    return let_in(request, here, found, to="/")


def let_in(request: Request, here: Clearance, found: SignedIn, *, to: str) -> Response:
    """Return the answer by which a browser is signed in, and goes on to a page of ours."""
    name = cookie_name(request, here)
    if name is None:
        raise ForbiddenError(NOT_HERE)
    answer = RedirectResponse(local(to), 303)
    answer.set_cookie(
        name,
        found.token,
        max_age=int(here.session_limits.lifetime.total_seconds()),
        path="/",
        secure=is_secure(request, here),
        httponly=True,
        samesite="lax",
    )
    return answer


def signed_in(request: Request, here: Clearance) -> Viewer | None:
    """Return who is signed in, or None."""
    try:
        return viewer(request, here)
    except SignInNeededError:
        return None


def client_of(request: Request) -> Client:
    """Return who asks, as far as the connection and the browser tell."""
    address = "" if request.client is None else request.client.host
    return Client(address, request.headers.get("user-agent", ""))


def headers_of(error: ClearanceError | None) -> dict[str, str]:
    """Return what an answer to this error has to say beside its words."""
    if isinstance(error, TooManyTriesError):
        return {"Retry-After": str(error.seconds)}
    return {}


def login_page(
    request: Request,
    here: Clearance,
    *,
    next: str,
    name: str,
    again: bool,
    error: ClearanceError | None = None,
) -> Response:
    """Return the page to sign in on, with what was wrong."""
    provider = request.app.state.provider
    who = signed_in(request, here) if again else None
    with here.database.read() as tx:
        possible = provider is not None or can_sign_in(tx)
        by_link = who is not None and passwords.of(tx, who.person.id) is None
    possible_here = cookie_name(request, here) is not None
    answer = render(
        request,
        "login.html",
        status=error.status if error is not None else 200 if possible_here else ForbiddenError.status,
        next=local(next),
        name=name,
        again=again,
        error="" if error is None else str(error),
        nobody=not possible,
        by_link=by_link,
        provider=None if provider is None else provider.settings.name,
        refused="" if possible_here else NOT_HERE,
    )
    answer.headers.update(headers_of(error))
    return answer


def _welcome_page(
    request: Request, here: Clearance, token: str, *, error: ClearanceError | None = None
) -> Response:
    try:
        invitation, person = welcomed(here.database, token)
    except NotFoundError as over:
        error = error if isinstance(error, TooManyTriesError) else over
        answer = render(request, "closed.html", status=error.status, message=str(error))
    else:
        possible_here = cookie_name(request, here) is not None
        answer = render(
            request,
            "welcome.html",
            status=error.status if error is not None else 200 if possible_here else ForbiddenError.status,
            token=token,
            person=person,
            sets_password=invitation.purpose is not Purpose.SIGN_IN,
            least=MIN_LENGTH,
            error="" if error is None else str(error),
            refused="" if possible_here else NOT_HERE,
        )
    # The address is a secret as long as the link is good.
    answer.headers.update({"Referrer-Policy": "no-referrer", **headers_of(error)})
    return answer


def _check_cookie(request: Request, here: Clearance) -> None:
    """Refuse before anything is used up where the browser could not stay signed in."""
    if cookie_name(request, here) is None:
        raise ForbiddenError(NOT_HERE)
