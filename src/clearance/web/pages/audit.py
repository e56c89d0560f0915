"""The page of the trail: what happened, in words; whether it was changed; all of it as a file."""

import threading
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from clearance.audit import AuditKind
from clearance.errors import ForbiddenError
from clearance.people import Role, has_role
from clearance.proof import Report
from clearance.store import audit
from clearance.store.looking_back import EntryFilter, newest_entries
from clearance.store.trail import trail
from clearance.web.access import Workspace, check_sight
from clearance.web.audit import JSON_LINES, checked, lines
from clearance.web.pages.rendering import render
from clearance.web.pages.telling import told
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.paging import PAGE
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

_ONE_CHECK = threading.Lock()
"""Held by the one check that runs in this process: it reads the whole trail, and needs a processor."""
_LAST_DAY = date(9999, 12, 30)


@dataclass(frozen=True)
class Asked:
    """Which entries a viewer wants, by its address. `since` and `until` are days in UTC, both wanted."""

    actor: str = ""
    kind: str = ""
    target: str = ""
    since: str = ""
    until: str = ""
    below: str = ""

    @classmethod
    def read(cls, query: str) -> "Asked":
        """Return what the query of an address says; what makes no sense counts as not said."""
        said = {
            name: value.replace("\0", "").strip()
            for name, value in parse_qsl(query)
            if name in cls.__dataclass_fields__
        }
        found = cls(**said)
        days = {name: "" for name in ("since", "until") if _day(getattr(found, name)) is None}
        number = found.below.isascii() and found.below.isdigit() and len(found.below) <= 15
        return replace(found, **days, below=found.below if number else "")

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.actor or self.kind or self.target or self.since or self.until)

    def address(self, **changes: str) -> str:
        """Return the address of this list, with changes; without `below` its first page."""
        said = {**self.__dict__, "below": "", **changes}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/audit?{query}" if query else "/audit"

    def wanted(self) -> EntryFilter:
        """Return the filter of the store."""
        since, until = _day(self.since), _day(self.until)
        exact = ":" in self.kind
        return EntryFilter(
            actor=self.actor or None,
            kind=self.kind if exact else None,
            family=None if exact else self.kind or None,
            subject=self.target or None,
            since=since,
            before=None if until is None else until + timedelta(days=1),
        )


@router.get("/audit")
def show(request: Request, here: Workspace, viewer: Signed) -> Response:
    """Show entries of the trail, the newest first."""
    return _page(request, here, viewer, Asked.read(request.url.query))


@router.post("/audit/verify")
def verify(request: Request, here: Workspace, viewer: Signed, form: Form) -> Response:
    """Check the whole trail with the workspace's own key, and say what was found."""
    asked = Asked.read(form.get("back", ""))
    check_sight(viewer.person)
    if not _ONE_CHECK.acquire(blocking=False):
        busy = "A check of the trail is running already. Wait until it has ended, then repeat this."
        return _page(request, here, viewer, asked, status=409, alert=busy)
    try:
        report = checked(here)
    finally:
        _ONE_CHECK.release()
    return _page(request, here, viewer, asked, report=report)


@router.get("/audit/export")
def export(here: Workspace, viewer: Signed) -> StreamingResponse:
    """Send the whole trail as JSON lines, to be checked far from here."""
    if not has_role(viewer.person, Role.OPERATOR):
        raise ForbiddenError(
            f"You are a {viewer.person.role} here. Exporting the whole trail needs the role operator."
        )
    headers = {"Content-Disposition": 'attachment; filename="trail.jsonl"'}
    return StreamingResponse(lines(trail(here.database)), media_type=JSON_LINES, headers=headers)


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    asked: Asked,
    *,
    status: int = 200,
    report: Report | None = None,
    alert: str | None = None,
) -> Response:
    check_sight(viewer.person)
    below = int(asked.below) if asked.below else None
    with here.database.read() as tx:
        found, page = newest_entries(tx, asked.wanted(), below=below, limit=PAGE)
        standing = audit.standing(tx)
        seals = audit.read_seals(tx, max(standing.last_seal - 1, 0), limit=1)
        context: dict[str, Any] = {"told": told(tx, found), "standing": standing}
    full = len(found) == PAGE
    return render(
        request,
        "audit.html",
        viewer=viewer,
        status=status,
        asked=asked,
        report=report,
        alert=alert,
        head=_head(seals[0].head) if seals else None,
        proven=_head(report.head) if report is not None and report.head else None,
        looked_at=None if full or page.after is None else page.looked_at,
        next=None if page.after is None else asked.address(below=str(page.after)),
        families=_families(),
        may_export=has_role(viewer.person, Role.OPERATOR),
        **context,
    )


def _head(head: str) -> tuple[int, str]:
    """Return a seal's number and the beginning of its hash."""
    number, _, digest = head.partition(":")
    return int(number), digest[:6]


def _families() -> dict[str, list[str]]:
    found = defaultdict(list)
    for kind in AuditKind:
        found[kind.partition(":")[0]].append(kind.value)
    return dict(found)


def _day(text: str) -> datetime | None:
    """Return the beginning of a day in UTC, `2026-03-02`; None for any other text."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    in_reach = date(1970, 1, 2) <= day <= _LAST_DAY
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if in_reach else None
