"""Deciding at the gates of a run, and ending it: what the forms of its page send."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.pages.addresses import HERE, TEMPLATES, address
from clearance.apps.research.pages.planned import written
from clearance.apps.research.pages.showing import Filled, run_page
from clearance.apps.research.routes_shared import RunId, Runs, seen
from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.decision import outcome
from clearance.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    RunUnfinishedError,
    TooManyTriesError,
)
from clearance.form.field import lines
from clearance.policy import DecisionType, Risk
from clearance.review import Review, latest
from clearance.store import reviews
from clearance.toolcall import parse_arguments
from clearance.web.access import Workspace
from clearance.web.pages.answering import answers, read_draft, version_of
from clearance.web.pages.rendering import render
from clearance.web.pages.stepping_up import FIELD, StepUpNeededError, decide_fresh
from clearance.web.pages.submitted import Submitted
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

OWN_WAIT = 15.0
"""Seconds until the version that a person made is asked about, so that it is approved as theirs."""
LONGEST_REASON = 2000


class WishError(InvalidInputError):
    """A field of the form that cannot be read. `name` is the field's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class _Said:
    """What a person said at a gate, and to which question."""

    waiting: Waiting
    filled: Filled
    decision: str
    comment: str


@router.post(f"{HERE}/{{run_id}}/decide")
def decide(
    request: Request, here: Workspace, research: Runs, viewer: Signed, form: Form, run_id: RunId
) -> Response:
    """Decide as the viewer on the plan that they saw; a plan that they changed is approved as theirs."""
    seen(research, run_id, by=viewer.person)
    version, asked = version_of(form), form.get("review", "")
    filled = _filled(form)
    waiting = research.waiting(run_id, seen_by=viewer.person.id)
    if waiting is None or _seen_as(waiting) != (asked, version, form.get("plan_sha256")):
        draft = replace(filled.draft, comments={1: lines(form.get("c1", ""))})
        left = replace(filled, draft=draft)
        return _overtaken(request, here, research, viewer, run_id, filled=left, form=form)
    with here.database.read() as tx:
        read = answers(tx, waiting.review, read_draft(form, waiting.review))
    filled = replace(filled, draft=read.draft)
    if read.payload is None and not _only_wishes(read.draft.errors, filled, form):
        return run_page(request, here, research, viewer, run_id, filled=filled, status=422)
    filled = replace(filled, draft=replace(read.draft, errors={}))
    decision = _decision(form, waiting)
    return _taken(request, here, research, viewer, form, _Said(waiting, filled, decision, _comment(filled)))


@router.post(f"{HERE}/{{run_id}}/cancel")
def cancel(
    request: Request, here: Workspace, research: Runs, viewer: Signed, form: Form, run_id: RunId
) -> Response:
    """End a run early, as who asked for it or as an operator."""
    seen(research, run_id, by=viewer.person)
    reason = lines(form.get("reason", "")).strip()[:LONGEST_REASON] or f"{viewer.person.name} ended it."
    try:
        research.cancel(run_id, by=viewer.person.id, reason=reason)
    except ConflictError:
        pass  # it has ended already, and its page says how
    except ForbiddenError as error:
        filled = Filled(alert=str(error))
        return run_page(request, here, research, viewer, run_id, filled=filled, status=403)
    return RedirectResponse(address(run_id), 303)


@router.get(f"{HERE}/{{run_id}}/gate")
def gate(
    request: Request,
    here: Workspace,
    research: Runs,
    viewer: Signed,
    run_id: RunId,
    *,
    review: str = "",
    version: int = 0,
) -> Response:
    """Tell whether a question is still as it was at a version: a banner for a form that is filled in."""
    seen(research, run_id, by=viewer.person)
    waiting = research.waiting(run_id)
    same = waiting is not None and (waiting.review.id, waiting.review.version) == (review, version)
    told = "" if same else _told(here, review, run_id=run_id)
    return render(
        request,
        f"{TEMPLATES}:gate.html",
        viewer=viewer,
        address=address(run_id),
        review_id=review,
        version=version,
        told=told,
    )


def _taken(
    request: Request,
    here: Clearance,
    research: ResearchRuns,
    viewer: Viewer,
    form: Submitted,
    said: _Said,
) -> Response:
    """Take a decision; whatever keeps it from being taken is said on the page, with all that was typed."""
    run_id = said.waiting.review.run_id

    def again(status: int, errors: Mapping[str, str], *, alert: str = "") -> Response:
        filled = replace(said.filled, draft=replace(said.filled.draft, errors=errors), alert=alert)
        return run_page(request, here, research, viewer, run_id, filled=filled, status=status)

    try:
        act = _act(research, viewer, said, fields=form)
        decide_fresh(viewer, said.waiting.review.risk, form, here, act, back=address(run_id))
    except StepUpNeededError as error:
        draft = replace(said.filled.draft, errors={FIELD: str(error)}, risk=error.risk)
        filled = replace(said.filled, draft=draft)
        return run_page(request, here, research, viewer, run_id, filled=filled, status=403)
    except TooManyTriesError as error:
        return again(429, {FIELD: str(error)})
    except WishError as error:
        return again(422, {error.name: str(error)})
    except RunUnfinishedError:
        pass  # the edited plan is kept, and is asked about as soon as a worker has come to it
    except InvalidInputError as error:
        return again(422, _at_fields(error, edited=said.decision == DecisionType.EDIT))
    except ConflictError:
        return _overtaken(request, here, research, viewer, run_id, filled=said.filled, form=form)
    except ForbiddenError as error:
        return again(403, {}, alert=str(error))
    return RedirectResponse(address(run_id), 303)


