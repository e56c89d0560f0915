"""Failures as pages: what a browser is told, in words, where another client gets a problem."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import Scope

from clearance.errors import ClearanceError
from clearance.web.pages.guard import API, add_headers
from clearance.web.pages.rendering import nonce, render, wants_part

_Handler = Callable[[Request, Exception], Response | Awaitable[Response]]

TITLES = {
    400: "This could not be read",
    401: "Sign in first",
    403: "You may not do this",
    404: "There is nothing here",
    405: "This address does not take that",
    409: "Somebody was faster",
    413: "This is too large",
    415: "This is not what the page takes",
    422: "This cannot be taken as it is",
    429: "Too much at once",
    500: "Something is wrong inside clearance",
    503: "The database cannot be used now",
}
"""What a page of each failure is headed with."""
FROM_ELSEWHERE = (
    "This was sent from a page of another site, so nothing was done. Open the page here, and repeat it there."
)
_WORDS = {
    400: "What was sent is not a request that makes sense. Nothing was done.",
    404: "The address is wrong, or what was here is not for you to see.",
    405: "Nothing was done. Go on from the inbox.",
    413: "Nothing was done. Send less.",
    415: "Nothing was done. Send the form of the page.",
    429: "Nothing was done. Wait a little, or close other windows of yours, and try again.",
    500: "This is not your mistake, and it was noted. Look whether it was done before you repeat it.",
}


def add_failures(app: FastAPI) -> None:
    """Answer browsers by a page where the application's handlers answer by a problem."""
    for kind in (ClearanceError, RequestValidationError, HTTPException, Exception):
        app.exception_handlers[kind] = _with_page(cast(_Handler, app.exception_handlers[kind]))


def refused(scope: Scope) -> Response:
    """Return the answer to what a page of another site has sent. Nobody's session is read for it."""
    request = Request(scope)
    if is_for_browser(request):
        return failure_page(request, 403, FROM_ELSEWHERE)
    return PlainTextResponse(FROM_ELSEWHERE, 403)


def is_for_browser(request: Request) -> bool:
    """Whether a person will look at the answer."""
    return not request.url.path.startswith(API) and "text/html" in request.headers.get("Accept", "")


def failure_page(
    request: Request, status: int, words: str, *, headers: dict[str, str] | None = None
) -> Response:
    """Return the page of a failure. Where htmx renews a part of a page, that part stays as it is."""
    title = TITLES.get(status, HTTPStatus(status).phrase)
    answer = render(request, "failure.html", status=status, title=title, words=words, code=status)
    answer.headers.update(headers or {})
    # What went wrong inside is answered outside of the guard.
    add_headers(answer.headers, nonce(request))
    if wants_part(request):
        answer.headers["HX-Reswap"] = "none"
    return answer


def _with_page(handler: _Handler) -> _Handler:
    async def handled(request: Request, error: Exception) -> Response:
        plain = await _answered(handler, request, error)
        if not is_for_browser(request):
            return plain
        status = plain.status_code
        words = str(error) if isinstance(error, ClearanceError) else ""
        kept = {name: plain.headers[name] for name in ("Allow", "Retry-After") if name in plain.headers}
        return failure_page(request, status, words or _WORDS.get(status, ""), headers=kept)

    return handled


async def _answered(handler: _Handler, request: Request, error: Exception) -> Response:
    found: Any = await run_in_threadpool(handler, request, error)
    return cast(Response, await found if isinstance(found, Awaitable) else found)
