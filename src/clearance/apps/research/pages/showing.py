"""The page of a research run: its way, its plan, what it waits for, its files, and what happened."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response

from clearance.apps.research.pages.addresses import TEMPLATES, address, again
from clearance.apps.research.pages.blocks import blocked
from clearance.apps.research.pages.files import rows
from clearance.apps.research.pages.following import standing
from clearance.apps.research.pages.happened import happenings
from clearance.apps.research.pages.planned import PlanShown, plan_shown
from clearance.apps.research.pages.way import picture, said, way
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.routes_shared import RunId, Runs, seen
from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.apps.research.sources.sequence import alike
from clearance.apps.research.state import PENDING, PipelineState
from clearance.people import Role, has_role
from clearance.run import Run
from clearance.web.access import Workspace
from clearance.web.pages.deciding import Draft, decision_card
from clearance.web.pages.rendering import render
from clearance.web.pages.viewer import Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

WIDE, NARROW = 8, 2
"""How many stages stand side by side in the pictures for wide and for narrow windows."""


@dataclass(frozen=True)
class Filled:
    """The decision's form as it was filled in: the draft of its fragment, and the fields of the pipeline.

    `plan` is the text of an edited plan, None where it is not edited. `alert` is what stands above it all.
    """

    draft: Draft = field(default_factory=Draft)
    exclude: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    max_cost: str = ""
    params: str = ""
    plan: str | None = None
    alert: str = ""

    @property
    def wishes(self) -> bool:
        """Whether anything is wished, or wrong with a wish."""
        named = {"exclude", "require", "max_cost", "params"} & set(self.draft.errors)
        return bool(self.exclude or self.require or self.max_cost.strip() or self.params.strip() or named)


@router.get("/pipeline/{run_id}")
def show(
    request: Request,
    here: Workspace,
    research: Runs,
    viewer: Signed,
    run_id: RunId,
    *,
    edit: bool = False,
) -> Response:
    """Show a run; with `edit` its plan can be changed by hand."""
    return run_page(request, here, research, viewer, run_id, edit=edit)


def run_page(
    request: Request,
    here: Clearance,
    research: ResearchRuns,
    viewer: Viewer,
    run_id: str,
    *,
    filled: Filled | None = None,
    edit: bool = False,
    status: int = 200,
) -> Response:
    """Return the page of a run, with its decision's form as it was filled in."""
    run = seen(research, run_id, by=viewer.person)
    filled = filled or Filled()
    asked, state = research.request(run_id), research.state(run_id)
    waiting = research.waiting(run_id, seen_by=viewer.person.id) if run.is_open else None
    if waiting is not None and state.stage not in PENDING:
        waiting = None  # decided, and not yet gone on; or asked at this moment
    plan = None
    if state.plan_version or waiting is not None:
        plan = plan_shown(research, run_id, version=state.plan_version, waiting=waiting)
    context = _around(here, viewer, run, waiting, filled=filled)
    return render(
        request,
        f"{TEMPLATES}:run.html",
        viewer=viewer,
        status=status,
        part="run",
        run=run,
        asked=asked,
        state=state,
        address=address(run_id),
        plan=plan,
        waiting=waiting,
        filled=filled,
        edited=_edited(filled, plan, edit=edit),
        files=rows(research, run_id),
        blocked=blocked(run.reason or "") or blocked(state.line),
        near=_near(run, state, asked),
        **_drawn(research, run, waits=waiting is not None),
        **context,
    )


def _around(
    here: Clearance, viewer: Viewer, run: Run, waiting: Waiting | None, *, filled: Filled
) -> dict[str, Any]:
    """Return what the database says of the moment: what happened, how it stands, the decision's card."""
    with here.database.read() as tx:
        found: dict[str, Any] = {
            "happened": happenings(tx, run.id),
            "known": standing(tx, run.id),
            "now": here.database.now(tx),
            "may_cancel": run.is_open
            and (viewer.person.id == run.requester or has_role(viewer.person, Role.OPERATOR)),
            "card": None,
        }
        if waiting is not None:
            token = secrets.token_urlsafe(18)
            card = decision_card(tx, here, waiting.review, viewer, token=token, draft=filled.draft)
            found["card"] = card["card"]
    return found


def _drawn(research: ResearchRuns, run: Run, *, waits: bool) -> Mapping[str, Any]:
    nodes = way(run, research.stages(run.id), waits=waits)
    return {
        "nodes": nodes,
        "said": said(nodes),
        "wide": picture(nodes, columns=WIDE),
        "narrow": picture(nodes, columns=NARROW),
    }


def _edited(filled: Filled, plan: PlanShown | None, *, edit: bool) -> str | None:
    """Return the text that stands in the field for the plan; None where it is only read."""
    if filled.plan is not None:
        return filled.plan
    return plan.text if edit and plan is not None else None


def _near(run: Run, state: PipelineState, asked: ResearchRequest) -> list[tuple[str, str]]:
    """Return symbols like one that was not found, each with where a run about it is started."""
    if run.is_open or state.plan_version or run.reason is None or asked.fasta is not None:
        return []
    near = [each for each in alike(asked.symbol, asked.organism) if each != asked.symbol]
    return [(each, again(asked, symbol=each)) for each in near]
