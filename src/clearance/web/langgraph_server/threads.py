"""Threads as the LangGraph server has them: an id, finding them, how one stands. Nothing is written."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from clearance.credential import Credential, Scope
from clearance.errors import InvalidInputError, NotFoundError
from clearance.ledger import new_id
from clearance.people import sees_only
from clearance.run import RunState
from clearance.store.conversations import list_conversations
from clearance.web.access import Workspace, needs
from clearance.web.bodies import StrictRoute, Words
from clearance.web.frontends import LANGGRAPH, FrontEndKey, FrontEndUser
from clearance.web.langgraph_server.messages import messages_of
from clearance.web.langgraph_server.states import (
    STATUS,
    LastShown,
    ThreadState,
    first_message,
    state_of,
    state_record,
    thread_record,
)
from clearance.web.records import exact, exact_text
from clearance.web.threads import seen

router = APIRouter(prefix=LANGGRAPH, route_class=StrictRoute, include_in_schema=False)

_MOST = 100


class NewThread(BaseModel):
    """A thread to be. What else clients send with it is of no use here, and is passed over."""

    model_config = ConfigDict(extra="ignore")

    thread_id: Words | None = Field(default=None, min_length=1, max_length=200)


class Search(BaseModel):
    """Which threads are looked for. Orders, selections and other filters are passed over."""

    model_config = ConfigDict(extra="ignore")

    metadata: dict[str, Any] | None = None
    status: str | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


@router.get("/info")
def info(by: FrontEndUser) -> dict[str, Any]:  # noqa: ARG001 - who may ask
    """Tell that this is such a server, and what of it there is."""
    import clearance

    return {"version": clearance.__version__, "flags": {"assistants": False, "crons": False, "store": False}}


@router.post("/threads")
@needs(Scope.PROPOSE)
def new_thread(here: Workspace, by: FrontEndUser, body: NewThread | None = None) -> Response:
    """Return an id for a thread, which begins with its first message."""
    thread_id = (body.thread_id if body is not None else None) or new_id()
    with here.database.read() as tx:
        now = here.database.now(tx).isoformat()
        if list_conversations(tx, thread_id=thread_id, limit=1):
            seen(tx, thread_id, by=by)
    record = {"thread_id": thread_id, "created_at": now, "updated_at": now, "status": "idle"}
    return exact({**record, "metadata": {}, "config": {}, "values": None, "interrupts": {}})


@router.post("/threads/search")
@needs()
def search(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, body: Search | None = None
) -> Response:
    """List threads, those begun last first; of their messages only the first is told."""
    wanted = body or Search()
    meant = wanted.metadata or {}
    program = meant.get("graph_id") or meant.get("assistant_id")
    with here.database.read() as tx:
        found = list_conversations(
            tx,
            program=str(program) if program is not None else None,
            asked_by=sees_only(by),
            without=here.programs.silent(),
            states=_states(wanted.status),
            limit=min(wanted.limit, _MOST),
            offset=wanted.offset,
        )
    records = [thread_record(here, each, messages=first_message(each)) for each in found]
    for record in records:
        for interrupts in record["interrupts"].values():
            last_shown(request).note(key.id, record["thread_id"], interrupts)
    return exact_list(records)


@router.get("/threads/{thread_id}")
def show_thread(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, thread_id: str
) -> Response:
    """Return a thread, with its messages and what it waits for."""
    with here.database.read() as tx:
        seen(tx, thread_id, by=by)
        found = next(iter(list_conversations(tx, thread_id=thread_id, limit=1)), None)
    if found is None:
        raise NotFoundError(f"There is no thread {thread_id}.")
    record = thread_record(here, found, messages=messages_of(here, thread_id, found.newest))
    for interrupts in record["interrupts"].values():
        last_shown(request).note(key.id, thread_id, interrupts)
    return exact(record)


@router.get("/threads/{thread_id}/state")
def show_state(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, thread_id: str
) -> Response:
    """Return how a thread stands."""
    return exact(state_record(_shown(request, key, state_of(here, thread_id, by=by))))


@router.post("/threads/{thread_id}/history")
@needs()
def history(
    request: Request, here: Workspace, by: FrontEndUser, key: FrontEndKey, thread_id: str
) -> Response:
    """Return how a thread stands, as the only state of its history: nobody goes on from an earlier one."""
    return exact_list([state_record(_shown(request, key, state_of(here, thread_id, by=by)))])


@router.post("/threads/{thread_id}/state")
@needs(Scope.PROPOSE)
def write_state(here: Workspace, by: FrontEndUser, thread_id: str) -> Response:
    """Refuse: a state is what was said, decided and done, and is written by nobody else."""
    with here.database.read() as tx:
        seen(tx, thread_id, by=by)
    raise InvalidInputError(
        "The state of a thread is not written from outside. Decide what it waits for, or cancel its run."
    )


def last_shown(request: Request) -> LastShown:
    """Return what each key was last shown here."""
    found: LastShown = request.app.state.last_shown
    return found


def exact_list(records: list[dict[str, Any]]) -> Response:
    """Answer with a list as `records.exact` does with an object."""
    return Response("[" + ",".join(map(exact_text, records)) + "]", media_type="application/json")


def _shown(request: Request, key: Credential, state: ThreadState) -> ThreadState:
    last_shown(request).note(key.id, state.thread.id, state.interrupts)
    return state


def _states(status: str | None) -> list[RunState] | None:
    return None if status is None else [state for state, word in STATUS.items() if word == status]
