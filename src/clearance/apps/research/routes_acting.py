"""Research runs over HTTP, what changes them: started, decided, cancelled; answered, or streamed."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from clearance.apps.research import wire
from clearance.apps.research.errors import PlanError
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.records import run_record
from clearance.apps.research.routes_shared import STREAM, RunId, Runs, seen
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.streaming import Place, frames, place_now
from clearance.apps.research.wire import Choice, Resumed, Started
from clearance.credential import Credential, Scope
from clearance.errors import Fault, ForbiddenError, InvalidInputError
from clearance.ledger import new_id
from clearance.once import Once, Repeated
from clearance.people import AGENTS_PROPOSE, Kind, Person
from clearance.review import Review, ReviewStatus
from clearance.run import Run
from clearance.toolcall import argument_text
from clearance.web import sse
from clearance.web.access import Caller, Shown, Workspace, allow_taking_back, needs
from clearance.web.bodies import StrictRoute
from clearance.web.events import Leased
from clearance.web.problems import pointing_at, refusals
from clearance.web.records import exact
from clearance.web.repeats import IdempotencyKey, once
from clearance.web.runs import Cancelled
from clearance.web.turns import still_allowed
from clearance.workspace import Clearance

router = APIRouter(route_class=StrictRoute, tags=["pipeline"])

API = "/api/v1/pipeline"
EDIT_WAIT = 30.0
"""Seconds until the plan that a person handed in is asked about, so that it can be approved as theirs."""
_REFUSALS = refusals(404, 429)
Accept = Annotated[str | None, Header(include_in_schema=False)]


@dataclass(frozen=True)
class Done:
    """What was done: to which run, and from which place on a stream about it goes."""

    run_id: str
    place: Place


@router.post(API, response_model=wire.PipelineRecord, responses={**STREAM, **_REFUSALS})
@needs(Scope.PROPOSE)
async def start(
    request: Request,
    here: Workspace,
    research: Runs,
    shown: Shown,
    by: Caller,
    body: Started,
    *,
    accept: Accept = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start a run; it goes on by itself to its plan, and waits there for people."""

    def act() -> Done:
        return _start(research, body, by=by, key=idempotency_key)

    return await _answered(request, here, shown, by, act=act, as_stream=sse.wants_stream(accept))


