"""Execution: the only way to a gated tool. A call runs once, against a clearance that fits it exactly.

    take      the clearance is used and the ledger says `started`, committed before the tool is called
    the tool  runs in a daemon thread; a thread cannot be stopped, so its time limit ends the wait, not it
    keep      the outcome is written by the tool's own thread, so that a late one is not lost

Between take and keep the outcome is unknown. Whoever finds a call there without a living thread says so
(`uncertain`) and asks a person; it is run again only where the tool says that this is safe.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from clearance.errors import CallUncertainError, StoreError
from clearance.keeping import conclude, keep
from clearance.killpoints import at
from clearance.ledger import Ledger, Refused, Taken, Underway, outcome_of
from clearance.outcome import FINAL, CallState, Outcome
from clearance.results import Result, read_error, read_result
from clearance.run import Run
from clearance.store import calls, runs
from clearance.store.calls import LedgerRow
from clearance.store.database import retrying
from clearance.taking import let_go, resume, take, take_again
from clearance.toolcall import Tool, ToolCall, parse_arguments
from clearance.tracing import in_run

log = logging.getLogger(__name__)

POLL = 0.05


@dataclass(frozen=True)
class AskAgain:
    """The call may not run as things stand: people must be asked (again) first."""

    key: str


class PausedError(BaseException):
    """Raised by a tool that waits for people itself: its call stays started, and the tool is entered again.

    `execute` raises it on. It is no `Exception`, so that nothing on its way takes it for a tool's failure.
    """


@dataclass
class Started:
    """A tool that runs in this process; `outcome` is there once `ended` is set and it could be kept."""

    taken: Taken
    tool_call_id: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None
    paused: PausedError | None = None
    since: float = field(default_factory=time.monotonic)


class Execution:
    """Runs the cleared calls of this process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._running: dict[tuple[str, int], Started] = {}
        self._starting: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()

    def execute(
        self,
        run: Run,
        proposed: Sequence[ToolCall],
        *,
        message: int,
        tools: Mapping[str, Tool],
        fence: int | None,
    ) -> list[Outcome | AskAgain]:
        """Run the calls of one AI message, and return what became of each, in their order.

        Calls whose tool allows it run side by side; when they have ended, the others one by one. A call that
        ended before gives its kept outcome; one without a clearance that fits is not run. Raises
        `FenceLostError` when the thread was taken over, `StoreError` when the database stays away.
        """
        context = _Context(run, message, tools, fence)
        together = [call for call in proposed if tools[call.tool].parallel]
        begun = {call.key: self._begin(call, context) for call in together}
        ended = {key: self._finish(started, fence=fence) for key, started in begun.items()}
        for call in proposed:
            if call.key not in ended:
                ended[call.key] = self._finish(self._begin(call, context), fence=fence)
        return [ended[call.key] for call in proposed]

    def execute_again(
        self, key: str, *, tools: Mapping[str, Tool], fence: int | None = None
    ) -> Outcome | None:
        """Run an uncertain call once more, as a person cleared; None when it is not to be run now."""
        with self._alone(key):
            taken = retrying(lambda: take_again(self._ledger, key, tools=tools))
            if taken is None:
                return None
            at("taken")
            started = self._start(taken)
        return self._wait(started, fence=fence)

    def catch_up(self, thread_id: str, *, tools: Mapping[str, Tool], fence: int | None) -> None:
        """Look after the calls of a thread that no turn comes back to, before its next turn or beside it.

        Those that were lost come to their end, and uncertain ones for which a person said that they did not
        happen are run once more. Raises what `execute` raises.
        """
        with self._ledger.database.read() as tx:
            now = self._ledger.database.now(tx)
            lost = calls.abandoned(tx, thread_id, fence=fence, now=now)
            again = calls.open_second_attempts(tx, thread_id)
        for row in lost:
            self._look_after(row, tools=tools, fence=fence)
        for key in again:
            self.execute_again(key, tools=tools, fence=fence)

    def ended(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """Return the outcomes of those calls that have one, uncertain ones too; nothing is run."""
        with self._ledger.database.read() as tx:
            rows = [calls.row(tx, key) for key in keys]
        found = [row for row in rows if row is not None]
        return {row.key: outcome_of(row) for row in found if row.state in FINAL | {CallState.UNCERTAIN}}

    def busy(self) -> int:
        """Return how many tools run in this process, those past their time limit too."""
        with self._lock:
            return len(self._running)

    def overdue(self) -> int:
        """Return how many tools of this process run on past their time limit; only its end ends them."""
        now = time.monotonic()
        with self._lock:
            return sum(now - each.since > each.taken.tool.timeout for each in self._running.values())

    def _begin(self, call: ToolCall, context: "_Context") -> Outcome | AskAgain | Started:
        at("before-take")
        while True:
            with self._alone(call.key):
                found = self._take(call, context)
                if isinstance(found, Taken):
                    at("taken")
                    return self._start(found, tool_call_id=call.tool_call_id)
            match found:
                case Refused():
                    return AskAgain(call.key)
                case Outcome():
                    return found
                case Underway():
                    resumed = self._meet(found, context)
                    if resumed is not None:
                        return resumed

    def _take(self, call: ToolCall, context: "_Context") -> Taken | Outcome | Underway | Refused:
        return retrying(
            lambda: take(
                self._ledger,
                context.run,
                call,
                message=context.message,
                tools=context.tools,
                fence=context.fence,
            )
        )

    def _meet(self, other: Underway, context: "_Context") -> Outcome | Started | None:
        """Deal with a call that was started before; None: look at it again."""
        lost = other.superseded or other.overdue or other.worker == self._ledger.worker
        with self._alone(other.taken.key):
            with self._lock:
                here = self._running.get((other.taken.key, other.taken.attempt))
            if here is None and lost:
                return self._recover(other.taken, context)
        if here is not None:
            return self._wait(here, fence=context.fence)
        # A caller in another process works on it; its thread row is nobody's to fence.
        threading.Event().wait(POLL)
        return None

    def _alone(self, key: str) -> threading.Lock:
        """Return the lock under which this process starts a call.

        Between the ledger's `started` and the tool's thread nobody else may look: a call that is started here
        and runs in no thread of this process is taken for a lost one.
        """
        with self._lock:
            return self._starting.setdefault(key, threading.Lock())

    def _recover(self, taken: Taken, context: "_Context") -> Outcome | Started | None:
        """Bring a call to its end whose process was lost: run it again only where that is safe.

        None: others have dealt with it meanwhile.
        """
        tool = taken.tool
        again = tool.idempotent or tool.read_only
        if tool.verify is not None and not again:
            try:
                value = tool.verify(parse_arguments(taken.arguments), taken.idempotency_key)
            except Exception as error:  # noqa: BLE001 - a check that fails has checked nothing
                log.warning("the check of what became of %s failed: %s", tool.name, type(error).__name__)
                return retrying(lambda: conclude(self._ledger, taken, fence=context.fence))
            if value is not None:
                return retrying(lambda: keep(self._ledger, taken, read_result(value)))
            again = True
        if again:
            resumed = retrying(lambda: resume(self._ledger, taken, fence=context.fence))
            return self._start(resumed) if resumed is not None else None
        return retrying(lambda: conclude(self._ledger, taken, fence=context.fence))

    def _look_after(self, row: LedgerRow, *, tools: Mapping[str, Tool], fence: int | None) -> None:
        with self._ledger.database.read() as tx:
            run = runs.run(tx, row.run_id)
        tool = tools.get(row.tool) or Tool(row.tool, {}, _is_gone)
        taken = Taken(row.key, row.attempt, run.id, run.thread_id, tool, row.arguments)
        if row.attempt > 1:
            found = Underway(taken, row.worker, superseded=True, overdue=False)
            met = self._meet(found, _Context(run, 0, tools, fence))
        else:
            # Its run was ended by somebody: nothing of it is run anew.
            with self._lock:
                met = self._running.get((row.key, row.attempt))
            if met is None:
                retrying(lambda: conclude(self._ledger, taken, fence=fence))
        if isinstance(met, Started):
            self._wait(met, fence=fence)

    def _start(self, taken: Taken, *, tool_call_id: str = "") -> Started:
        started = Started(taken, tool_call_id=tool_call_id)
        with self._lock:
            self._running[taken.key, taken.attempt] = started
        name = f"tool-{taken.tool.name}"
        threading.Thread(target=self._run, args=(started,), name=name, daemon=True).start()
        return started

    def _run(self, started: Started) -> None:
        """Call the tool and keep what it gave; the body of its thread."""
        taken = started.taken
        try:
            with _traced(started):
                result = _call(taken)
            at("tool-ran")
            if result is None:
                started.outcome = retrying(lambda: conclude(self._ledger, taken, fence=None))
            else:
                started.outcome = retrying(lambda: keep(self._ledger, taken, result))
            at("outcome-kept")
        except PausedError as paused:
            started.paused = paused
            retrying(lambda: let_go(self._ledger, taken))
        except StoreError:
            # The effect is there and its outcome could not be written. The row says `started`, and whoever
            # looks at it next says `uncertain`.
            return
        finally:
            with self._lock:
                self._running.pop((taken.key, taken.attempt), None)
            started.ended.set()

    def _finish(self, begun: Outcome | AskAgain | Started, *, fence: int | None) -> Outcome | AskAgain:
        return self._wait(begun, fence=fence) if isinstance(begun, Started) else begun

    def _wait(self, started: Started, *, fence: int | None) -> Outcome:
        """Wait for a tool up to its time limit, and return how its call then stands."""
        until = started.since + started.taken.tool.timeout
        started.ended.wait(max(0.0, until - time.monotonic()))
        if started.paused is not None:
            raise started.paused
        if started.outcome is not None:
            return started.outcome
        return retrying(lambda: conclude(self._ledger, started.taken, fence=fence))


@dataclass(frozen=True)
class _Context:
    run: Run
    message: int
    tools: Mapping[str, Tool]
    fence: int | None


def _traced(started: Started) -> AbstractContextManager[None]:
    """Record a tool's run as OpenTelemetry names it (semantic conventions for generative AI, 1.37)."""
    taken = started.taken
    return in_run(
        f"execute_tool {taken.tool.name}",
        taken.run_id,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name=taken.tool.name,
        gen_ai__tool__call__id=started.tool_call_id,
        clearance__call__key=taken.key,
        clearance__attempt=taken.attempt,
    )


def _call(taken: Taken) -> Result | None:
    """Call the tool; whatever it raises is its result, and no more. None: it does not know itself."""
    try:
        value = taken.tool.run(parse_arguments(taken.arguments), taken.idempotency_key)
    except CallUncertainError:
        return None
    except PausedError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends the tool and not the worker
        return read_error(error)
    return read_result(value)


def _is_gone(_arguments: dict[str, Any], _key: str) -> object:
    """Stand in for a tool that this process does not have; it is never called."""
    raise LookupError("this process does not have the tool")
