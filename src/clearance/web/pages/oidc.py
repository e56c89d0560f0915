"""Signing in through an identity provider: the way there, by a link, and the way back with a code.

What has to come back unchanged is in a cookie of ten minutes that this server has signed.
"""

import hmac
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from itsdangerous import BadData, URLSafeTimedSerializer

from clearance.errors import ClearanceError, ForbiddenError, NotFoundError
from clearance.identity import read_claims
from clearance.notices.linking import load_or_create
from clearance.signing_in import SignedIn, tried_from
from clearance.single_sign_on import admit, refused
from clearance.web.access import Workspace
from clearance.web.pages.login import NOT_HERE, client_of, let_in, login_page
from clearance.web.pages.provider import Journey, NotVouchedForError, Provider, new_journey
from clearance.web.pages.viewer import SECURE_COOKIE, cookie_name, is_secure, local, shown
from clearance.workspace import PRIVATE, Clearance

router = APIRouter(include_in_schema=False)

BACK = "/login/callback"
LASTS = 600
_COOKIE, _SALT = "-provider", "clearance sign-in through a provider"
_MOST = 4096
Told = Annotated[str, Query(max_length=_MOST)]
_STRAY = (
    "This answer of the identity provider belongs to no sign-in of this browser: it was used, is older than "
    "ten minutes, or another was begun since. Sign in again from here."
)
_REFUSED_THERE = "The identity provider did not let you in, so nobody is signed in here."
_NO_ADDRESS = (
    "Signing in through the identity provider needs the address that people open: have whoever serves this "
    "set CLEARANCE_PUBLIC_URL to it."
)


@router.get("/login/provider")
def leave(request: Request, here: Workspace, next: Told = "/", again: Told = "") -> Response:
    """Send the browser to the identity provider; with `again`, to show there once more who one is."""
    provider = _provider(request)
    try:
        with here.database.read() as tx:
            journey = new_journey(next=local(next), again=bool(again), now=here.database.now(tx))
        answer = RedirectResponse(provider.address(journey, back=_back(request, here)), 303)
    except ClearanceError as error:
        return login_page(request, here, next=next, name="", again=bool(again), error=error)
    answer.set_cookie(
        _cookie(request, here),
        _signer(here).dumps(asdict(journey)),
        max_age=LASTS,
        path="/",
        secure=is_secure(request, here),
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get(BACK)
def come_back(
    request: Request,
    here: Workspace,
    state: Told = "",
    code: Told = "",
    error: Told = "",
    iss: Told = "",
) -> Response:
    """Sign in whom the provider vouches for, where this browser began it."""
    provider = _provider(request)
    begun = _begun(request, here)
    try:
        found = _admitted(request, here, provider, begun, state=state, code=code, error=error, iss=iss)
        assert begun is not None, "nobody is admitted without"
        answer = let_in(request, here, found, to=begun.next)
    except ClearanceError as failure:
        next, again = ("/", False) if begun is None else (begun.next, begun.again)
        answer = login_page(request, here, next=next, name="", again=again, error=failure)
    # The address holds a code: it is of no use any more, and is told to nobody all the same.
    answer.headers["Referrer-Policy"] = "no-referrer"
    name = cookie_name(request, here)
    if name is not None:
        secure = is_secure(request, here)
        answer.delete_cookie(name + _COOKIE, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


def _admitted(
    request: Request, here: Clearance, provider: Provider, begun: Journey | None, *,
    state: str, code: str, error: str, iss: str,
) -> SignedIn:  # fmt: skip
    if begun is None or not hmac.compare_digest(begun.state.encode(), state.encode()):
        raise ForbiddenError(_STRAY)
    client = client_of(request)
    with tried_from(here.database, client):
        try:
            if iss != provider.settings.issuer and (iss or provider.names_itself):
                raise NotVouchedForError("iss")
            if error or not code:
                raise NotVouchedForError("refused there", _REFUSED_THERE)
            with here.database.read() as tx:
                now = here.database.now(tx)
            claims = provider.claims(code, begun, back=_back(request, here), now=now)
        except NotVouchedForError as failure:
            with here.database.write() as tx:
                refused(tx, None, why=failure.why, now=here.database.now(tx))
            raise
        return admit(
            here.database,
            provider.settings,
            read_claims(provider.settings, claims),
            client=client,
            limits=here.session_limits,
            fresh=begun.again,
            instead_of=shown(request, here),
        )


def _provider(request: Request) -> Provider:
    found: Provider | None = request.app.state.provider
    if found is None:
        raise NotFoundError("No identity provider is set here. Sign in by a password.")
    return found


def _begun(request: Request, here: Clearance) -> Journey | None:
    """Return what this browser began, None where that is nothing, or too long ago."""
    name = cookie_name(request, here)
    kept = None if name is None else request.cookies.get(name + _COOKIE)
    try:
        return None if kept is None else Journey(**_signer(here).loads(kept, max_age=LASTS))
    except BadData:
        return None


def _signer(here: Clearance) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(load_or_create(here.home / PRIVATE / "links.key"), salt=_SALT)


def _cookie(request: Request, here: Clearance) -> str:
    name = cookie_name(request, here)
    if name is None:
        raise ForbiddenError(NOT_HERE)
    return name + _COOKIE


def _back(request: Request, here: Clearance) -> str:
    """Return where the provider sends browsers back to: never what a request says its host is, but here."""
    name = cookie_name(request, here)
    if name is None:
        raise ForbiddenError(NOT_HERE)
    if here.public_url is not None:
        return here.public_url + BACK
    if name == SECURE_COOKIE:
        raise ForbiddenError(_NO_ADDRESS)
    return f"{request.url.scheme}://{request.url.netloc}{BACK}"
