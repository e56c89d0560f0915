"""Bodies: what may be sent over HTTP: little, JSON, and read strictly, or refused before anything reads it.

Numbers keep their kind: 48250.0 is not 48250, and integers have any size; arguments come in exactly as sent.
"""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import StringConstraints
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearance.errors import InvalidInputError
from clearance.toolcall import parse_arguments
from clearance.web.access import in_one_thread

MAX_BODY = 1_500_000
"""Bytes that a request may have: the largest message (1 MiB), with what JSON's escapes may add to it."""

Words = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""A text of people that every database keeps: one without null characters."""

_OF_ONE = {"are": "is", "hold": "holds", "give": "gives"}
_TAKES_BODY = frozenset({"POST", "PUT", "PATCH"})


class BodyLimit:
    """Refuses a body that is larger than `MAX_BODY`, whether it says so or not."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in, and answer 413 when it is too much."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > MAX_BODY:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)


class StrictRequest(Request):
    """A request whose JSON is read by the product's own rules: no NaN, no repeated keys."""

    async def json(self) -> Any:
        """Return the body, which must be one JSON object; `InvalidInputError` says what is wrong with it."""
        if not hasattr(self, "_strict"):
            self._strict = _read(await self.body())
        return self._strict


class StrictRoute(APIRoute):
    """A route that takes JSON only, and reads it strictly."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, in_one_thread(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, behind the checks."""
        handler = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if "\0" in request.url.path or b"%00" in request.scope["query_string"]:
                raise InvalidInputError("An address holds no null characters.")
            strict = StrictRequest(request.scope, request.receive)
            if request.method in _TAKES_BODY and await strict.body():
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    raise HTTPException(415)
                # Here, because an error inside FastAPI's own reading would lose its words.
                await strict.json()
            return await handler(strict)

        return checked


def _read(body: bytes) -> Any:
    try:
        return parse_arguments(body.decode("utf-8"), limit=MAX_BODY)
    except UnicodeDecodeError:
        raise InvalidInputError("The body is not UTF-8.") from None
    except InvalidInputError as error:
        verb, _, rest = str(error).removeprefix("The arguments ").partition(" ")
        raise InvalidInputError(f"The body {_OF_ONE.get(verb, verb)} {rest}") from None
