"""Whoever drives a graph by hand: the run of their turn, the question that stops it, what they send back.

Without a worker, LangGraph's own `invoke` begins a turn and `Command(resume=…)` brings decisions. Both are
taken here as any door takes them: a turn is a run of the workspace, and decisions go through the gate.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.config import get_config

from clearance import turns
from clearance.adapters.intake import storable
from clearance.errors import ClearanceError, NotFoundError
from clearance.gate import Gate
from clearance.ledger import Ledger
from clearance.payload import build_review_request
from clearance.review import Review
from clearance.run import Run, RunState
from clearance.store import policies, runs
from clearance.store.runs import BELOW

inside: ContextVar[str] = ContextVar("clearance_inside", default="")
"""The thread and the key of the call whose tool runs here, for agents that the tool runs."""

_BY_INTERRUPT = "__pregel_resume_map"
"""Where LangGraph's configuration has the values of a resume by the ids of the interrupts they are for."""


def run_of(messages: Sequence[BaseMessage], *, ledger: Ledger, program: str, person: str) -> Run:
    """Return the run of the present turn: the one that its message from a person begins, made when new.

    The same message in the same thread is the same run, however often a node is entered. An agent inside a
    tool call of another has a thread of its own. `person` is who asks where the configuration names nobody.
    Raises `ConflictError` for a thread that a worker advances.
    """
    thread_id = _thread(_configured())
    run_id = run_id_of(_beginning(messages), thread_id=thread_id)
    with ledger.database.read() as tx, suppress(NotFoundError):
        known = turns.find(tx, run_id)
        if known.is_open:
            return known
    run = Run(
        id=run_id,
        thread_id=thread_id or run_id,
        program=program,
        state=RunState.RUNNING,
        requester=person_of(person),
        input=None,
        created_at=datetime.fromtimestamp(0, UTC),
    )
    run = turns.start_by_caller(ledger, run)
    _cancel_below(ledger, run)
    return run


def run_id_of(first: BaseMessage | None, *, thread_id: str | None = None) -> str:
    """Return the id of the run that a message begins in a thread: the present one, when it is not given."""
    thread_id = _thread(_configured()) if thread_id is None else thread_id
    first_id = None if first is None else first.id
    return "h" + hashlib.sha256(f"{thread_id}\0{first_id}".encode()).hexdigest()[:16]


def person_of(default: str) -> str:
    """Return who acts: the person that the configuration names."""
    return str(_configured().get("person") or default)


def question(
    ledger: Ledger, review: Review, *, refused: str | None, address: str | None = None
) -> dict[str, Any]:
    """Return what an interrupt carries: the review as clients get it; `refused` says why an answer was."""
    with ledger.database.read() as tx:
        schemas = {call.schema_hash: policies.schema(tx, call.schema_hash) for call in review.waiting}
    payload = build_review_request(review, schemas=schemas, address=address)
    for request in payload["action_requests"]:
        if not storable(request["args"]):
            request["args"] = None
    return {**payload, "refused": refused} if refused else payload


def submit(gate: Gate, review: Review, resumed: object, *, by: str) -> str:
    """Submit a resume value that somebody sent by hand; return why it was refused, or nothing.

    It goes through the same checks as every other door, and nothing is raised here: a value that is
    wrong must not come back at every later resume. A value that was sent for one interrupt by its id names
    the review by that.
    """
    sent = resumed if isinstance(resumed, dict) else {}
    try:
        if sent.get("review_id") not in (None, review.id):
            return f"The decisions name review {sent['review_id']}; {review.id} waits."
        if sent.get("review_id") is None and not _names_its_pause(resumed):
            gate.decide_waiting(review.thread_id, sent.get("decisions"), by=by)
        else:
            version = int(sent.get("version", review.version))
            gate.decide(review.id, sent.get("decisions"), by=by, version=version)
    except (ClearanceError, ValueError, TypeError) as error:
        return str(error)
    return ""


def _names_its_pause(resumed: object) -> bool:
    """Whether the value was sent as `{interrupt's id: value}`, which LangGraph gives to that pause alone.

    The same object, and not its like: one that was sent without a name before may be kept, and come again.
    """
    given = _configured().get(_BY_INTERRUPT)
    return isinstance(given, dict) and any(value is resumed for value in given.values())


def _configured() -> dict[str, Any]:
    found: dict[str, Any] = get_config().get("configurable", {})
    return found


def _thread(configured: dict[str, Any]) -> str:
    """Return the thread of the graph that runs here.

    LangGraph gives a graph inside another the thread of the outermost one. Its turns are its own, so it is
    told by where it stands: in which call, and in which of that call's graphs.
    """
    within = str(configured.get("checkpoint_ns") or "").rpartition("|")[0]
    outer = inside.get() or str(configured.get("thread_id") or "")
    return BELOW.join(part for part in (outer, within) if part)


def _beginning(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the message that the present turn begins with."""
    spoken = (m for m in reversed(messages) if isinstance(m, HumanMessage) and m.name != "clearance")
    return next(spoken, messages[0] if messages else None)


def _cancel_below(ledger: Ledger, run: Run) -> None:
    """Cancel what agents inside earlier turns of the thread still wait for: nobody comes back to it."""
    with ledger.database.read() as tx:
        left = runs.open_below(tx, run.thread_id)
    for each in left:
        with suppress(ClearanceError):
            turns.cancel(ledger, each, by=run.requester, reason="its caller went on without it")
