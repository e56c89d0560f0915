"""Calls of agents elsewhere: asked about here, taken here, carried out there, and the outcome kept here.

    propose   the agent names the call by a key of its own; people are asked, or the policy lets it through
    take      the clearance is used up and the call is `started`: from here on its outcome is unknown
    report    what the agent says became of it; without a word in time the call is uncertain

What runs there this product cannot see. It hands out the right to run a call once, and says who had it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from sqlalchemy import Connection

from clearance import turns
from clearance.adapters.proposal import (
    MESSAGE,
    Proposal,
    call_of,
    checked_tool,
    elsewhere,
    proposed,
    run_id_of,
    run_of,
)
from clearance.asking import Question
from clearance.errors import (
    CallRefusedError,
    ConflictError,
    KeyReusedError,
    NotFoundError,
    ReviewPendingError,
    ThreadClosedError,
)
from clearance.gate import Gate
from clearance.keeping import conclude, keep
from clearance.ledger import Ledger, Refused, Taken, Underway
from clearance.outcome import CallState, Outcome
from clearance.people import Person
from clearance.results import Result, bound
from clearance.review import Answer, Review, ReviewKind, ReviewStatus
from clearance.run import AGENT, Run, RunState, is_one_call
from clearance.store import callbacks, calls, policies, reviews, runs, secret_parts
from clearance.store.callbacks import Callback
from clearance.store.calls import LedgerRow
from clearance.taking import take, take_again
from clearance.toolcall import Tool

_LOOK_AT = 100


class Workspace(Protocol):
    """What these calls need of a workspace: `clearance.open` returns one."""

    @property
    def gate(self) -> Gate: ...
    @property
    def ledger(self) -> Ledger: ...


@dataclass(frozen=True)
class Standing:
    """How a call stands. `tool` and `arguments` are what may run, or ran; `review` is the newest about it.

    `secret` are the JSON pointers of what is masked in the arguments wherever they are shown.
    """

    key: str
    run: Run
    state: CallState
    tool: str
    arguments: str
    row: LedgerRow | None
    review: Review | None
    callback: Callback | None = None
    secret: tuple[str, ...] = ()

    @property
    def may_take(self) -> bool:
        """Whether the call would be handed out as things stand: it is cleared, perhaps once more."""
        if self.state is not CallState.UNCERTAIN or self.row is None or self.review is None:
            return self.state is CallState.CLEARED
        answered = self.review.call(self.row.key)
        return answered is not None and answered.state is Answer.APPROVED

    @property
    def pending(self) -> Review | None:
        """The review that waits, if one does."""
        return self.review if self.review and self.review.status is ReviewStatus.PENDING else None


def propose(here: Workspace, proposal: Proposal, *, by: Person, callback: Callback | None = None) -> Standing:
    """Ask about a call, once: the same key with the same call gives how it stands by now.

    `callback` is where the agent wants to be told how the call stands; `run_id` in it is set here.

    Raises `KeyReusedError` when the key stands for another call, `InvalidInputError` for what cannot be one.
    """
    tool = checked_tool(proposal)
    run = run_of(proposal, by=by)
    known = turns.start_by_caller(here.ledger, run)
    if known.input != run.input or known.program != run.program:
        raise KeyReusedError(proposal.key)
    _offer(here.ledger, run.program, tool)
    if callback is not None:
        with here.ledger.database.write() as tx:
            callbacks.keep(tx, replace(callback, run_id=run.id))
    if known.is_open:
        here.gate.ask(_question(known, tools={tool.name: tool}))
    return standing(here, proposal.key, by=by)


def standing(here: Workspace, key: str, *, by: Person) -> Standing:
    """Return how a call stands; `NotFoundError` when this agent has proposed none under that key."""
    with here.ledger.database.read() as tx:
        return _standing(tx, _known(tx, key, by=by), key=key)


def standing_of_run(tx: Connection, run: Run) -> Standing:
    """Return how the call of a run stands."""
    return _standing(tx, run, key=proposed(run)["key"])


def take_call(here: Workspace, key: str, *, by: Person) -> Taken:
    """Use up the call's clearance, and return what may now run, once.

    Raises `ReviewPendingError` while people are asked, `CallRefusedError` when it will not run,
    `ConflictError` when it was taken before.
    """
    with here.ledger.database.read() as tx:
        run = _open(tx, key, by=by)
        tools = _tools(tx, run)
    # The agent is what carries the call out: the ledger and the trail name it as the worker.
    ledger = replace(here.ledger, worker=f"{AGENT}{run.requester}")
    found = take(ledger, run, call_of(run), message=MESSAGE, tools=tools, fence=None)
    if isinstance(found, Refused):
        review = here.gate.ask(_question(run, tools=tools))
        if review is not None:
            raise ReviewPendingError(review.id)
        found = take(ledger, run, call_of(run), message=MESSAGE, tools=tools, fence=None)
    match found:
        case Taken():
            return found
        case Outcome(state=CallState.UNCERTAIN):
            return _taken_again(here, ledger, run, key=key, tools=tools)
        case Outcome(state=CallState.EXECUTED | CallState.FAILED):
            raise ConflictError(f"Call {key} was taken and has ended: {found.state}. Nothing is run twice.")
        case Outcome():
            raise CallRefusedError(found.text)
        case Underway():
            raise ConflictError(f"Call {key} was taken already, and only once. Report its outcome.")
        case Refused():
            raise ConflictError(f"Call {key} is being changed by others. Look at it again.")
        case _:
            assert_never(found)


def report(here: Workspace, key: str, result: Result, *, attempt: int, by: Person) -> Standing:
    """Keep what an agent says became of a call that it took. The same word again changes nothing.

    Raises `ConflictError` for a call that was not taken, or that has ended otherwise. A word that comes after
    people answered what became of the call is noted in the trail, and changes no more.
    """
    with here.ledger.database.read() as tx:
        run = _open(tx, key, by=by)
        found = _standing(tx, run, key=key)
        tools = _tools(tx, run)
    row = found.row
    if row is None or row.attempt != attempt or row.started_at is None:
        raise ConflictError(f"Attempt {attempt} at call {key} was not taken. Take it first.")
    ledger = replace(here.ledger, worker=f"{AGENT}{run.requester}")
    if row.state in (CallState.EXECUTED, CallState.FAILED):
        _check_same(row, result)
        return found
    tool = tools.get(row.tool) or Tool(row.tool, {}, elsewhere)
    keep(ledger, Taken(row.key, attempt, run.id, run.thread_id, tool, row.arguments), result)
    return standing(here, key, by=by)


def look_after(ledger: Ledger) -> int:
    """Call those calls uncertain whose agent has not said in time what became of them; return how many."""
    with ledger.database.read() as tx:
        now = ledger.database.now(tx)
        late = calls.overdue_elsewhere(tx, now=now, limit=_LOOK_AT)
        found = [(row, runs.run(tx, row.run_id)) for row in late]
    for row, run in found:
        tool = Tool(row.tool, {}, elsewhere)
        taken = Taken(row.key, row.attempt, run.id, run.thread_id, tool, row.arguments)
        conclude(ledger, taken, fence=None)
    return len(found)


def _taken_again(here: Workspace, ledger: Ledger, run: Run, *, key: str, tools: Mapping[str, Tool]) -> Taken:
    """Start the second attempt, where people said that the first did not happen."""
    taken = take_again(ledger, call_of(run).key, tools=tools)
    if taken is not None:
        return taken
    with here.ledger.database.read() as tx:
        waiting = _standing(tx, run, key=key).pending
    if waiting is not None:
        raise ReviewPendingError(waiting.id)
    raise ConflictError(f"What became of call {key} is not known. It is not handed out again.")


def _known(tx: Connection, key: str, *, by: Person) -> Run:
    try:
        run = runs.run(tx, run_id_of(key, by=by.id))
    except NotFoundError:
        raise NotFoundError(f"There is no call {key}.") from None
    if not is_one_call(run.program):
        raise NotFoundError(f"There is no call {key}.")
    return run


def _open(tx: Connection, key: str, *, by: Person) -> Run:
    """Return the run of a call that still has its values; `ThreadClosedError` for one that has none."""
    run = _known(tx, key, by=by)
    if run.redacted_at is not None:
        raise ThreadClosedError(run.thread_id, run.redacted_at)
    return run


def _question(run: Run, *, tools: Mapping[str, Tool]) -> Question:
    return Question(
        run_id=run.id,
        thread_id=run.thread_id,
        program=run.program,
        message=MESSAGE,
        calls=(call_of(run),),
        tools=tools,
        by_model=False,
    )


def _standing(tx: Connection, run: Run, *, key: str) -> Standing:
    call = call_of(run)
    row = calls.row(tx, call.key)
    asked = reviews.of_call(tx, call.key)
    # About a call that the policy lets through nobody is asked, and nothing is kept until it is taken.
    unasked = CallState.REJECTED if run.state is RunState.CANCELLED else CallState.CLEARED
    tool = row.tool if row is not None else call.tool
    arguments = row.arguments if row is not None else call.arguments
    known = [found.verdict.secret for review in asked if (found := review.call(call.key)) is not None]
    return Standing(
        key=key,
        run=run,
        state=row.state if row is not None else unasked,
        tool=tool,
        arguments=arguments,
        row=row,
        review=_newest(asked),
        callback=callbacks.of_run(tx, run.id),
        secret=known[-1] if known else secret_parts.of_call(tx, run.program, tool, arguments),
    )


def _newest(asked: list[Review]) -> Review | None:
    counted = [review for review in asked if review.status is not ReviewStatus.INVALIDATED]
    outcome = [review for review in counted if review.kind is ReviewKind.OUTCOME]
    return next(iter([*reversed(outcome), *reversed(counted)]), None)


def _tools(tx: Connection, run: Run) -> dict[str, Tool]:
    """Return the tools of the agent: an edit may have made a call of another one out of this one."""
    said = proposed(run)
    offered = policies.offered(tx, run.program)
    tools = {name: Tool(name, schema, elsewhere, timeout=said["timeout"]) for name, schema in offered.items()}
    tools[said["tool"]] = Tool(said["tool"], said["schema"], elsewhere, timeout=said["timeout"])
    return tools


def _offer(ledger: Ledger, program: str, tool: Tool) -> None:
    with ledger.database.read() as tx:
        known = policies.tool_schema(tx, program, tool.name)
    if known != tool.schema:
        with ledger.database.write() as tx:
            policies.offer(tx, program, tool)


def _check_same(row: LedgerRow, result: Result) -> None:
    said = CallState.EXECUTED if result.ok else CallState.FAILED
    if row.state is not said or row.result != bound(result.text, artifact=f"{row.key}/{row.attempt}").text:
        raise ConflictError(f"Another outcome of call {row.key} was reported before, and that one counts.")
