"""The pages of runs: all of them by what has become of them, and one with its calls and its trail."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance import turns
from clearance.errors import ConflictError
from clearance.outcome import CallState
from clearance.people import Role, has_role, sees_only
from clearance.reading import Whole, every, removed, said_in
from clearance.redaction import scrubbed, secret_texts
from clearance.review import ReviewKind, ReviewStatus
from clearance.run import Run, RunState, is_one_call
from clearance.store import around_runs, calls, reviews, runs, secret_parts
from clearance.store.around_runs import Stop
from clearance.store.calls import LedgerRow
from clearance.store.listing import RunFilter, newest_runs
from clearance.veil import veiled_run
from clearance.web.access import Workspace
from clearance.web.pages.rendering import leads_somewhere, render
from clearance.web.pages.telling import told
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.paging import DATED, PAGE, Cursors
from clearance.web.runs import seen
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

MOST_CALLS = 200
MOST_TOLD = 200
"""Calls, and entries of the trail, that the page of one run shows."""
_LONGEST_NAME = 120
_MOST_REASON = 2000
_NEWEST = Cursors("runs-page", DATED)


@dataclass(frozen=True)
class Line:
    """One run in the list. `about` is what was said to begin it, in short."""

    run: Run
    about: str
    href: str
    stops: Sequence[Stop]
    waited: timedelta | None
    deciders: Sequence[str]


@dataclass(frozen=True)
class Call:
    """One call of a run. `result` has masks in it; `outcome` is the review that asks what became of it."""

    row: LedgerRow
    result: str | None
    review: str | None
    outcome: str | None
    decisions: Sequence[tuple[str, str, datetime]]


@router.get("/runs")
def list_runs(
    request: Request, here: Workspace, viewer: Signed, state: str = "", program: str = "", cursor: str = ""
) -> Response:
    """List runs, the newest first."""
    states = (RunState(state),) if state in tuple(RunState) else ()
    wanted = RunFilter(program=program.replace("\0", "") or None, asked_by=sees_only(viewer.person))
    with here.database.read() as tx:
        page = newest_runs(tx, wanted, states=states, after=_NEWEST.place(cursor or None), limit=PAGE)
        lines = _lines(tx, page.ids, now=here.database.now(tx))
        now = here.database.now(tx)
    following = _NEWEST.text(page.after)
    return render(
        request,
        "runs.html",
        viewer=viewer,
        part="runs",
        lines=lines,
        now=now,
        state=state if states else "",
        program=program,
        states=[each.value for each in RunState],
        here=_address(state, program, cursor),
        address=_address,
        first=_address(state, program) if cursor else None,
        next=following and _address(state, program, following),
    )


@router.get("/runs/{run_id:path}")
def show(request: Request, here: Workspace, viewer: Signed, run_id: str) -> Response:
    """Show one run."""
    return _page(request, here, viewer, run_id)


@router.post("/runs/{run_id:path}/cancel")
def cancel(request: Request, here: Workspace, viewer: Signed, form: Form, run_id: str) -> Response:
    """End a run early, as who asked for it or as an operator."""
    with here.database.read() as tx:
        seen(runs.run(tx, run_id), by=viewer.person)
    said = form.get("reason", "").strip()[:_MOST_REASON]
    reason = said or f"{viewer.person.name} ended it."
    try:
        turns.cancel(here.ledger, run_id, by=viewer.person.id, reason=reason)
    except ConflictError as error:
        return _page(request, here, viewer, run_id, status=409, alert=str(error))
    return RedirectResponse(f"/runs/{quote(run_id)}", 303)


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    run_id: str,
    *,
    status: int = 200,
    alert: str | None = None,
) -> Response:
    with here.database.read() as tx:
        run = seen(runs.run(tx, run_id), by=viewer.person)
        asked = every(here.database, tx, reviews.of_run(tx, run_id)[::-1])
        rows = calls.of_run(tx, run_id)
        marks = secret_parts.of_program(tx, run.program)
        subjects = [run_id, *(each.review.id for each in asked), *(row.key for row in rows)]
        context: dict[str, Any] = {
            "told": told(tx, around_runs.entries_about(tx, subjects, most=MOST_TOLD + 1)),
            "staged": bool(around_runs.with_stages(tx, [run_id])),
            "silent": here.programs.silent(),
            "thread": runs.thread(tx, run.thread_id),
            "now": here.database.now(tx),
        }
    unasked = (secret_texts(row.arguments, marks.of(row.tool, row.arguments)) for row in rows)
    words = frozenset[str]().union(*(each.words for each in asked), *unasked)
    shown = veiled_run(run, words)
    return render(
        request,
        "run.html",
        viewer=viewer,
        part="run",
        status=status,
        alert=alert,
        run=run,
        said=said_in(shown),
        answer=shown.answer,
        removed=removed(run.redacted_at),
        calls=[_call(row, asked, words) for row in rows[:MOST_CALLS]],
        more_calls=max(0, len(rows) - MOST_CALLS),
        reviews=[each.review for each in asked],
        most_told=MOST_TOLD,
        elsewhere=_elsewhere(request, run, context),
        may_cancel=run.is_open
        and (viewer.person.id == run.requester or has_role(viewer.person, Role.OPERATOR)),
        **context,
    )


def _lines(tx: Connection, ids: Sequence[str], *, now: datetime) -> list[Line]:
    found = {run.id: run for run in secret_parts.veiled(tx, list(runs.by_id(tx, ids).values()))}
    stops, waited = around_runs.stops(tx, ids), around_runs.waited(tx, ids, now=now)
    deciders, staged = around_runs.deciders(tx, ids), around_runs.with_stages(tx, ids)
    return [
        Line(
            run=found[each],
            # A pipeline begins with a whole document; its name says more.
            about="" if each in staged else _in_short(found[each]),
            href=f"/runs/{quote(each)}",
            stops=stops.get(each, ()),
            waited=waited.get(each),
            deciders=deciders.get(each, ()),
        )
        for each in ids
        if each in found
    ]


def _in_short(run: Run) -> str:
    if run.redacted_at is not None:
        return removed(run.redacted_at) or ""
    first = (said_in(run) or "").strip().partition("\n")[0]
    return first if len(first) <= _LONGEST_NAME else f"{first[:_LONGEST_NAME]}…"


def _call(row: LedgerRow, asked: Sequence[Whole], words: frozenset[str]) -> Call:
    around = [each for each in asked if any(call.key == row.key for call in each.review.calls)]
    outcomes = [each.review for each in around if each.review.kind is ReviewKind.OUTCOME]
    open_outcome = next((each.id for each in outcomes if each.status is ReviewStatus.PENDING), None)
    return Call(
        row=row,
        result=_scrubbed(row.result, words),
        review=around[-1].review.id if around else None,
        outcome=open_outcome if row.state is CallState.UNCERTAIN else None,
        decisions=[
            (item.by, item.type.value, item.at)
            for each in around
            for call in each.review.calls
            if call.key == row.key
            for item in call.decisions
        ],
    )


def _elsewhere(request: Request, run: Run, context: dict[str, Any]) -> tuple[str, str] | None:
    """Return the page on which this run is worked with, if there is one: its name and address."""
    if context["staged"]:
        label, path = "Open in the pipeline", f"/pipeline/{quote(run.id)}"
    elif context["thread"].caller_driven or is_one_call(run.program) or run.program in context["silent"]:
        return None
    else:
        label, path = "Open the conversation", f"/chat/{quote(run.thread_id)}"
    return (label, path) if leads_somewhere(request.app, path) else None


def _scrubbed(text: str | None, words: frozenset[str]) -> str | None:
    return scrubbed(text, words) if text and words else text


def _address(state: str = "", program: str = "", cursor: str = "") -> str:
    said = {"state": state, "program": program, "cursor": cursor}
    query = urlencode({name: value for name, value in said.items() if value})
    return f"/runs?{query}" if query else "/runs"
