"""The application: every route, behind the same checks, over one workspace."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

from clearance.web import audit, calls, document, events, health, me, metrics, reviews, runs, threads, turns
from clearance.web.bodies import BodyLimit
from clearance.web.changes import Changes
from clearance.web.problems import add_problems
from clearance.workspace import Clearance

API = "/api/v1"

ROUTERS = (
    me.router,
    calls.router,
    reviews.router,
    threads.router,
    threads.aliases,
    turns.router,  # before `runs`: an id may hold slashes
    runs.router,
    audit.router,
    events.router,
    metrics.router,
    health.router,
)


def create_app(workspace: Clearance, *, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """Return the application for a workspace, which stays open as long as it serves.

    `routers` are those of programs that have routes of their own.

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
    add_problems(app)
    app.add_middleware(BodyLimit)
    metrics.add_measuring(app)
    for router in (*ROUTERS, *routers):
        app.include_router(router)
    document.describe(app)
    return app


@asynccontextmanager
async def _watching(app: FastAPI) -> AsyncIterator[None]:
    changes: Changes = app.state.changes
    changes.start()
    try:
        yield
    finally:
        changes.stop()
