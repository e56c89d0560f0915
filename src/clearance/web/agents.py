"""Agents over HTTP: those that the breaker has parked, and letting one go on."""

from fastapi import APIRouter, Response

from clearance import breaker
from clearance.errors import ForbiddenError
from clearance.people import AGENTS_PROPOSE, Kind, may_see
from clearance.reading import parked_record
from clearance.store import parking
from clearance.web.access import Caller, Workspace
from clearance.web.bodies import StrictRoute
from clearance.web.problems import refusals
from clearance.web.records import ParkedPage, ResumedRecord, exact

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["agents"])


@router.get("/agents/parked", response_model=ParkedPage)
def parked(here: Workspace, by: Caller) -> Response:
    """List the agents that are parked, of those that the caller may see."""
    with here.database.read() as tx:
        found = parking.every(tx)
    return exact({"parked": [parked_record(each) for each in found if may_see(by, requester=each.agent)]})


@router.post("/agents/{agent}/resume", response_model=ResumedRecord, responses=refusals(403, 404, 409))
def resume(here: Workspace, by: Caller, agent: str) -> Response:
    """Let a parked agent go on, as an operator."""
    if by.kind is Kind.AGENT:
        raise ForbiddenError(AGENTS_PROPOSE)
    breaker.resume(here.database, agent, by=by.id)
    return exact({"resumed": agent})
