"""One call under a key of its caller: asked about, run once, and what it gave, as often as it is repeated.

Nothing of it waits in this process. Whoever calls again with the same key is told how it stands: the review
that waits, the refusal, or the result that was kept.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, assert_never

from sqlalchemy import Connection

from clearance import turns
from clearance.asking import Question, standing_call
from clearance.deadline import is_over
from clearance.errors import (
    CallBlockedError,
    CallFailedError,
    CallRejectedError,
    CallUncertainError,
    ConflictError,
    KeyReusedError,
)
from clearance.execution import AskAgain, Execution
from clearance.gate import Gate
from clearance.killpoints import at
from clearance.ledger import Ledger, outcome_of
from clearance.outcome import FINAL, CallState, Outcome
from clearance.program import Program, Programs
from clearance.results import KEPT_LIMIT, Result
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.run import Run, RunState
from clearance.schema import with_defaults
from clearance.store import calls, reviews, runs
from clearance.store.calls import LedgerRow
from clearance.toolcall import Tool, ToolCall, canonical, parse_arguments

TRIES = 5
"""How often a call is asked about and tried in a row, while others change it at the same moment."""


class Workspace(Protocol):
    """What a call needs of the workspace that it is asked in: `clearance.open` returns one."""

    @property
    def gate(self) -> Gate: ...
    @property
    def execution(self) -> Execution: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def programs(self) -> Programs: ...
    @property
    def person(self) -> str: ...
    def register(self, program: Program) -> None: ...


@dataclass(frozen=True)
class KeyedCall:
    """One call. `message` is its number in the run; `alone` says that the run is this call and ends with it.

    `tool` is the program's tool, as this caller runs it.
    """

    workspace: Workspace
    program: Program
    tool: Tool
    run_id: str
    message: int
    call: ToolCall
    alone: bool

    def advance(self) -> Outcome | Review:
        """Bring the call as far as it goes now: to its outcome, or to the review that it waits for.

        Raises `KeyReusedError` when the key stands for another call, `ConflictError` when the run has ended
        without this one.
        """
        for _ in range(TRIES):
            found = self._standing()
            if found is not None:
                return found
            run = self._run()
            review = self.workspace.gate.ask(self._question())
            at("asked")
            if review is not None and not self._expires(review):
                return review
            if review is None and self._execute(run):
                return self._ended()
        raise ConflictError(f"Call {self.call.key} is being changed by others. Call again.")

    def is_waiting(self, review: Review) -> bool:
        """Whether the review still waits for people."""
        with self.workspace.ledger.database.read() as tx:
            now = self.workspace.ledger.database.now(tx)
            found = reviews.review(tx, review.id)
        return found.status is ReviewStatus.PENDING and not is_over(found.deadline, now=now)

    def value(self, outcome: Outcome) -> object:
        """Return what the call gave, or raise how it ended: rejected, blocked, failed or unknown."""
        match outcome.state:
            case CallState.EXECUTED:
                return json.loads(self._whole(outcome))
            case CallState.RESPONDED:
                return outcome.text
            case CallState.REJECTED:
                raise CallRejectedError(outcome.text)
            case CallState.BLOCKED:
                raise CallBlockedError(outcome.text)
            case CallState.FAILED:
                raised = outcome.text.rstrip(".")
                raise CallFailedError(
                    f"{outcome.tool} ran and raised {raised}. It is not run again under this key."
                )
            case CallState.UNCERTAIN:
                raise self._uncertain(outcome)
            case CallState.HELD | CallState.CLEARED | CallState.STARTED:
                raise ValueError(f"call {outcome.key} has no outcome: it is {outcome.state}")
            case _:
                assert_never(outcome.state)

    def _standing(self) -> Outcome | Review | None:
        """Return the final outcome or the waiting review that the call has already; reads only."""
        with self.workspace.ledger.database.read() as tx:
            row = calls.row(tx, self.call.key)
            if row is None:
                return None
            self._check_key(tx, row)
            waiting = self._waiting(tx)
            open_run = self.alone and runs.run(tx, self.run_id).is_open
            over = waiting is not None and is_over(
                waiting.deadline, now=self.workspace.ledger.database.now(tx)
            )
        if row.state in FINAL:
            if open_run:
                self._end_run(row)
            return outcome_of(row)
        return None if over else waiting

    def _check_key(self, tx: Connection, row: LedgerRow) -> None:
        """Refuse other arguments than those that the key was first used for."""
        asked = [found for review in reviews.of_call(tx, row.key) if (found := review.call(row.key))]
        first = (asked[0].proposed_tool, asked[0].proposed) if asked else (row.tool, row.arguments)
        if self._bound(*first) != self._bound(self.call.tool, self.call.arguments):
            raise KeyReusedError(row.key if not self.alone else self.run_id)

    def _bound(self, tool: str, arguments: str) -> tuple[str, str]:
        return tool, canonical(with_defaults(self.tool.schema, parse_arguments(arguments)))

    def _waiting(self, tx: Connection) -> Review | None:
        rounds = reviews.of_message(tx, self.run_id, self.message)
        pending = [review for review in rounds if review.status is ReviewStatus.PENDING]
        standing = standing_call(pending, self.call, tools=self._tools)
        return pending[-1] if standing is not None else None

    def _run(self) -> Run:
        """Keep the run of this call, and return it."""
        workspace = self.workspace
        if workspace.programs.get(self.program.name) != self.program:
            workspace.register(self.program)
        run = turns.start_by_caller(
            workspace.ledger,
            Run(
                id=self.run_id,
                thread_id=self.run_id,
                program=self.program.name,
                state=RunState.RUNNING,
                requester=workspace.person,
                input=None,
                created_at=datetime.fromtimestamp(0, UTC),
            ),
        )
        if run.program != self.program.name:
            raise KeyReusedError(self.run_id)
        if run.is_open or self._row() is not None:
            return run
        if run.state is RunState.CANCELLED:
            raise CallRejectedError(
                f"Run {run.id} was cancelled; {self.tool.name} did not run. Reason: {run.reason}"
            )
        raise ConflictError(f"Run {run.id} has ended without this call. Use the id of a new run.")

    def _question(self) -> Question:
        return Question(
            run_id=self.run_id,
            thread_id=self.run_id,
            program=self.program.name,
            message=self.message,
            calls=(self.call,),
            tools=self._tools,
            by_model=False,
        )

    def _expires(self, review: Review) -> bool:
        """Whether the review's time is over. Without a worker nobody else may notice, so it is noted here."""
        if self.is_waiting(review):
            return False
        self.workspace.gate.sweep()
        return True

    def _execute(self, run: Run) -> bool:
        """Run the call if it may run; False when it must be asked about, or looked at, again."""
        execution = self.workspace.execution
        [found] = execution.execute(run, [self.call], message=self.message, tools=self._tools, fence=None)
        if isinstance(found, AskAgain):
            return False
        if found.state is not CallState.UNCERTAIN:
            return True
        # A person may have said that it did not happen, and cleared it once more.
        again = execution.execute_again(self.call.key, tools=self._tools)
        row = self._row()
        return again is not None or (row is not None and row.state is CallState.UNCERTAIN)

    def _ended(self) -> Outcome:
        """Return the outcome as it is kept: what is returned first is what is returned ever after."""
        found, row = self._standing(), self._row()
        if row is None:
            raise LookupError(f"call {self.call.key} is not in the ledger")
        return found if isinstance(found, Outcome) else outcome_of(row)

    def _row(self) -> LedgerRow | None:
        with self.workspace.ledger.database.read() as tx:
            return calls.row(tx, self.call.key)

    def _end_run(self, row: LedgerRow) -> None:
        reason = row.result if row.state is CallState.FAILED else None
        turns.finish_by_caller(self.workspace.ledger, self.run_id, failed=reason)

    def _whole(self, outcome: Outcome) -> str:
        """Return all of a result, also what was too large for its row."""
        if outcome.artifact is None:
            return outcome.text
        with self.workspace.ledger.database.read() as tx:
            content = calls.artifact(tx, outcome.artifact)
        if content is None:
            raise LookupError(f"artifact {outcome.artifact} is not kept")
        return content.decode()

    def _uncertain(self, outcome: Outcome) -> CallUncertainError:
        with self.workspace.ledger.database.read() as tx:
            asked = reviews.of_call(tx, outcome.key, kind=ReviewKind.OUTCOME)
        review_id = asked[-1].id
        return CallUncertainError(
            f"{outcome.tool} was started, but its outcome is unknown: it may or may not have happened. It is "
            f"not repeated until a person says what became of it: clearance show {review_id}",
            review_id=review_id,
        )

    @property
    def _tools(self) -> Mapping[str, Tool]:
        return {self.tool.name: self.tool}


def json_result(value: object) -> Result:
    """Return what a function returned as the JSON text that is kept.

    What JSON has no form for is kept as its text, and a result that is too large to be kept as a text that
    says so: the function has run, and that must not look like a failure.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except BaseException:  # noqa: BLE001 - a value's own code may run here, and its function has ended
        text = json.dumps(_text(value), ensure_ascii=False)
    size = len(text.encode(errors="replace"))
    if size > KEPT_LIMIT:
        text = json.dumps(f"(a result of {size} bytes, more than the {KEPT_LIMIT} that are kept)")
    return Result(ok=True, text=text)


def _text(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - as above
        return f"({type(value).__name__}, which cannot be written down)"
