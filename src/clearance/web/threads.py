"""Threads over HTTP: a conversation, its messages, and what it waits for."""

from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from clearance import turns
from clearance.credential import Scope
from clearance.errors import (
    EmptyMessageError,
    Fault,
    ForbiddenError,
    InvalidInputError,
    InvalidReviewDecisionError,
    NotFoundError,
)
from clearance.ledger import new_id
from clearance.once import Once
from clearance.people import AGENTS_PROPOSE, Kind, Person, may_see, sees_only
from clearance.reading import run_record
from clearance.review import Review
from clearance.run import Run, is_one_call
from clearance.store import people, policies, reviews, runs, secret_parts
from clearance.web import following
from clearance.web.access import Caller, Shown, Workspace, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.problems import pointing_at
from clearance.web.records import Record, RunRecord, exact
from clearance.web.repeats import IdempotencyKey, once
from clearance.web.turns import TURN, Turn, done
from clearance.workspace import Clearance

router = APIRouter(prefix="/api/v1", route_class=StrictRoute, tags=["threads"])
aliases = APIRouter(route_class=StrictRoute, tags=["threads"])

WAIT, MAX_WAIT = 30.0, 60.0
PROGRAM = "chat"

Wait = Annotated[
    float, Field(ge=0, le=MAX_WAIT, description="Seconds to wait for the answer. A stream waits to the end.")
]


class Message(BaseModel):
    """What is said to the agent."""

    model_config = ConfigDict(extra="forbid")

    text: str
    program: Words | None = Field(
        default=None, max_length=200, description="Who is to answer. Default: the thread's own; else `chat`."
    )
    wait: Wait = WAIT


class ThreadDecided(BaseModel):
    """What one person decides on what the thread waits for."""

    model_config = ConfigDict(extra="forbid")

    decisions: list[Any] = Field(
        description="As for a review. Each must name its call, unless `review_id` is given or the thread was "
        "never decided on before.",
        json_schema_extra={"items": {"type": "object"}},
    )
    review_id: Words | None = Field(default=None, max_length=1000, description="The review that was seen.")
    version: int | None = Field(default=None, strict=True, description="The version of it that was seen.")
    wait: Wait = WAIT


class NewThread(Record):
    """A thread that nobody has written in."""

    thread_id: str


class ThreadRecord(Record):
    """One conversation."""

    thread_id: str
    program: str
    state: Literal["idle", "queued", "running", "waiting"] = Field(
        description="Only an `idle` thread takes a message, unless it is closed."
    )
    closed_at: datetime | None = Field(description="When retention removed the values.")
    run: RunRecord | None = Field(description="The newest run.")
    pending_review: dict[str, Any] | None = Field(description="What the thread waits for.")


class CallOfMessage(Record):
    """A call that the model wants. One with an `error` could not be offered to anybody."""

    id: str | None
    name: str | None
    args: dict[str, Any] | None
    arguments: str | None = Field(description="The same as exact JSON text.")
    error: str | None


class MessageRecord(Record):
    """One message, as it is kept. `notice`: what the product tells the model between two turns."""

    id: str | None
    run_id: str | None
    role: Literal["user", "assistant", "tool", "system", "notice"]
    text: str
    tool_calls: list[CallOfMessage]
    tool_call_id: str | None = Field(description="Of a result: the call that it answers.")
    state: str | None = Field(description="Of a result: what became of the call.")
    error: bool


class Messages(Record):
    """The messages of a thread, oldest first; none of one that retention has closed."""

    thread_id: str
    closed_at: datetime | None = Field(description="When retention removed the values.")
    messages: list[MessageRecord]


@router.post("/threads", response_model=NewThread)
@needs(Scope.PROPOSE)
def new_thread(by: Caller) -> Response:  # noqa: ARG001 - who may ask
    """Return a fresh thread id. The thread begins with its first message."""
    return exact({"thread_id": new_id()})


@router.get("/threads/{thread_id:path}/messages", response_model=Messages)
def messages(here: Workspace, by: Caller, thread_id: str) -> Response:
    """Return the thread's messages as they are kept; what a model is saying now is not among them."""
    with here.database.read() as tx:
        thread = seen(tx, thread_id, by=by)
        marks = secret_parts.of_thread(tx, thread_id)
    from clearance.adapters.transcript import message_records

    found = message_records(here.transcripts.messages(thread_id), marks=marks)
    return exact({"thread_id": thread_id, "closed_at": _text(thread.closed_at), "messages": found})


@router.get("/threads/{thread_id:path}", response_model=ThreadRecord)
def show_thread(here: Workspace, by: Caller, thread_id: str) -> Response:
    """Return how a thread stands, and what it waits for."""
    with here.database.read() as tx:
        thread = seen(tx, thread_id, by=by)
        newest = next(iter(runs.list_runs(tx, thread_id=thread_id, limit=1)), None)
    found = following.standing(here, newest.id) if newest is not None else None
    return exact({
        "thread_id": thread_id,
        "program": thread.program,
        "state": found.run.state.value if found is not None and found.run.is_open else "idle",
        "closed_at": _text(thread.closed_at),
        "run": None if found is None else run_record(found.run),
        "pending_review": None if found is None else found.review,
    })  # fmt: skip


