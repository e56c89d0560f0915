"""Calls of agents elsewhere, in any language: propose, look or wait, take, report."""

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from clearance.adapters import foreign
from clearance.adapters.foreign import Standing
from clearance.adapters.proposal import Proposal
from clearance.credential import Scope
from clearance.errors import InvalidArgumentsError, NotFoundError
from clearance.notices.targets import check_url
from clearance.notices.webhook import new_secret
from clearance.outcome import FINAL, CallState
from clearance.people import Kind, Person, may_see
from clearance.redaction import masked, scrubbed, secret_texts
from clearance.results import Result
from clearance.store import people
from clearance.store.callbacks import Callback
from clearance.toolcall import DEFAULT_TIMEOUT, argument_text, parse_arguments
from clearance.web.access import Caller, Workspace, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.problems import pointing_at
from clearance.workspace import Clearance

router = APIRouter(prefix="/api/v1/calls", route_class=StrictRoute, tags=["calls"])

MAX_WAIT = 60.0
_LOOK_EVERY = 0.1


class Proposed(BaseModel):
    """A call that an agent wants to make."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(description="Your name for this call. The same key is the same call, whatever happens.")
    tool: str = Field(description="The name of what would be called.")
    arguments: dict[str, Any] | str = Field(
        description="A JSON object, or its text where your numbers must stay exactly as they are written."
    )
    arguments_schema: dict[str, Any] = Field(
        default={"type": "object"}, alias="schema", description="The JSON Schema that the arguments fit."
    )
    description: Words = Field(default="", max_length=2000, description="What the tool does, for reviewers.")
    timeout: float = Field(default=DEFAULT_TIMEOUT, description="Seconds from `take` to the outcome.")
    webhook: str | None = Field(default=None, description="Where you want to be told that something changed.")


class Webhook(BaseModel):
    """How it went to tell you."""

    url: str
    secret: str | None = Field(description="Signs what is sent (Standard Webhooks); told to who proposes.")
    tries: int
    delivered_at: str | None
    error: str | None


class Reported(BaseModel):
    """What became of a call that was taken."""

    model_config = ConfigDict(extra="forbid")

    attempt: int = Field(ge=1, description="The attempt that `take` gave.")
    ok: bool = Field(strict=True, description="Whether the call did what it was to do.")
    result: Any = Field(default=None, description="A text, or any JSON value.")


class Call(BaseModel):
    """How a call stands."""

    key: str
    agent: str
    state: CallState = Field(description="`cleared` may be taken; the last five states are final.")
    may_take: bool = Field(description="Whether `take` would hand the call out as things stand.")
    tool: str
    args: dict[str, Any] | None = Field(
        description="The arguments as they stand, perhaps edited by a reviewer; null once removed."
    )
    arguments: str | None = Field(description="The same as exact JSON text.")
    redacted_at: str | None = Field(description="When retention removed the values.")
    secret: list[str] = Field(description="What is masked here, as JSON pointers; `take` gives it as it is.")
    review_id: str | None = Field(description="The newest review about the call.")
    expires_at: str | None = Field(description="When the review that waits expires.")
    attempt: int | None
    result: str | None = Field(description="Its outcome, or why it does not run.")
    webhook: Webhook | None


class TakenCall(BaseModel):
    """What may run now, once. `idempotency_key` is the same for each attempt; hand it on where you can."""

    key: str
    tool: str
    args: dict[str, Any]
    arguments: str
    attempt: int
    idempotency_key: str
    timeout: float


@router.post("")
@needs(Scope.PROPOSE)
def propose(here: Workspace, by: Caller, body: Proposed) -> Call:
    """Propose a call. The same key again gives how the call stands, and asks nobody twice."""
    text = body.arguments if isinstance(body.arguments, str) else argument_text(body.arguments)
    proposal = Proposal(
        body.key, body.tool, text, body.arguments_schema, description=body.description, timeout=body.timeout
    )
    with pointing_at("/webhook"):
        callback = _callback(here, body.webhook)
    with pointing_at("/arguments", InvalidArgumentsError):
        return _told(foreign.propose(here, proposal, by=by, callback=callback), secret=True)


Agent = Annotated[
    str | None, Query(description="Whose call it is; default: your own. Only people see those of others.")
]


@router.get("/{key}")
async def look(
    here: Workspace,
    by: Caller,
    key: str,
    agent: Agent = None,
    wait: Annotated[
        float, Query(ge=0, le=MAX_WAIT, allow_inf_nan=False, description="Seconds to wait for a change.")
    ] = 0.0,
) -> Call:
    """Tell how a call stands, at once or as soon as no review of it waits."""
    until = asyncio.get_running_loop().time() + wait
    owner = await run_in_threadpool(_owner, here, by, agent)
    while True:
        found = await run_in_threadpool(foreign.standing, here, key, by=owner)
        if found.pending is None or asyncio.get_running_loop().time() >= until:
            return _told(found)
        await asyncio.sleep(_LOOK_EVERY)


@router.post("/{key}/take")
@needs(Scope.PROPOSE)
def take(here: Workspace, by: Caller, key: str) -> TakenCall:
    """Use up the call's clearance: after this answer you run it, once, with exactly these arguments."""
    taken = foreign.take_call(here, key, by=by)
    return TakenCall(
        key=key,
        tool=taken.tool.name,
        args=parse_arguments(taken.arguments),
        arguments=taken.arguments,
        attempt=taken.attempt,
        idempotency_key=taken.idempotency_key,
        timeout=taken.tool.timeout,
    )


