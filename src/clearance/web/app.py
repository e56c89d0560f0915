"""The application: every route, behind the same checks, over one workspace."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from clearance.web import (
    agents,
    agui,
    audit,
    calls,
    channels,
    document,
    events,
    health,
    langgraph_server,
    me,
    metrics,
    pages,
    reviews,
    runs,
    standing,
    threads,
    turns,
)
from clearance.web.bodies import BodyLimit
from clearance.web.changes import Changes
from clearance.web.frontends import FrontEndOrigins
from clearance.web.langgraph_server.states import LastShown
from clearance.web.pace import Pace
from clearance.web.problems import add_problems
from clearance.workspace import Clearance

API = "/api/v1"

ROUTERS = (
    me.router,
    calls.router,
    reviews.router,
    standing.router,
    agents.router,
    threads.router,
    threads.aliases,
    turns.router,  # before `runs`: an id may hold slashes
    runs.router,
    channels.router,
    audit.router,
    events.router,
    metrics.router,
    health.router,
    *langgraph_server.ROUTERS,
    agui.router,
)


def create_app(
    workspace: Clearance, *, routers: Sequence[APIRouter] = (), origins: Sequence[str] = ()
) -> FastAPI:
    """Return the application for a workspace, which stays open as long as it serves.

    `routers` are those of programs that have routes of their own; `origins` are those of front ends of others
    whose pages may read what their doors answer.

    Runs are advanced by workers, in this process or in others; the application itself runs no tool.
    """
    import clearance

    app = FastAPI(
        title="Clearance",
        version=clearance.__version__,
        description="Agents propose; people decide; nothing runs but what a person cleared.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        lifespan=_watching,
    )
    app.state.workspace = workspace
    app.state.changes = Changes(workspace.database)
    app.state.streams = events.Streams()
    app.state.noted = {}
    app.state.last_shown = LastShown()
    if workspace.person_decisions:
        workspace.gate.pace = Pace(workspace.person_decisions)
    add_problems(app)
    app.add_middleware(BodyLimit)
    pages.add_pages(app)
    metrics.add_measuring(app)
    app.add_middleware(FrontEndOrigins, origins=origins)
    app.router.routes.extend(_api_routes())
    for router in routers:
        app.include_router(router)
    app.router.routes.extend(_page_routes())
    document.describe(app)
    return app


@cache
def _api_routes() -> list[BaseRoute]:
    """Return the routes of the API. They are made once, which takes longer than to answer many requests."""
    return _routes_of(ROUTERS)


@cache
def _page_routes() -> list[BaseRoute]:
    return _routes_of(pages.routers())


def _routes_of(routers: Sequence[APIRouter]) -> list[BaseRoute]:
    whole = APIRouter()
    for router in routers:
        whole.include_router(router)
    return whole.routes


@asynccontextmanager
async def _watching(app: FastAPI) -> AsyncIterator[None]:
    changes: Changes = app.state.changes
    changes.start()
    try:
        yield
    finally:
        changes.stop()
