"""Standing rules over HTTP: what people let run again without being asked; made, approved of, revoked."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from clearance import remembering
from clearance.credential import Scope
from clearance.errors import Fault, InvalidInputError, NotFoundError
from clearance.ledger import new_id
from clearance.people import Person, may_see, sees_only
from clearance.policy_file import duration
from clearance.reading import standing_record
from clearance.standing import StandingRule, Terms
from clearance.store import reviews, standing
from clearance.web.access import Caller, Workspace, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.paging import PAGE, Limit
from clearance.web.problems import refusals
from clearance.web.records import StandingRulePage, StandingRuleRecord, exact, exact_text
from clearance.web.repeats import IdempotencyKey, answered
from clearance.web.reviews import seen

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["standing rules"])


class Drafted(BaseModel):
    """Which call is remembered, and how far."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    review_id: Words = Field(max_length=500)
    call: Words | None = Field(
        default=None, max_length=500, description="Its key; may be left out where the review has one call."
    )
    uses: int = Field(strict=True, description="How many calls it may clear.")
    lasts: Words = Field(alias="for", max_length=40, description="For how long, such as `8h`.")
    free: list[Words] = Field(
        default=[], alias="any", max_length=100, description="Arguments that may have any value."
    )
    when: Words | None = Field(default=None, max_length=2000, description="A condition in CEL on `args`.")
    thread_only: bool = Field(default=False, strict=True, description="Only in the thread of the call.")


@router.get("/standing-rules", response_model=StandingRulePage)
def list_standing_rules(
    here: Workspace,
    by: Caller,
    *,
    every: Annotated[bool, Query(alias="all", description="Those that are used no more, too.")] = False,
    limit: Limit = PAGE,
) -> Response:
    """List standing rules, the newest first."""
    with here.database.read() as tx:
        found = standing.page(tx, every=every, limit=limit, requesters=sees_only(by))
    return exact({"standing_rules": [standing_record(each) for each in found]})


@router.post(
    "/standing-rules", status_code=201, response_model=StandingRuleRecord, responses=refusals(403, 404)
)
@needs(Scope.DECIDE)
def draft(here: Workspace, by: Caller, body: Drafted, *, idempotency_key: IdempotencyKey = None) -> Response:
    """Remember a call that you may decide. It is used once as many people approve as the call needs."""
    with here.database.read() as tx:
        seen(reviews.review(tx, body.review_id), by=by)
    terms = Terms(
        body.uses, lasting(body.lasts), free=tuple(body.free), when=body.when, thread_only=body.thread_only
    )
    text = answered(
        here.database,
        idempotency_key,
        lambda once: remembering.draft(
            here.database, body.review_id, terms, by=by.id, rule_id=new_id(), call=body.call, once=once
        ),
        by=by,
        route="standing-rules",
        said=body,
        answer=lambda _, made: exact_text(standing_record(made)),
    )
    return Response(text, status_code=201, media_type="application/json")


@router.post(
    "/standing-rules/{rule_id}/approve",
    response_model=StandingRuleRecord,
    responses=refusals(403, 404, 409),
)
@needs(Scope.DECIDE)
def approve(here: Workspace, by: Caller, rule_id: str) -> Response:
    """Approve of a drafted rule. Again changes nothing."""
    _seen(here, by, rule_id)
    return exact(standing_record(remembering.approve(here.database, rule_id, by=by.id)))


@router.post(
    "/standing-rules/{rule_id}/revoke",
    response_model=StandingRuleRecord,
    responses=refusals(403, 404, 409),
)
def revoke(here: Workspace, by: Caller, rule_id: str) -> Response:
    """Take a rule out of use, as its author or an operator."""
    _seen(here, by, rule_id)
    return exact(standing_record(remembering.revoke(here.database, rule_id, by=by.id)))


def lasting(text: str) -> timedelta:
    """Return the time for which a rule is to last, as somebody wrote it; `InvalidInputError` for no time."""
    found = duration(text)
    if found is None:
        fault = Fault("/for", "is a time such as 90s, 30m, 4h, 2d, 1w or 1d12h")
        raise InvalidInputError("This cannot be remembered.", faults=[fault])
    return found


def _seen(here: Workspace, by: Person, rule_id: str) -> StandingRule:
    """Return the rule; for who may not see what it is about there is none."""
    with here.database.read() as tx:
        found = standing.rule(tx, rule_id)
    if not may_see(by, requester=found.requester):
        raise NotFoundError(f"There is no standing rule {rule_id}.")
    return found
