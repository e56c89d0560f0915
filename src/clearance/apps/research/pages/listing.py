"""The list of research runs, and the form that starts one."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from clearance.apps.research.pages.addresses import HERE, TEMPLATES, address
from clearance.apps.research.plan_calls import PROGRAM
from clearance.apps.research.records import short_record
from clearance.apps.research.research_request import ResearchRequest, check_request
from clearance.apps.research.routes_shared import Runs
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.sources.organisms import ORGANISMS
from clearance.apps.research.sources.shipped_genes import shipped_symbols
from clearance.errors import InvalidInputError
from clearance.ledger import new_id
from clearance.once import Once, Repeated
from clearance.people import sees_only
from clearance.run import Run, RunState
from clearance.store import runs
from clearance.store.listing import RunFilter, newest_runs
from clearance.web.access import Workspace
from clearance.web.pages.rendering import render
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import FormWithFile, Signed, Viewer
from clearance.web.paging import DATED, PAGE, Cursors
from clearance.web.repeats import once
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

CHIPS: Mapping[str, tuple[RunState, ...]] = {
    "waiting": (RunState.WAITING,),
    "at work": (RunState.QUEUED, RunState.RUNNING),
    "done": (RunState.DONE,),
    "failed": (RunState.FAILED,),
    "cancelled": (RunState.CANCELLED,),
}
"""What the list can be narrowed to."""
_NEWEST = Cursors("pipeline", DATED)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True)
class Wanted:
    """The form of a new run as it was filled in; `errors` are by the names of its fields."""

    symbol: str = ""
    objective: str = ""
    organism: str = "human"
    fasta: str = ""
    offline: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def request(self) -> ResearchRequest:
        """The same as the pipeline takes it."""
        return ResearchRequest(
            symbol=self.symbol.strip(),
            objective=self.objective.strip(),
            organism=self.organism,
            fasta=self.fasta if self.fasta.strip() else None,
            offline=self.offline,
        )


@router.get(HERE)
def show_list(request: Request, here: Workspace, research: Runs, viewer: Signed) -> Response:
    """List research runs, the newest first. What the address says of a new run stands in its form."""
    asked = dict(parse_qsl(request.url.query))
    wanted = Wanted(
        symbol=asked.get("symbol", ""),
        objective=asked.get("objective", ""),
        organism=asked.get("organism", "human"),
        offline="offline" in asked,
    )
    return _page(request, here, research, viewer, wanted=wanted)


@router.post(f"{HERE}/new")
def start(request: Request, here: Workspace, research: Runs, viewer: Signed, form: FormWithFile) -> Response:
    """Start a run, and go to its page."""
    wanted = _filled_in(form)
    errors = _faults(wanted)
    token = form.get("token", "")
    only: Once[Run] | None = once(
        token if _TOKEN.fullmatch(token) else None,
        by=viewer.person,
        route="pages/pipeline",
        said=None,
        answer=lambda _, run: run.id,
        more=wanted.request.text,
    )
    try:
        if errors:
            raise InvalidInputError("")
        run_id = research.start(wanted.request, run_id=new_id(), by=viewer.person.id, once=only).id
    except Repeated as repeated:
        run_id = repeated.answer
    except InvalidInputError as error:
        told = replace(wanted, errors=errors or {"": str(error)})
        return _page(request, here, research, viewer, wanted=told, status=422)
    return RedirectResponse(address(run_id), 303)


def _page(
    request: Request,
    here: Clearance,
    research: ResearchRuns,
    viewer: Viewer,
    *,
    wanted: Wanted,
    status: int = 200,
) -> Response:
    asked = dict(parse_qsl(request.url.query))
    chip = asked["state"] if asked.get("state") in CHIPS else ""
    states = CHIPS.get(chip, ())
    with here.database.read() as tx:
        place = _NEWEST.place(asked.get("cursor"))
        wanted_runs = RunFilter(program=PROGRAM, asked_by=sees_only(viewer.person))
        page = newest_runs(tx, wanted_runs, states=states, after=place, limit=PAGE)
        found = runs.by_id(tx, page.ids)
        now = here.database.now(tx)
    cursor = _NEWEST.text(page.after)
    return render(
        request,
        f"{TEMPLATES}:list.html",
        viewer=viewer,
        status=status,
        part="runs",
        rows=[_row(research, found[each]) for each in page.ids],
        now=now,
        chips=tuple(CHIPS),
        chip=chip,
        this=_narrowed(chip, cursor=asked.get("cursor")),
        first=_narrowed(chip) if asked.get("cursor") else None,
        next=_narrowed(chip, cursor=cursor) if cursor else None,
        wanted=wanted,
        begins=bool(wanted.errors or wanted.symbol or not (page.ids or chip)),
        symbols=shipped_symbols(),
        organisms=tuple(ORGANISMS),
        token=secrets.token_urlsafe(18),
    )


def _row(research: ResearchRuns, run: Run) -> dict[str, Any]:
    told = short_record(research, run)
    return {**told, "run": run, "address": address(run.id), "waits_at": waits_at(run, told["stage"])}


def waits_at(run: Run, stage: str) -> str | None:
    """Return the gate at which a run waits."""
    gates = {"hitl_plan_pending": "S4_plan", "hitl_execute_pending": "S5_execute"}
    return gates.get(stage) if run.state is RunState.WAITING else None


def _narrowed(chip: str, *, cursor: str | None = None) -> str:
    query = {name: text for name, text in (("state", chip), ("cursor", cursor)) if text}
    return f"{HERE}?{urlencode(query)}" if query else HERE


def _filled_in(form: Submitted) -> Wanted:
    """Return what was sent; a file that was chosen counts before a text that was typed."""
    file = form.get("file", "")
    return Wanted(
        symbol=form.get("symbol", ""),
        objective=form.get("objective", ""),
        organism=form.get("organism", "human"),
        fasta=file if file.strip() else form.get("fasta", ""),
        offline="offline" in form,
    )


def _faults(wanted: Wanted) -> dict[str, str]:
    """Return what could never become a run, by the field that it stands in."""
    found = {}
    try:
        check_request(wanted.request)
    except InvalidInputError as error:
        found = {each.pointer[1:]: each.message.replace("--fasta", "FASTA below") for each in error.faults}
    if not found and any("\0" in text for text in (wanted.symbol, wanted.objective, wanted.fasta)):
        found[""] = "A text here holds a null character, which cannot be kept."
    return found