@aliases.post("/chat/{thread_id:path}/messages", response_model=Turn, responses=TURN)
@router.post("/threads/{thread_id:path}/messages", response_model=Turn, responses=TURN)
@needs(Scope.PROPOSE)
async def send(
    request: Request,
    here: Workspace,
    shown: Shown,
    by: Caller,
    thread_id: str,
    body: Message,
    *,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Say something to the agent of a thread, and return what it answers or waits for.

    A thread takes one message at a time: 409 while it works on one, or waits for people.
    """
    only: Once[Run] | None = once(
        idempotency_key,
        by=by,
        route=f"threads/{thread_id}/messages",
        said=body,
        answer=lambda _, run: run.id,
    )

    def start() -> str:
        program = program_of(here, thread_id, body.program, by=by)
        with pointing_at("/text", EmptyMessageError):
            return turns.start(
                here.ledger, thread_id, body.text, run_id=new_id(), program=program, by=by.id, once=only
            ).id

    return await done(request, here, shown, by, act=start, wait=body.wait, accept=accept)


@aliases.post("/chat/{thread_id:path}/review", response_model=Turn, responses=TURN)
@router.post("/threads/{thread_id:path}/review", response_model=Turn, responses=TURN)
@needs(Scope.DECIDE)
async def decide(
    request: Request,
    here: Workspace,
    shown: Shown,
    by: Caller,
    thread_id: str,
    body: ThreadDecided,
    *,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide what a thread waits for, as the person of the key, and return what it answers then."""
    if body.version is not None and body.review_id is None:
        raise InvalidInputError("A version is one of a review.", faults=[Fault("/review_id", "is missing")])
    only: Once[Review] | None = once(
        idempotency_key,
        by=by,
        route=f"threads/{thread_id}/review",
        said=body,
        answer=lambda _, review: review.run_id,
    )

    def submit() -> str:
        with here.database.read() as tx:
            seen(tx, thread_id, by=by)
            found = None if body.review_id is None else named(tx, body.review_id, thread_id=thread_id)
        if by.kind is Kind.AGENT:
            raise ForbiddenError(AGENTS_PROPOSE)
        with pointing_at("/decisions", InvalidReviewDecisionError):
            if found is None:
                return here.gate.decide_waiting(thread_id, body.decisions, by=by.id, once=only).run_id
            version = found.version if body.version is None else body.version
            return here.gate.decide(found.id, body.decisions, by=by.id, version=version, once=only).run_id

    return await done(request, here, shown, by, act=submit, wait=body.wait, accept=accept)


def program_of(here: Clearance, thread_id: str, asked: str | None, *, by: Person) -> str:
    """Return the program that a message is for; the thread's own, unless it is named or there is none."""
    with here.database.read() as tx:
        thread = runs.thread(tx, thread_id)
        if thread is not None:
            seen(tx, thread_id, by=by)
        program = asked or (PROGRAM if thread is None else thread.program)
        known = here.programs.get(program)
        if is_one_call(program) or (known is not None and not known.takes_messages):
            fault = Fault("/program", "takes no messages")
            raise InvalidInputError(f"{program} does not answer in threads.", faults=[fault])
        if thread is None and _is_a_call(tx, thread_id):
            raise InvalidInputError(
                "A thread's id must not begin with the name of an agent and ':'; its calls do."
            )
        if policies.active_version(tx, program) is None:
            fault = Fault("/program", "is not known in this workspace")
            raise InvalidInputError(f"Nothing here answers for {program!r}.", faults=[fault])
    return program


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _is_a_call(tx: Connection, thread_id: str) -> bool:
    """Whether this could be the id of a call of an agent elsewhere, which must not be taken from it."""
    owner, colon, _ = thread_id.partition(":")
    found = people.by_id(tx, [unquote(owner)]).values() if colon else ()
    return any(each.kind is Kind.AGENT for each in found)


def seen(tx: Connection, thread_id: str, *, by: Person) -> runs.Thread:
    """Return the thread; for who may not see it there is none, nor where they may see a part of it alone."""
    thread = runs.thread(tx, thread_id)
    requesters = () if sees_only(by) is None else runs.requesters(tx, thread_id)
    if thread is None or not all(may_see(by, requester=each) for each in requesters):
        raise NotFoundError(f"There is no thread {thread_id}.")
    return thread


def named(tx: Connection, review_id: str, *, thread_id: str) -> Review:
    found = reviews.review(tx, review_id)
    if found.thread_id != thread_id:
        raise NotFoundError(f"There is no review {review_id}.")
    return found