@router.post("/{key}/outcome")
@needs(Scope.PROPOSE)
def report(here: Workspace, by: Caller, key: str, body: Reported) -> Call:
    """Say what became of a call that you took. Without it the call is uncertain, and people are asked."""
    text = body.result if isinstance(body.result, str) else json.dumps(body.result, ensure_ascii=False)
    result = Result(ok=body.ok, text=text or "(empty)")
    return _told(foreign.report(here, key, result, attempt=body.attempt, by=by))


def _owner(here: Workspace, by: Person, agent: str | None) -> Person:
    """Return whose call is meant. An agent that asks for another's gets what is there: nothing."""
    if agent is None or agent == by.id or by.kind is Kind.AGENT:
        return by
    if not may_see(by, requester=agent):
        raise NotFoundError(f"Nobody here is called {agent}.")
    with here.database.read() as tx:
        return people.person(tx, agent)


def _callback(here: Clearance, url: str | None) -> Callback | None:
    if url is None:
        return None
    check_url(url, allowed=here.worker.courier.allowed)
    with here.database.read() as tx:
        now = here.database.now(tx)
    return Callback(run_id="", url=url, secret=new_secret(), created_at=now)


def _webhook(kept: Callback | None, *, secret: bool) -> Webhook | None:
    if kept is None:
        return None
    delivered = None if kept.delivered_at is None else kept.delivered_at.isoformat()
    return Webhook(
        url=kept.url,
        secret=kept.secret if secret else None,
        tries=kept.tries,
        delivered_at=delivered,
        error=kept.error,
    )


def _told(found: Standing, *, secret: bool = False) -> Call:
    row, pending = found.row, found.pending
    gone = found.run.redacted_at
    shown = masked(found.arguments, found.secret)
    words = secret_texts(found.arguments, found.secret)
    return Call(
        key=found.key,
        agent=found.run.requester,
        state=found.state,
        may_take=found.may_take,
        tool=found.tool,
        args=None if gone else parse_arguments(shown),
        arguments=None if gone else shown,
        redacted_at=None if gone is None else gone.isoformat(),
        secret=list(found.secret),
        review_id=None if found.review is None else found.review.id,
        expires_at=None if pending is None or pending.deadline is None else pending.deadline.isoformat(),
        attempt=None if row is None or row.started_at is None else row.attempt,
        result=scrubbed(row.result, words) if row and row.result and row.state in FINAL else None,
        webhook=_webhook(found.callback, secret=secret),
    )
