"""Reviews over HTTP: the list of those that wait or have ended, one of them, deciding it, taking it back."""

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from clearance.credential import Scope
from clearance.errors import (
    Fault,
    ForbiddenError,
    InvalidInputError,
    InvalidReviewDecisionError,
    NotFoundError,
)
from clearance.once import Once
from clearance.people import AGENTS_PROPOSE, Kind, Person, may_see, sees_only
from clearance.policy import Risk
from clearance.reading import every, review_record, whole
from clearance.review import Review, ReviewStatus
from clearance.store import reviews
from clearance.store.listing import ReviewFilter, ended_reviews, waiting_reviews
from clearance.web.access import Caller, Workspace, allow_taking_back, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.paging import DATED, PAGE, WAITING, Cursor, Cursors, Limit
from clearance.web.problems import pointing_at, refusals
from clearance.web.records import ReviewPage, ReviewRecord, exact, exact_text
from clearance.web.repeats import IdempotencyKey, answered

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["reviews"])

_ENTITY_TAG = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})')
_PENDING = (ReviewStatus.PENDING,)
_WAITING = Cursors("waiting", WAITING)
_ENDED = Cursors("ended", DATED)


class Decided(BaseModel):
    """What one person decides: every call of the review that waits, all of them or none."""

    model_config = ConfigDict(extra="forbid")

    decisions: list[Any] = Field(
        description='One `{"type", "call"?, "message"?, "edited_action"?}` for each call that waits. `type`'
        " is approve, edit, reject, respond or revise; `call` may be left out where only one waits; an edit"
        " has `edited_action`: `name` and `args`, which is an object or exact JSON text.",
        json_schema_extra={"items": {"type": "object"}},
    )
    version: int | None = Field(
        default=None, strict=True, description="The version that was seen; else the header If-Match names it."
    )


class Withdrawn(BaseModel):
    """Why a question is taken back."""

    model_config = ConfigDict(extra="forbid")

    reason: Words = Field(default="", max_length=2000, description="The agent is told.")


class Claimed(BaseModel):
    """Whether another's claim on the review gives way."""

    model_config = ConfigDict(extra="forbid")

    take_over: bool = Field(default=False, strict=True)


