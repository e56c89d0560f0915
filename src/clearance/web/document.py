"""The OpenAPI document: every route with its answers and its refusals, which all have one shape."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from clearance.web.problems import Problem, refusals

_NEVER_MEANT = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> None:
    """Have the application describe itself, with every refusal that a route can answer with."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            app.openapi_schema = _with_refusals(made)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's documentation has it


def _with_refusals(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _NEVER_MEANT:
        schemas.pop(name, None)
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= {**problem.pop("$defs", {}), "Problem": problem}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            for code in _codes(path, method, operation):
                answers[str(code)] = refusals(code)[code]
    return document


def _codes(path: str, method: str, operation: dict[str, Any]) -> Iterator[int]:
    """Yield how a route may refuse, whatever it does: by who asks, by the address, by what is sent."""
    if operation.get("security"):
        yield from (401, 403)
    if "{" in path:
        yield 404
    if operation.get("parameters") or method == "post":
        yield 422
    if method == "post":
        yield from (409, 413, 415)
    if path != "/healthz":
        yield 503
