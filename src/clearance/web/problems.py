"""Problems: one shape for every refusal over HTTP (RFC 9457): a stable `code`, and what is wrong where."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from clearance.errors import (
    AgentParkedError,
    ClearanceError,
    Fault,
    InvalidInputError,
    KeyScopeError,
    ReviewClaimedError,
    ReviewConflictError,
    ReviewPendingError,
    RunFailedError,
    ThreadBusyError,
    TooManyDecisionsError,
    TooManyTriesError,
    UnauthorizedError,
    error_code,
)
from clearance.review import Review

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger(__name__)


class FieldProblem(BaseModel):
    """One thing that is wrong with what was sent."""

    pointer: str = Field(description="A JSON pointer to the place; empty: the whole.")
    detail: str


class Problem(BaseModel):
    """Why something was not done. Nothing of it was kept."""

    type: str = Field(description="`urn:clearance:problem:` and the code.")
    title: str
    status: int
    detail: str = Field(description="What is wrong, and what to do.")
    code: str = Field(description="A word that stays the same; `docs/http.md` lists them.")
    errors: list[FieldProblem] = []


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return how the OpenAPI document describes these refusals of a route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"description": HTTPStatus(code).phrase, "content": content} for code in codes}


def add_problems(app: FastAPI) -> None:
    """Answer every error of the application in this shape."""

    @app.exception_handler(ClearanceError)
    def _ours(_: Request, error: ClearanceError) -> JSONResponse:
        return answer(error)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        faults = [Fault(_pointer(_place(item, error.body)), str(item["msg"])) for item in error.errors()]
        return _response(422, "invalid_input", "What was sent cannot be taken.", faults=faults)

    @app.exception_handler(HTTPException)
    def _of_http(_: Request, error: HTTPException) -> JSONResponse:
        words = _WORDS.get(error.status_code)
        code, detail = words if words is not None else ("http", str(error.detail))
        return _response(error.status_code, code, detail, headers=error.headers)

    @app.exception_handler(Exception)
    def _bug(request: Request, error: Exception) -> JSONResponse:
        # The route, and not the address: that of a link in a message is a secret.
        route = getattr(request.scope.get("route"), "path", "(no route)")
        log.error("%s %s: %s", request.method, route, type(error).__name__, exc_info=error)
        return _response(500, "bug", "Something is wrong inside clearance; this is not your mistake.")


def answer(error: ClearanceError) -> JSONResponse:
    """Return the answer to an error of ours."""
    faults = error.faults if isinstance(error, InvalidInputError) else ()
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, UnauthorizedError) else None
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": "1"}
    if isinstance(error, TooManyTriesError | TooManyDecisionsError):
        headers = {"Retry-After": str(error.seconds)}
    more = _facts(error)
    return _response(error.status, error_code(error), str(error), faults=faults, headers=headers, more=more)


def _facts(error: ClearanceError) -> dict[str, Any]:
    """Return what a client needs to go on from here."""
    match error:
        case ReviewClaimedError():
            return {
                "review_id": error.review_id,
                "claim": {"by": error.person, "until": error.until.isoformat()},
            }
        case KeyScopeError():
            return {"scopes": [each.value for each in error.scopes]}
        case AgentParkedError():
            return {"agent": error.agent, "reason": error.reason}
        case ReviewPendingError():
            return {"review_id": error.review_id}
        case RunFailedError():
            return {"run_id": error.run_id}
        case ThreadBusyError():
            return {"thread_id": error.thread_id, "run_id": error.run_id}
        case ReviewConflictError():
            review = error.review
            return {
                "review_id": review.id,
                "version": review.version,
                "review_status": review.status.value,
                "decided": _decided(review),
            }
        case _:
            return {}


def _decided(review: Review) -> list[dict[str, str]]:
    return [
        {"call": call.key, "by": item.by, "type": item.type.value, "at": item.at.isoformat()}
        for call in review.calls
        for item in call.decisions
    ]


def _response(
    status: int,
    code: str,
    detail: str,
    *,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    problem = Problem(
        type=f"urn:clearance:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        errors=[FieldProblem(pointer=fault.pointer, detail=fault.message) for fault in faults],
    )
    content = {**problem.model_dump(), **(more or {})}
    return JSONResponse(content, status, dict(headers or {}), media_type=MEDIA_TYPE)


@contextmanager
def pointing_at(place: str, kind: type[InvalidInputError] = InvalidInputError) -> Iterator[None]:
    """Let the faults of errors of a kind point into the body, which has what is read here at `place`."""
    try:
        yield
    except kind as error:
        error.point_below(place)
        raise


def _place(fault: Mapping[str, Any], body: Any) -> list[int | str]:
    """Return where a fault is, without the names of the forms that were tried there: those are in no body."""
    first, *rest = fault["loc"]
    if first != "body":
        return [first, *rest]
    place: list[int | str] = ["body"]
    for number, part in enumerate(rest, 1):
        inside = _inside(body, part)
        if inside is not None:
            [body] = inside
        elif number < len(rest) or fault["type"] != "missing":
            continue
        place.append(part)
    return place


def _inside(body: Any, part: int | str) -> list[Any] | None:
    """Return, alone in a list, what stands in a part of a body; None where nothing does."""
    if isinstance(body, Mapping):
        return [body[part]] if part in body else None
    if isinstance(body, list) and isinstance(part, int):
        return body[part : part + 1] or None
    return None


def _pointer(place: Sequence[int | str]) -> str:
    """Return the place of a fault as a JSON pointer into the body; other places keep their first word."""
    parts = place[1:] if place and place[0] == "body" else place
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


_WORDS = {
    428: (
        "version_required",
        "Say which version of the review you saw: `version` in the body, or the header If-Match.",
    ),
    429: ("too_many_streams", "This person has as many streams open as they may. Close one of them first."),
    404: ("not_found", "There is nothing under this address."),
    501: (
        "not_installed",
        "This door needs an extra that is not installed: pip install 'clearance[agui]'.",
    ),
    413: ("too_large", "The body is too large."),
    415: ("wrong_type", "The body must be JSON: Content-Type: application/json."),
    405: (
        "method_not_allowed",
        "This address does not take that method; the header Allow says which.",
    ),
}
CODES = tuple((status, code) for status, (code, _) in _WORDS.items())
"""The status and the code of every problem that is no error of the product's own tree."""