@router.get("/reviews", response_model=ReviewPage)
def list_reviews(
    here: Workspace,
    by: Caller,
    *,
    status: Annotated[
        list[ReviewStatus] | None,
        Query(description="`pending`, which is the default, or one or more of the ways in which they ended."),
    ] = None,
    risk: Risk | None = None,
    program: str | None = None,
    requester: str | None = None,
    thread: str | None = None,
    run: str | None = None,
    tool: str | None = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> Response:
    """List reviews: those that wait by risk, deadline and age, those that have ended the newest first."""
    wanted = ReviewFilter(
        risk=risk,
        program=program,
        requester=requester,
        asked_by=sees_only(by),
        thread_id=thread,
        run_id=run,
        tool=tool,
    )
    statuses = tuple(dict.fromkeys(status or _PENDING))
    if ReviewStatus.PENDING in statuses and statuses != _PENDING:
        fault = Fault("/query/status", "is `pending` alone, or any of the others")
        raise InvalidInputError(
            "Reviews that wait and reviews that have ended are two lists.", faults=[fault]
        )
    with here.database.read() as tx:
        if statuses == _PENDING:
            waiting = waiting_reviews(tx, wanted, after=_WAITING.place(cursor), limit=limit)
            ids, following = waiting.ids, _WAITING.text(waiting.after)
        else:
            after = _ENDED.place(cursor)
            ended = ended_reviews(tx, wanted, statuses=statuses, after=after, limit=limit)
            ids, following = ended.ids, _ENDED.text(ended.after)
        shown = every(here.database, tx, reviews.by_id(tx, ids))
    return exact({"reviews": [review_record(each) for each in shown], "next": following})


@router.get("/reviews/{review_id:path}", response_model=ReviewRecord)
def show_review(here: Workspace, by: Caller, review_id: str) -> Response:
    """Return one review as it is now; its version is the ETag, to be decided with as If-Match."""
    with here.database.read() as tx:
        shown = whole(here.database, tx, seen(reviews.review(tx, review_id), by=by))
    return _told(exact_text(review_record(shown)))


@router.post(
    "/reviews/{review_id:path}/decide", response_model=ReviewRecord, responses=refusals(403, 409, 428)
)
@needs(Scope.DECIDE)
def decide(
    here: Workspace,
    by: Caller,
    review_id: str,
    body: Decided,
    *,
    if_match: Annotated[
        str | None, Header(description="The ETag of the review that was seen, in place of `version`.")
    ] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide, as the person of the key. 409 says what happened when it was decided or changed meanwhile."""
    if by.kind is Kind.AGENT:
        with here.database.read() as tx:
            seen(reviews.review(tx, review_id), by=by)
        raise ForbiddenError(AGENTS_PROPOSE)
    version = _version(body.version, if_match)

    def settle(once: Once[Review] | None) -> Review:
        with pointing_at("/decisions", InvalidReviewDecisionError):
            return here.gate.decide(review_id, body.decisions, by=by.id, version=version, once=once)

    text = answered(
        here.database,
        idempotency_key,
        settle,
        by=by,
        route=f"reviews/{review_id}/decide",
        said=body,
        more=version,
        answer=lambda tx, after: exact_text(review_record(whole(here.database, tx, after))),
    )
    return _told(text)


@router.post("/reviews/{review_id:path}/withdraw", response_model=ReviewRecord, responses=refusals(403, 409))
@needs(Scope.PROPOSE, Scope.MANAGE)
def withdraw(
    here: Workspace,
    by: Caller,
    review_id: str,
    body: Withdrawn | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Take a question back, as who asked it or as an operator; its calls do not run."""
    with here.database.read() as tx:
        allow_taking_back(tx, by, requester=seen(reviews.review(tx, review_id), by=by).requester)
    reason = body.reason if body is not None and body.reason.strip() else f"{by.name} took it back."
    text = answered(
        here.database,
        idempotency_key,
        lambda once: here.gate.withdraw(review_id, by=by.id, reason=reason, once=once),
        by=by,
        route=f"reviews/{review_id}/withdraw",
        said=body,
        answer=lambda tx, after: exact_text(review_record(whole(here.database, tx, after))),
    )
    return _told(text)


@router.post("/reviews/{review_id:path}/claim", response_model=ReviewRecord, responses=refusals(403, 409))
@needs(Scope.DECIDE)
def claim(here: Workspace, by: Caller, review_id: str, body: Claimed | None = None) -> Response:
    """Say that you are looking at a review, for 30 minutes; again renews it. It binds nobody."""
    _seen(here, by, review_id)
    here.gate.claim(review_id, by=by.id, take_over=body is not None and body.take_over)
    return show_review(here, by, review_id)


@router.post("/reviews/{review_id:path}/release", response_model=ReviewRecord, responses=refusals(403, 409))
@needs(Scope.DECIDE)
def release(here: Workspace, by: Caller, review_id: str) -> Response:
    """Say that you are no longer looking at a review; nothing changes where you were not."""
    _seen(here, by, review_id)
    here.gate.release(review_id, by=by.id)
    return show_review(here, by, review_id)


def _seen(here: Workspace, by: Person, review_id: str) -> None:
    with here.database.read() as tx:
        seen(reviews.review(tx, review_id), by=by)


def seen(review: Review, *, by: Person) -> Review:
    """Return the review; for who may not see it there is none."""
    if not may_see(by, requester=review.requester):
        raise NotFoundError(f"There is no review {review.id}.")
    return review


def _version(given: int | None, if_match: str | None) -> int:
    """Return the version that the caller has seen. Nobody decides what they may not have seen."""
    if if_match is None:
        if given is None:
            raise HTTPException(428)
        return given
    tag = _ENTITY_TAG.fullmatch(if_match.strip())
    if tag is None:
        fault = Fault("/header/if-match", "names no version")
        raise InvalidInputError(
            'If-Match names one version, such as "1": the ETag of the review.', faults=[fault]
        )
    version = int(tag[1] or tag[2])
    if given is not None and given != version:
        fault = Fault("/version", f"is {given}, and If-Match names {version}")
        raise InvalidInputError("The body and If-Match name different versions.", faults=[fault])
    return version


def _told(text: str) -> Response:
    """Answer with the text of a review's record; its version is the ETag."""
    tag = json.loads(text)["version"]
    return Response(text, headers={"ETag": f'"{tag}"'}, media_type="application/json")
