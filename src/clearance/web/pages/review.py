"""The page of a review: read first, edited on demand, decided by one form that works without scripts."""

import hashlib
import secrets
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from clearance.decision import outcome
from clearance.errors import (
    ForbiddenError,
    IdempotencyKeyReusedError,
    InvalidInputError,
    ReviewConflictError,
    TooManyTriesError,
)
from clearance.once import Once, Repeated
from clearance.people import Person, sees_only
from clearance.policy import Risk
from clearance.reading import whole
from clearance.review import Review, ReviewStatus, latest
from clearance.store import reviews
from clearance.store.listing import ReviewFilter, waiting_reviews
from clearance.toolcall import canonical
from clearance.web.access import Workspace
from clearance.web.pages.answering import Answers, answers, changed, read_draft, version_of
from clearance.web.pages.conversation import conversation_around
from clearance.web.pages.deciding import Draft, address, decision_card, page_before
from clearance.web.pages.rendering import render
from clearance.web.pages.stepping_up import FIELD, StepUpNeededError, decide_fresh
from clearance.web.pages.submitted import Submitted, token_of
from clearance.web.pages.viewer import Form, Signed, Viewer
from clearance.web.pages.waiting import title
from clearance.web.reviews import seen
from clearance.workspace import Clearance

router = APIRouter(include_in_schema=False)

NEIGHBOURS = 200
"""How many reviews of the inbox are looked through for the ones before and after this one."""


@router.get("/reviews/{review_id:path}/moved")
def moved(request: Request, here: Workspace, viewer: Signed, review_id: str, version: int) -> Response:
    """Tell whether a review is still as it was at a version: a banner for a page that is open."""
    with here.database.read() as tx:
        review = seen(reviews.review(tx, review_id), by=viewer.person)
    return render(
        request,
        "parts/moved.html",
        viewer=viewer,
        review=review,
        version=version,
        told=_told(review) if review.version != version else None,
    )


@router.get("/reviews/{review_id:path}")
def show(
    request: Request,
    here: Workspace,
    viewer: Signed,
    review_id: str,
    *,
    edit: bool = False,
    raw: bool = False,
    back: str = "",
) -> Response:
    """Show a review; with `edit` its form, with `raw` as JSON text. `back` is the page that one came from."""
    draft = Draft(editing=edit or raw, raw=raw, back=page_before(back))
    return _page(request, here, viewer, review_id, draft=draft)


@router.post("/reviews/{review_id:path}/decide")
def decide(request: Request, here: Workspace, viewer: Signed, form: Form, review_id: str) -> Response:
    """Decide as the viewer, or do what another button of the form says and show it again."""
    with here.database.read() as tx:
        review = seen(reviews.review(tx, review_id), by=viewer.person)
        draft = read_draft(form, review)
        if form.get("do"):
            draft = changed(tx, review, draft, form=form)
            return _page(request, here, viewer, review_id, draft=draft)
        version = version_of(form)
        said = answers(tx, review, draft)
    if review.version != version or review.status is not ReviewStatus.PENDING:
        return _overtaken(request, here, viewer, review, draft=draft)
    if said.payload is None:
        return _page(request, here, viewer, review_id, draft=said.draft, status=422)
    return _decided(request, here, viewer, review, said=said, form=form)


def _decided(
    request: Request, here: Clearance, viewer: Viewer, review: Review, *, said: Answers, form: Submitted
) -> Response:
    version = version_of(form)
    once = _once(viewer, review, said.payload, version=version, token=token_of(form))

    def decided(fresh_for: Risk) -> Review:
        return here.gate.decide(
            review.id, said.payload, by=viewer.person.id, version=version, fresh_for=fresh_for, once=once
        )

    try:
        decide_fresh(viewer, review.risk, form, here, decided, back=address(review))
    except StepUpNeededError as error:
        wrong = replace(said.draft, errors={FIELD: str(error)}, risk=error.risk)
        return _page(request, here, viewer, review.id, draft=wrong, status=403)
    except TooManyTriesError as error:
        wrong = replace(said.draft, errors={FIELD: str(error)})
        return _page(request, here, viewer, review.id, draft=wrong, status=429)
    except Repeated:
        pass
    except (ReviewConflictError, IdempotencyKeyReusedError):
        return _overtaken(request, here, viewer, review, draft=said.draft)
    except InvalidInputError as error:
        draft = said.with_faults(error)
        return _page(request, here, viewer, review.id, draft=draft, status=422)
    except ForbiddenError as error:
        return _page(request, here, viewer, review.id, draft=said.draft, status=403, alert=str(error))
    return _back_to(review, said.draft)


def _overtaken(
    request: Request, here: Clearance, viewer: Viewer, review: Review, *, draft: Draft
) -> Response:
    """Answer who comes too late: with what happened, or to who said the same before, with that."""
    with here.database.read() as tx:
        now = reviews.review(tx, review.id)
    mine = [latest(call).get(viewer.person.id) for call in now.calls]
    wanted = [draft.chosen.get(place, "") for place in range(1, len(now.calls) + 1)]
    same = {"approve": ("approve", "edit")}
    if all(
        said is not None and said.type in same.get(want, (want,))
        for said, want in zip(mine, wanted, strict=True)
    ):
        return _back_to(now, draft)
    alert = f"Your decision was not taken: this changed before it came. {_told(now)}"
    left = Draft(comments=draft.comments, back=draft.back)
    return _page(request, here, viewer, review.id, draft=left, status=409, alert=alert)


def _page(
    request: Request,
    here: Clearance,
    viewer: Viewer,
    review_id: str,
    *,
    draft: Draft,
    status: int = 200,
    alert: str | None = None,
) -> Response:
    with here.database.read() as tx:
        review = seen(reviews.review(tx, review_id), by=viewer.person)
        found = whole(here.database, tx, review)
        token = secrets.token_urlsafe(18)
        context = decision_card(tx, here, review, viewer, token=token, draft=draft, found=found)
        context.update(_neighbours(tx, review, by=viewer.person))
    context["conversation"] = conversation_around(here, found)
    context.update(title=title(found.review), found=found, now=found.now, alert=alert)
    context.pop("viewer")
    return render(request, "review.html", viewer=viewer, status=status, **context)


def _neighbours(tx: Connection, review: Review, *, by: Person) -> dict[str, Any]:
    """Return the place of a review in the inbox, and what stands before and after it."""
    only = sees_only(by)
    ids = waiting_reviews(tx, ReviewFilter(asked_by=only), after=None, limit=NEIGHBOURS).ids
    if review.id not in ids:
        return {"place": None, "count": len(ids), "before": None, "after": next(iter(ids), None)}
    at = ids.index(review.id)
    return {
        "place": at + 1,
        "count": reviews.waiting_count(tx, asked_by=only),
        "before": ids[at - 1] if at else None,
        "after": ids[at + 1] if at + 1 < len(ids) else None,
    }


def _once(
    viewer: Viewer, review: Review, payload: object, *, version: int, token: str | None
) -> Once[Review] | None:
    """Return a decision as one that is taken once for the page that it was sent from."""
    if token is None:
        return None
    body = hashlib.sha256(canonical([payload, version]).encode()).hexdigest()
    return Once(viewer.person.id, f"pages/reviews/{review.id}", token, body, lambda *_: "")


def _told(review: Review) -> str:
    """Say what became of a review."""
    if review.status is ReviewStatus.PENDING:
        return outcome(review)
    return f"It is {review.status.value} now. {outcome(review)}"


def _back_to(review: Review, draft: Draft) -> Response:
    return RedirectResponse(draft.back or address(review), 303)
