"""Running: the route of AG-UI, from what a client sends to the stream of what the agent makes of it."""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Any, assert_never

from fastapi import APIRouter, Body, Query, Request, Response
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from clearance import turns
from clearance.credential import Scope
from clearance.errors import ForbiddenError
from clearance.ledger import new_id
from clearance.once import Once, Repeated
from clearance.people import AGENTS_PROPOSE, Kind, Person
from clearance.run import Run
from clearance.store import policies, runs, secret_parts
from clearance.web import sse
from clearance.web.access import Holder, Workspace, allow, needs
from clearance.web.agui.asked import Answered, Said, read_input, texts_of, wanted
from clearance.web.agui.telling import Telling
from clearance.web.bodies import StrictRoute, Words
from clearance.web.changes import Changes
from clearance.web.decided import decisions_of
from clearance.web.events import Leased
from clearance.web.following import Place, looks
from clearance.web.frontends import AGUI, FrontEndKey, FrontEndUser
from clearance.web.repeats import once
from clearance.web.threads import named, program_of, seen
from clearance.web.turns import still_allowed
from clearance.workspace import Clearance

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

router = APIRouter(route_class=StrictRoute, include_in_schema=False)


@router.post(AGUI)
@needs(Scope.PROPOSE, Scope.DECIDE)
async def run_agent(
    request: Request,
    here: Workspace,
    by: FrontEndUser,
    key: FrontEndKey,
    body: Annotated[dict[str, Any], Body()],
    program: Annotated[Words | None, Query(max_length=200)] = None,
) -> Response:
    """Take what a person says or decides, and stream what the agent makes of it until it stops.

    `program` is who is to answer; default: the thread's own, else `chat`.
    """
    asked = read_input(body)
    new = wanted(asked)
    release = request.app.state.streams.take(by)
    try:
        before = await run_in_threadpool(_known, here, asked.thread_id, by=by)
        run_id = await run_in_threadpool(_act, here, asked.thread_id, new, by=by, program=program)
    except BaseException:
        release()
        raise
    telling = Telling(asked.thread_id, asked.run_id, before, texts_of(asked.messages))
    allowed = still_allowed(here, key, run_id)
    coming = _frames(here, request.app.state.changes, run_id, telling, allowed=allowed)
    return Leased(sse.stream(coming, retry=None), release)


def _known(here: Clearance, thread_id: str, *, by: Person) -> frozenset[str]:
    """Return the messages that a thread has, by id; none for one that nobody has written in."""
    with here.database.read() as tx:
        if runs.thread(tx, thread_id) is None:
            return frozenset()
        seen(tx, thread_id, by=by)
    return frozenset(str(message.id) for message in here.transcripts.messages(thread_id))


def _act(here: Clearance, thread_id: str, new: Said | Answered, *, by: Holder, program: str | None) -> str:
    """Do what is asked for, and return the run that works on it.

    A message is said once: sent again, under the same id, it gives the run that works or worked on it.
    """
    match new:
        case Said():
            allow(by, Scope.PROPOSE)
            answering = program_of(here, thread_id, program, by=by)
            only: Once[Run] | None = once(
                new.id,
                by=by,
                route=f"agui/{thread_id}",
                said=None,
                more=new.text,
                answer=lambda _, run: run.id,
            )
            try:
                return turns.start(
                    here.ledger,
                    thread_id,
                    new.text,
                    run_id=new_id(),
                    program=answering,
                    by=by.id,
                    once=only,
                ).id
            except Repeated as repeated:
                return repeated.answer
        case Answered():
            allow(by, Scope.DECIDE)
            return _decide(here, thread_id, new, by=by)
        case _ as never:
            assert_never(never)


def _decide(here: Clearance, thread_id: str, new: Answered, *, by: Person) -> str:
    with here.database.read() as tx:
        seen(tx, thread_id, by=by)
        if by.kind is Kind.AGENT:
            raise ForbiddenError(AGENTS_PROPOSE)
        review = named(tx, new.review_id, thread_id=thread_id)
        schemas = {call.schema_hash: policies.schema(tx, call.schema_hash) for call in review.calls}
    decisions = decisions_of(list(new.answers), review, schemas=schemas)
    return here.gate.decide(review.id, decisions, by=by.id, version=new.version).run_id


async def _frames(
    here: Clearance, changes: Changes, run_id: str, telling: Telling, *, allowed: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    from clearance.adapters.transcript import message_records

    yield _frame(telling.began())
    async for found in looks(here, changes, run_id, place=Place(), allowed=allowed):
        for event in telling.saying(found.said):
            yield _frame(event)
        if found.has_stopped:
            kept = await run_in_threadpool(here.transcripts.messages, telling.thread_id)
            marks = await run_in_threadpool(_marks, here, telling.thread_id)
            for event in telling.stopped(found, message_records(kept, marks=marks)):
                yield _frame(event)
            return


def _marks(here: Clearance, thread_id: str) -> secret_parts.Marks:
    with here.database.read() as tx:
        return secret_parts.of_thread(tx, thread_id)


def _frame(event: "BaseEvent") -> ServerSentEvent:
    # The protocol's own client knows one way to end a line.
    return ServerSentEvent(event.model_dump_json(by_alias=True), sep="\n")
