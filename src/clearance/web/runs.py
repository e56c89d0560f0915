"""Runs over HTTP: the list, one of them, ending one early."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from clearance import turns
from clearance.credential import Scope
from clearance.errors import NotFoundError
from clearance.people import Person, may_see, sees_only
from clearance.reading import run_record
from clearance.run import Run, RunState
from clearance.store import runs, secret_parts
from clearance.store.listing import RunFilter, newest_runs
from clearance.web.access import Caller, Workspace, allow_taking_back, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.paging import DATED, PAGE, Cursor, Cursors, Limit
from clearance.web.problems import refusals
from clearance.web.records import RunPage, RunRecord, exact, exact_text
from clearance.web.repeats import IdempotencyKey, answered

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["runs"])

_NEWEST = Cursors("runs", DATED)


class Cancelled(BaseModel):
    """Why a run is ended."""

    model_config = ConfigDict(extra="forbid")

    reason: Words = Field(default="", max_length=2000, description="It is kept with the run.")


@router.get("/runs", response_model=RunPage)
def list_runs(
    here: Workspace,
    by: Caller,
    *,
    state: Annotated[
        list[RunState] | None, Query(description="Only in these states; default: in any.")
    ] = None,
    program: str | None = None,
    requester: str | None = None,
    thread: str | None = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> Response:
    """List runs, the newest first."""
    wanted = RunFilter(
        program=program,
        requester=requester,
        asked_by=sees_only(by),
        thread_id=thread,
    )
    states = tuple(dict.fromkeys(state or ()))
    with here.database.read() as tx:
        page = newest_runs(tx, wanted, states=states, after=_NEWEST.place(cursor), limit=limit)
        known = runs.by_id(tx, page.ids)
        found = secret_parts.veiled(tx, [known[each] for each in page.ids])
    return exact({"runs": [run_record(each) for each in found], "next": _NEWEST.text(page.after)})


@router.get("/runs/{run_id:path}", response_model=RunRecord)
def show_run(here: Workspace, by: Caller, run_id: str) -> Response:
    """Return one run as it is now."""
    with here.database.read() as tx:
        [found] = secret_parts.veiled(tx, [seen(runs.run(tx, run_id), by=by)])
    return exact(run_record(found))


@router.post("/runs/{run_id:path}/cancel", response_model=RunRecord, responses=refusals(403, 409))
@needs(Scope.PROPOSE, Scope.MANAGE)
def cancel(
    here: Workspace,
    by: Caller,
    run_id: str,
    body: Cancelled | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """End a run early, as who asked for it or as an operator.

    What waits for people is withdrawn; what was cleared and has not started never starts.
    """
    with here.database.read() as tx:
        allow_taking_back(tx, by, requester=seen(runs.run(tx, run_id), by=by).requester)
    reason = body.reason if body is not None and body.reason.strip() else f"{by.name} ended it."
    text = answered(
        here.database,
        idempotency_key,
        lambda once: turns.cancel(here.ledger, run_id, by=by.id, reason=reason, once=once),
        by=by,
        route=f"runs/{run_id}/cancel",
        said=body,
        answer=lambda tx, after: exact_text(run_record(*secret_parts.veiled(tx, [after]))),
    )
    return Response(text, media_type="application/json")


def seen(run: Run, *, by: Person) -> Run:
    """Return the run; for who may not see it there is none."""
    if not may_see(by, requester=run.requester):
        raise NotFoundError(f"There is no run {run.id}.")
    return run
