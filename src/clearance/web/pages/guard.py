"""The guard before all pages: who may send them something, and what browsers may do with what they get.

It is plain ASGI, because a form's body has to pass it untouched.
"""

import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearance.web.frontends import AGUI, LANGGRAPH

API = ("/api/", "/healthz", "/metrics", f"{LANGGRAPH}/", AGUI)
"""Where the addresses begin that are no pages: keys open them, and cookies do not."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
Refused = Callable[[Scope], ASGIApp]
"""Makes the answer to what another site has sent; the session is not looked at for it."""


class PageGuard:
    """Refuses what other sites send to pages, and has browsers run and load only what is ours.

    The nonce of an answer is `scope["state"]["nonce"]`.
    """

    def __init__(self, app: ASGIApp, *, refused: Refused) -> None:
        self.app = app
        self.refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may be sent, and add the headers to its answer."""
        if scope["type"] != "http" or scope["path"].startswith(API):
            await self.app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_headers(MutableHeaders(scope=message), nonce)
            await send(message)

        if scope["method"] in _SAFE or sent_from_here(Headers(scope=scope)):
            await self.app(scope, receive, guarded)
        else:
            await self.refused(scope)(scope, receive, guarded)


def sent_from_here(headers: Headers) -> bool:
    """Whether what changes something comes from a page of ours, or from no page at all.

    Browsers say which, in `Sec-Fetch-Site`; older ones by `Origin`. Who shows a key, and no cookie, is no
    page of anybody.
    """
    keyed = headers.get("authorization", "").lower().startswith("bearer ") or "x-api-key" in headers
    if keyed and "cookie" not in headers:
        return True
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or host_of(origin) == headers.get("host")


def host_of(address: str) -> str:
    """Return the host of an address as it is written, with its port; nothing for what is no address."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def add_headers(headers: MutableHeaders, nonce: str) -> None:
    """Add what browsers are told about a page, where it does not say so itself."""
    headers.setdefault("Content-Security-Policy", _POLICY.format(nonce=nonce))
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Referrer-Policy", "same-origin")
    headers.setdefault("Cache-Control", "no-store")
