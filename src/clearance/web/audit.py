"""The trail over HTTP: its entries by number, how far it is sealed, whether it was changed, and all of it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from clearance import proof
from clearance.export import entry_record, export_lines, report_record
from clearance.notary import published_keys
from clearance.people import sees_only
from clearance.store import audit
from clearance.store.pages import LOOK_AT
from clearance.store.trail import Trail, trail
from clearance.store.trailing import Wanted, by_actor, of_viewer
from clearance.tampering import ProblemKind
from clearance.web.access import Caller, PersonOnly, Workspace
from clearance.web.bodies import StrictRoute
from clearance.web.paging import PAGE, Limit
from clearance.web.records import Record, exact
from clearance.workspace import PRIVATE, Clearance

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["audit"])

JSON_LINES = "application/jsonl"
_MOST = 2**53 - 1


class EntryRecord(Record):
    """One thing that happened, with the hash over it."""

    type: Literal["entry"]
    seq: int
    id: str
    time: datetime
    kind: str = Field(description="`docs/audit.md` lists them; newer versions may write others.")
    subject: str
    actor: str
    facts: dict[str, Any] = Field(
        description="Never arguments: fingerprints and salted hashes stand for them."
    )
    hash: str


class Entries(Record):
    """A part of the trail."""

    entries: list[EntryRecord]
    next_after: int = Field(description="`after` of the next page; filtered pages may be short, or empty.")
    last_seq: int = Field(description="The last number given. At `next_after` = `last_seq` there is no more.")


class Head(Record):
    """How far the trail is."""

    last_seq: int
    sealed_to: int
    head: str = Field(
        description="The last seal, `number:hash`: kept elsewhere, it shows a later cut. Or empty."
    )
    waiting: bool = Field(description="Whether entries wait for their number.")


class Fault(Record):
    """One place where the trail is not what was written."""

    kind: ProblemKind
    message: str
    seq: int | None
    seal: int | None
    line: int | None


class Report(Record):
    """What a check of the whole trail found."""

    ok: bool
    authenticated: bool
    entries: int
    sealed_to: int
    unsealed: int
    head: str
    summary: str
    problems: list[Fault]
    found: int


@router.get("/audit", response_model=Entries)
def entries(
    here: Workspace,
    by: Caller,
    *,
    after: Annotated[int, Query(ge=0, le=_MOST, description="The number to begin after.")] = 0,
    kind: Annotated[list[str] | None, Query(description="Only of these kinds.")] = None,
    actor: str | None = None,
    subject: Annotated[str | None, Query(description="Only about this run, review or call.")] = None,
    limit: Limit = PAGE,
) -> Response:
    """List entries in their order. Only what has a number is there; a worker gives it within a moment."""
    where = [*of_viewer(Wanted(), asked_by=sees_only(by))]
    if actor is not None:
        where.append(by_actor(actor))
    with here.database.read() as tx:
        last = audit.last_seq(tx)
        # A subject has an index; other filters look at so many entries for one page, and no more.
        until = last if subject is not None else min(last, after + LOOK_AT)
        where.append(audit.up_to(until))
        found = audit.read_after(tx, after, limit=limit, kinds=kind, subject=subject, where=where)
    reached = found[-1].seq if len(found) == limit else until
    page = [entry_record(entry) for entry in found]
    return exact({"entries": page, "next_after": max(after, reached or 0), "last_seq": last})


@router.get("/audit/head", response_model=Head)
def head(here: Workspace, _: PersonOnly) -> Response:
    """Tell how far the trail is numbered and sealed."""
    with here.database.read() as tx:
        standing = audit.standing(tx)
        seals = audit.read_seals(tx, max(standing.last_seal - 1, 0), limit=1)
    return exact(
        {
            "last_seq": standing.last_seq,
            "sealed_to": standing.sealed_to,
            "head": seals[0].head if seals else "",
            "waiting": standing.waiting,
        }
    )


@router.get("/audit/verify", response_model=Report)
def verify(
    here: Workspace,
    _: PersonOnly,
    *,
    expect_head: Annotated[
        str | None, Query(max_length=100, description="A seal noted elsewhere, as `head` names it.")
    ] = None,
) -> Response:
    """Check the whole trail, with the workspace's own key. For proof, check an export elsewhere."""
    return exact(report_record(checked(here, expect_head=expect_head)))


@router.get(
    "/audit/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "JSON lines, as `docs/audit.md` has them; `clearance audit verify` checks them.",
            "content": {JSON_LINES: {"schema": {"type": "string"}}},
        }
    },
)
def export(here: Workspace, _: PersonOnly) -> StreamingResponse:
    """Give the whole trail, to be checked far from here."""
    return StreamingResponse(lines(trail(here.database)), media_type=JSON_LINES)


def checked(here: Clearance, *, expect_head: str | None = None) -> proof.Report:
    """Check the whole trail with the workspace's own key. It takes as long as the trail is."""
    stored = trail(here.database)
    return proof.verify(
        stored.entries,
        stored.seals,
        public_key=published_keys(here.home / PRIVATE / "notary.key"),
        expect_head=expect_head,
        extent=stored.extent,
    )


def lines(stored: Trail) -> Iterator[bytes]:
    """Yield the lines of an export."""
    yield from export_lines(stored.entries, stored.seals, extent=stored.extent)