@router.post("/pipeline/start", response_class=Response, responses={**STREAM, **_REFUSALS})
@needs(Scope.PROPOSE)
async def start_streaming(
    request: Request,
    here: Workspace,
    research: Runs,
    shown: Shown,
    by: Caller,
    body: Started,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start a run, and stream what it comes to until it waits for people."""

    def act() -> Done:
        return _start(research, body, by=by, key=idempotency_key)

    return await _answered(request, here, shown, by, act=act, as_stream=True)


@router.post(
    f"{API}/{{run_id}}/resume", response_model=wire.PipelineRecord, responses={**STREAM, **_REFUSALS}
)
@needs(Scope.DECIDE)
async def resume(
    request: Request,
    here: Workspace,
    research: Runs,
    shown: Shown,
    by: Caller,
    run_id: RunId,
    body: Resumed,
    *,
    accept: Accept = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide on the plan that a run waits with, as the person of the key."""

    def act() -> Done:
        return _decide(research, run_id, body, by=by, key=idempotency_key)

    return await _answered(request, here, shown, by, act=act, as_stream=sse.wants_stream(accept))


@router.post("/pipeline/{run_id}/resume", response_class=Response, responses={**STREAM, **_REFUSALS})
@needs(Scope.DECIDE)
async def resume_streaming(
    request: Request,
    here: Workspace,
    research: Runs,
    shown: Shown,
    by: Caller,
    run_id: RunId,
    body: Resumed,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide, and stream what the run comes to until it waits for people again, or has ended."""

    def act() -> Done:
        return _decide(research, run_id, body, by=by, key=idempotency_key)

    return await _answered(request, here, shown, by, act=act, as_stream=True)


@router.post(f"{API}/{{run_id}}/cancel", response_model=wire.PipelineRecord)
@needs(Scope.PROPOSE, Scope.MANAGE)
def cancel(
    here: Workspace,
    research: Runs,
    by: Caller,
    run_id: RunId,
    body: Cancelled | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """End a run early, as who asked for it or as an operator; steps that run now are ended, too."""
    found = seen(research, run_id, by=by)
    with here.database.read() as tx:
        allow_taking_back(tx, by, requester=found.requester)
    reason = body.reason if body is not None and body.reason.strip() else f"{by.name} ended it."
    only: Once[Run] | None = once(
        idempotency_key, by=by, route=f"pipeline/{run_id}/cancel", said=body, answer=lambda _, run: run.id
    )
    with suppress(Repeated):
        research.cancel(run_id, by=by.id, reason=reason, once=only)
    return exact(run_record(research, run_id))


def stream_of(
    request: Request,
    here: Clearance,
    shown: Credential,
    run_id: str,
    *,
    place: Place,
    to_the_end: bool,
    release: Callable[[], None],
) -> Response:
    """Return the stream about a run from a place on; it ends when the key opens nothing any more."""
    told = frames(
        request.state.research,
        request.app.state.changes,
        run_id,
        place=place,
        to_the_end=to_the_end,
        allowed=still_allowed(here, shown, run_id),
    )
    return Leased(sse.stream(told), release)


async def _answered(
    request: Request,
    here: Clearance,
    shown: Credential,
    by: Person,
    *,
    act: Callable[[], Done],
    as_stream: bool,
) -> Response:
    if not as_stream:
        done = await run_in_threadpool(act)
        return exact(await run_in_threadpool(run_record, request.state.research, done.run_id))
    release = request.app.state.streams.take(by)
    try:
        done = await run_in_threadpool(act)
    except BaseException:
        release()
        raise
    return stream_of(request, here, shown, done.run_id, place=done.place, to_the_end=False, release=release)


def _start(research: ResearchRuns, body: Started, *, by: Person, key: str | None) -> Done:
    if body.replay is not None:
        seen(research, body.replay, by=by)
    only: Once[Run] | None = once(key, by=by, route="pipeline", said=body, answer=lambda _, run: run.id)
    try:
        run_id = research.start(body.request, run_id=new_id(), by=by.id, once=only).id
    except Repeated as repeated:
        run_id = repeated.answer
    return Done(run_id, Place())


def _decide(research: ResearchRuns, run_id: str, body: Resumed, *, by: Person, key: str | None) -> Done:
    seen(research, run_id, by=by)
    if by.kind is Kind.AGENT:
        raise ForbiddenError(AGENTS_PROPOSE)
    _check(body, key=key)
    place = place_now(research, run_id)
    if body.decision is Choice.EDIT:
        plan = argument_text(body.plan or {})
        with pointing_at("/plan", PlanError):
            review = research.edit(run_id, plan, by=by.id, plan_sha256=body.plan_sha256, wait=EDIT_WAIT)
        return Done(run_id, _after(review, place))
    only: Once[Review] | None = once(
        key, by=by, route=f"pipeline/{run_id}/resume", said=body, answer=lambda _, review: review.id
    )
    try:
        review = research.decide(
            run_id,
            HITLDecision(body.decision.value),
            by=by.id,
            message=body.message,
            changes=body.changes,
            plan_sha256=body.plan_sha256,
            review_id=body.review_id,
            once=only,
        )
    except Repeated:
        return Done(run_id, Place(place.n))
    return Done(run_id, _after(review, place))


def _after(review: Review, place: Place) -> Place:
    """Return where a stream begins after a decision: at the gate again, where others must decide as well."""
    return Place(place.n) if review.status is ReviewStatus.PENDING else place


def _check(body: Resumed, *, key: str | None) -> None:
    faults = []
    if (body.plan is None) is (body.decision is Choice.EDIT):
        faults.append(Fault("/plan", "belongs to `edit`, which needs it"))
    if body.changes is not None and body.decision is not Choice.REVISE:
        faults.append(Fault("/changes", "belongs to `revise`"))
    if key is not None and body.decision is Choice.EDIT:
        faults.append(Fault("/header/idempotency-key", "is not taken with `edit`: `plan_sha256` says it"))
    if faults:
        raise InvalidInputError("The decision cannot be taken.", faults=faults)
