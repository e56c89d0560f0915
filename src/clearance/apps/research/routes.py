"""Research runs over HTTP: started, looked at, decided at their gates, followed.

Who may see what is asked here of every route; what is done is what `ResearchRuns` does at every door.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from clearance.apps.research import pages, wire
from clearance.apps.research.plan import Plan
from clearance.apps.research.plan_calls import PROGRAM
from clearance.apps.research.records import diff_record, file_record, run_record, short_record
from clearance.apps.research.routes_acting import router as acting
from clearance.apps.research.routes_acting import stream_of
from clearance.apps.research.routes_shared import STREAM, RunId, Runs, file_answer, seen, with_research
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.streaming import OVER, Place
from clearance.errors import NotFoundError
from clearance.people import sees_only
from clearance.store import runs
from clearance.store.listing import RunFilter, newest_runs
from clearance.web.access import Caller, Shown, Workspace
from clearance.web.bodies import StrictRoute
from clearance.web.paging import DATED, PAGE, Cursor, Cursors, Limit
from clearance.web.problems import refusals
from clearance.web.records import exact

router = APIRouter(prefix="/api/v1/pipeline", route_class=StrictRoute, tags=["pipeline"])

_NEWEST = Cursors("pipeline", DATED)


def routers_of(research: ResearchRuns) -> list[APIRouter]:
    """Return the routes over the research runs of a workspace."""
    whole = APIRouter(dependencies=[Depends(with_research(research))])
    for each in (router, acting, *pages.routers()):
        whole.include_router(each)
    return [whole]


@router.get("", response_model=wire.PipelinePage)
def list_pipelines(
    here: Workspace, research: Runs, by: Caller, *, cursor: Cursor = None, limit: Limit = PAGE
) -> Response:
    """List research runs, the newest first."""
    wanted = RunFilter(program=PROGRAM, asked_by=sees_only(by))
    with here.database.read() as tx:
        page = newest_runs(tx, wanted, states=(), after=_NEWEST.place(cursor), limit=limit)
        found = runs.by_id(tx, page.ids)
    told = [short_record(research, found[each]) for each in page.ids]
    return exact({"runs": told, "next": _NEWEST.text(page.after)})


@router.get("/{run_id}", response_model=wire.PipelineRecord)
def show_pipeline(research: Runs, by: Caller, run_id: RunId) -> Response:
    """Return a run as it is now: its stages, what it waits for, its files."""
    seen(research, run_id, by=by)
    return exact(run_record(research, run_id))


@router.get("/{run_id}/plan", response_model=wire.PlanRecord)
def show_plan(
    research: Runs,
    by: Caller,
    run_id: RunId,
    version: Annotated[int | None, Query(ge=1, le=1000, description="Default: the newest.")] = None,
) -> Response:
    """Return a plan, with its sha256 as the `ETag`: a decision names that."""
    seen(research, run_id, by=by)
    plan = _plan(research, run_id, version)
    told = {"run_id": run_id, "version": plan.version, "plan_sha256": plan.sha256, "plan": plan.document()}
    return exact(told, headers={"ETag": f'"{plan.sha256}"'})


@router.get("/{run_id}/diff", response_model=wire.PlanDiffRecord)
def show_diff(research: Runs, by: Caller, run_id: RunId) -> Response:
    """Return what changed in the plan that waits since the version that you decided on last."""
    seen(research, run_id, by=by)
    waiting = research.waiting(run_id, seen_by=by.id)
    if waiting is None:
        raise NotFoundError(f"Run {run_id} waits for no decision, so there is nothing to compare.")
    return exact(diff_record(run_id, waiting))


@router.get("/{run_id}/artifacts", response_model=wire.Artifacts)
def list_artifacts(research: Runs, by: Caller, run_id: RunId) -> Response:
    """List the files of a run, by name."""
    seen(research, run_id, by=by)
    return exact({"run_id": run_id, "files": [file_record(each) for each in research.store.files(run_id)]})


@router.get(
    "/{run_id}/artifacts/{name:path}",
    response_class=Response,
    responses={
        200: {
            "description": "The file, byte for byte, with its own content type.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        304: {"description": "It is the file that you have."},
    },
)
def artifact(
    here: Workspace,
    research: Runs,
    by: Caller,
    run_id: RunId,
    name: Annotated[str, Path(max_length=500)],
    *,
    if_none_match: Annotated[str | None, Header(max_length=2000)] = None,
) -> Response:
    """Return a file of a run, with its sha256 as the `ETag`. What is read is the kept row, and no folder."""
    seen(research, run_id, by=by)
    return file_answer(here, run_id, name, known=if_none_match)


@router.get("/{run_id}/events", response_class=Response, responses={**STREAM, **refusals(429)})
async def follow(
    request: Request,
    here: Workspace,
    research: Runs,
    shown: Shown,
    by: Caller,
    run_id: RunId,
    *,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="The id of the last frame that came.")
    ] = None,
) -> Response:
    """Stream what a run comes to, from its beginning or from a frame on, until it has ended.

    With the id of its last frame there is nothing more to send: 204.
    """
    from starlette.concurrency import run_in_threadpool

    await run_in_threadpool(lambda: seen(research, run_id, by=by))
    if last_event_id == OVER:
        return Response(status_code=204)
    release = request.app.state.streams.take(by)
    return stream_of(
        request,
        here,
        shown,
        run_id,
        place=Place.read(last_event_id),
        to_the_end=True,
        release=release,
    )


def _plan(research: ResearchRuns, run_id: str, version: int | None) -> Plan:
    newest = research.state(run_id).plan_version
    if newest == 0:
        raise NotFoundError(f"Run {run_id} has no plan yet.")
    if version is not None and version > newest:
        raise NotFoundError(f"Run {run_id} has no plan {version}; the newest is {newest}.")
    return research.store.plan(run_id, version or newest)
