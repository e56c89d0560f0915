"""Health: what a load balancer asks. Nobody needs a key for it, and it tells nothing but how it stands."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from clearance.web.access import Workspace

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """How the process stands."""

    status: Literal["ok"] = "ok"


@router.get("/healthz")
def healthz() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/readyz")
def readyz(here: Workspace) -> Health:
    """Say that the database answers too; 503 when it does not."""
    with here.database.read() as tx:
        here.database.now(tx)
    return Health()