def _act(
    research: ResearchRuns, viewer: Viewer, said: _Said, *, fields: Submitted
) -> Callable[[Risk], Review]:
    """Return what takes a decision. Raises `WishError` for a field that cannot be read."""
    waiting, by = said.waiting, viewer.person.id
    run_id, sha256 = waiting.review.run_id, waiting.plan.sha256
    if said.decision == DecisionType.EDIT:
        text = lines(fields.get("plan", ""))
        return lambda fresh: research.edit(
            run_id, text, by=by, plan_sha256=sha256, fresh_for=fresh, wait=OWN_WAIT
        )
    decision = HITLDecision(said.decision)
    changes = _changes(said.filled) if decision is HITLDecision.REVISE else None
    return lambda fresh: research.decide(
        run_id,
        decision,
        by=by,
        message=said.comment,
        changes=changes,
        plan_sha256=sha256,
        review_id=waiting.review.id,
        version=waiting.review.version,
        fresh_for=fresh,
    )


def _decision(form: Submitted, waiting: Waiting) -> str:
    """Return what was decided: approving a plan that was changed on the page is an edit."""
    decision = form.get("decision", "")
    text = form.get("plan")
    changed = text is not None and lines(text).strip() != written(waiting.plan).strip()
    return DecisionType.EDIT if decision == DecisionType.APPROVE and changed else decision


def _filled(form: Submitted) -> Filled:
    return Filled(
        exclude=tuple(form.getlist("exclude")),
        require=tuple(form.getlist("require")),
        max_cost=form.get("max_cost", ""),
        params=lines(form.get("params", "")),
        plan=lines(form["plan"]) if "plan" in form else None,
    )


def _changes(filled: Filled) -> dict[str, Any]:
    """Return the wishes as the pipeline takes them."""
    wishes: dict[str, Any] = {"exclude": list(filled.exclude), "require": list(filled.require)}
    if filled.max_cost.strip():
        wishes["max_cost"] = filled.max_cost.strip()
    if filled.params.strip():
        try:
            wishes["params"] = parse_arguments(filled.params)
        except InvalidInputError as error:
            raise WishError("params", str(error).replace("The arguments", "The parameters", 1)) from None
    return {name: value for name, value in wishes.items() if value}


def _only_wishes(errors: Mapping[str, str], filled: Filled, form: Submitted) -> bool:
    """Whether nothing is wrong but that a plan is sent back without a comment, where wishes say it all."""
    return form.get("decision") == DecisionType.REVISE and set(errors) == {"c1"} and filled.wishes


def _at_fields(error: InvalidInputError, *, edited: bool) -> dict[str, str]:
    """Return what is wrong by the field that it is to be said at."""
    if edited:
        return {"plan": str(error)}
    by_field = {"message": "c1", "comment": "c1"}
    errors: dict[str, str] = {}
    for fault in error.faults:
        name, _, place = fault.pointer.removeprefix("/changes").strip("/").partition("/")
        told = f"{place}: {fault.message}" if name == "params" and place else fault.message
        errors.setdefault(by_field.get(name, name), told)
    return errors or {"": str(error)}


def _overtaken(
    request: Request,
    here: Clearance,
    research: ResearchRuns,
    viewer: Viewer,
    run_id: str,
    *,
    filled: Filled,
    form: Submitted,
) -> Response:
    """Answer who comes too late: with what happened, or to who said the same before, with that."""
    asked, wanted = form.get("review", ""), form.get("decision", "")
    with here.database.read() as tx:
        found = [each for each in reviews.of_thread(tx, run_id) if each.id == asked]
    mine = [
        said.type
        for call in (found[0].calls if found else ())
        if (said := latest(call).get(viewer.person.id))
    ]
    if mine and all(each == wanted for each in mine):
        return RedirectResponse(address(run_id), 303)
    alert = f"Your decision was not taken: this changed before it came. {_told(here, asked, run_id=run_id)}"
    kept = Filled(draft=replace(filled.draft, chosen={}, errors={}), alert=alert)
    return run_page(request, here, research, viewer, run_id, filled=kept, status=409)


def _told(here: Clearance, review_id: str, *, run_id: str) -> str:
    """Say what became of a question."""
    with here.database.read() as tx:
        found = next((each for each in reviews.of_thread(tx, run_id) if each.id == review_id), None)
    return "The run is not where it was." if found is None else f"It is {found.status} now. {outcome(found)}"


def _comment(filled: Filled) -> str:
    return filled.draft.comments.get(1, "")


def _seen_as(waiting: Waiting) -> tuple[str, int, str]:
    return waiting.review.id, waiting.review.version, waiting.plan.sha256
