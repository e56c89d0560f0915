"""Who am I: whose key was shown, and what that person may do here."""

from fastapi import APIRouter

from clearance.credential import Scope
from clearance.store import people
from clearance.web.access import Caller, Workspace
from clearance.web.bodies import StrictRoute
from clearance.web.records import Me

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["people"])


@router.get("/me")
def me(here: Workspace, by: Caller) -> Me:
    """Tell whose key was shown."""
    with here.database.read() as tx:
        mode = people.mode(tx)
    return Me(
        id=by.id,
        name=by.name,
        kind=by.kind,
        role=by.role,
        groups=list(by.groups),
        behind=by.behind,
        mode=mode,
        scopes=[each for each in Scope if each in by.scopes],
    )
