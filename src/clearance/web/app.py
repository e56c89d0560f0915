"""The application: every route, behind the same checks, over one workspace."""

from fastapi import FastAPI

from clearance.web import health
from clearance.web.bodies import BodyLimit
from clearance.web.problems import Problem, add_problems
from clearance.workspace import Clearance

API = "/api/v1"


def create_app(workspace: Clearance) -> FastAPI:
    """Return the application for a workspace, which stays open as long as it serves.

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
        responses={code: {"model": Problem} for code in (401, 403, 404, 409, 413, 415, 422, 503)},
    )
    app.state.workspace = workspace
    add_problems(app)
    app.add_middleware(BodyLimit)
    for router in (health.router,):
        app.include_router(router)
    return app
