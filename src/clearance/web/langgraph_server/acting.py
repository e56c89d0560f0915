"""Acting: a message taken, a review decided, from front ends that show a thread and know no versions."""

from clearance import turns
from clearance.credential import Scope
from clearance.errors import (
    ConflictError,
    ForbiddenError,
    NoPendingReviewError,
)
from clearance.ledger import new_id
from clearance.people import AGENTS_PROPOSE, Kind, Person
from clearance.review import Review
from clearance.run import RunState, conflict
from clearance.store import policies, reviews, runs
from clearance.web.access import Holder, allow
from clearance.web.decided import decisions_of
from clearance.web.langgraph_server.asked import RunAsked, answer_of, check, state_named
from clearance.web.langgraph_server.messages import said
from clearance.web.langgraph_server.states import name_of_state, read_name
from clearance.web.threads import named, program_of, seen
from clearance.workspace import Clearance

_LOOK = "Look at the thread once more, and go on from there."


def act(here: Clearance, thread_id: str, asked: RunAsked, *, by: Holder, shown: str | None) -> str:
    """Do what a client asks for, and return the run that works on it.

    `shown` names what its key was shown last in this thread. Raises what `turns.start` and `gate.decide` do,
    and `ConflictError` for a client that has not seen how the thread stands.
    """
    check(asked)
    allow(by, Scope.DECIDE if asked.is_answer else Scope.PROPOSE)
    return (
        _decide(here, thread_id, asked, by=by, shown=shown)
        if asked.is_answer
        else _say(here, thread_id, asked, by=by)
    )


def _say(here: Clearance, thread_id: str, asked: RunAsked, *, by: Person) -> str:
    program = program_of(here, thread_id, asked.assistant_id, by=by)
    with here.database.read() as tx:
        earlier = runs.open_run(tx, thread_id)
        waiting = reviews.pending(tx, thread_id) if earlier is not None else None
    if earlier is not None:
        # Before the message is read: whatever comes now, the answer is what the thread waits for.
        raise conflict(earlier, pending_review=None if waiting is None else waiting.id)
    text = said(asked.input)
    name, newest = name_of_state(here, thread_id)
    failed = newest is not None and newest.state is not RunState.DONE
    if state_named(asked) not in (None, name) and not (failed and read_name(state_named(asked) or "")):
        raise ConflictError(f"This message follows a state that the thread is not in. {_LOOK}")
    return turns.start(here.ledger, thread_id, text, run_id=new_id(), program=program, by=by.id).id


def _decide(here: Clearance, thread_id: str, asked: RunAsked, *, by: Person, shown: str | None) -> str:
    answer = answer_of(asked)
    with here.database.read() as tx:
        seen(tx, thread_id, by=by)
        if by.kind is Kind.AGENT:
            raise ForbiddenError(AGENTS_PROPOSE)
        waiting = reviews.pending(tx, thread_id)
        review, version = _meant(answer.name or shown, waiting)
        if review is None:
            raise NoPendingReviewError(thread_id)
        found = named(tx, review, thread_id=thread_id)
        schemas = {call.schema_hash: policies.schema(tx, call.schema_hash) for call in found.calls}
    decisions = decisions_of(answer.decisions, found, schemas=schemas)
    return here.gate.decide(found.id, decisions, by=by.id, version=version).run_id


def _meant(name: str | None, waiting: Review | None) -> tuple[str | None, int]:
    """Return the review that was seen, and its version: what was not seen is not decided."""
    if name is None:
        if waiting is None:
            return None, 0
        raise ConflictError(f"What this thread waits for was not shown to this key since. {_LOOK}")
    found = read_name(name)
    if found is None:
        raise ConflictError(f"What was decided is no state in which this thread waits for people. {_LOOK}")
    return found
