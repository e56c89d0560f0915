"""The worker: advances threads, lets reviews expire, and has the trail numbered and sealed.

Several workers may run; each thread has one segment at a time, and a segment that was overtaken stops.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from clearance import once, turns
from clearance.adapters import foreign, speaking
from clearance.engine import Engine
from clearance.errors import ClearanceError, FenceLostError, StoreError
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.killpoints import at
from clearance.ledger import Ledger
from clearance.notary import Notary
from clearance.notices.messenger import Messenger
from clearance.notices.webhook import Courier
from clearance.people import SYSTEM
from clearance.program import Finished
from clearance.retention import AT_ONCE, Retention
from clearance.store.database import retrying
from clearance.store.runs import Claim
from clearance.tracing import in_run

NUMBER_EVERY = 0.1
# Where each look is a query, and the trail has been at rest.
NUMBER_AT_REST = 0.25
SWEEP_EVERY = 1.0
# After the database was away.
LOOK_AGAIN = 0.5
TELL_EVERY = 1.0
# How long after a commit the trail may still want something, such as its seal; and how long at most nobody
# looks after it.
QUIET_AFTER = 3.0
LOOK_ANYWAY = 5.0
TIDY_EVERY = 30.0
RETAIN_EVERY = 24 * 3600.0
# Between two parts of one sweep, and after the database was away.
RETAIN_AGAIN = 10.0
# So that what fails each time does not fill the log.
REST_AFTER_A_BUG = 5.0

Done = TypeVar("Done")

log = logging.getLogger(__name__)


@dataclass
class Worker:
    """One worker of this process, over objects that `assembly` built."""

    ledger: Ledger
    gate: Gate
    execution: Execution
    engine: Engine
    notary: Notary | None
    courier: Courier
    messenger: Messenger
    retention: Retention | None = None
    retain: timedelta | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _version: int = -1
    _quiet_from: float = 0.0

    def start(self) -> None:
        """Work in background threads of this process until `stop`."""
        bodies = {
            "engine": self._deliver,
            "house": self._keep_house,
            "courier": self._tell,
            "messenger": self._tell_people,
        }
        if self.retention is not None:
            bodies["retention"] = self._keep_to_retention
        for name, body in bodies.items():
            thread = threading.Thread(target=body, name=f"clearance-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, *, grace: float = 10.0) -> bool:
        """Take no more work, and wait up to `grace` seconds for what runs; False when it runs on."""
        self._stopping.set()
        self.engine.stop()
        until = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def alive(self) -> bool:
        """Whether its threads still run."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    def advance(self, thread_id: str) -> None:
        """Bring a thread to its next stop. Raises nothing: a failure is written to its run or tried again."""
        try:
            at("woken")
            claimed = retrying(lambda: turns.claim(self.ledger, thread_id, owner=self.engine.owner))
            if claimed is not None:
                at("claimed")
                self._segment(claimed)
        except FenceLostError:
            log.info("thread %s was taken over by another worker", thread_id)
        except StoreError as error:
            log.warning("thread %s waits for the database: %s", thread_id, error)
            # The thread was given back and is due at once; not sooner than the database may be there again.
            self._stopping.wait(LOOK_AGAIN)

    def _segment(self, claimed: Claim) -> None:
        try:
            program = self.ledger.programs.get(claimed.program)
            tools = program.tools if program is not None else {}
            if claimed.unfinished:
                self.execution.catch_up(claimed.thread_id, tools=tools, fence=claimed.fence)
            answer = self._advance_run(claimed)
            at("segment-ended")
            retrying(lambda: turns.finish(self.ledger, claimed, answer=answer))
            at("released")
        except StoreError:
            # Nothing of it is lost: the claim is given back, and the look-out finds the thread again.
            retrying(lambda: turns.give_back(self.ledger, claimed))
            raise
        except Exception as error:
            told = isinstance(error, ClearanceError)
            reason = str(error) if told else type(error).__name__
            # What says all in one sentence needs no stack trace.
            log.error("thread %s: the segment failed: %s", claimed.thread_id, reason, exc_info=not told)
            retrying(lambda: turns.fail(self.ledger, claimed, reason=reason))

    def _advance_run(self, claimed: Claim) -> str | None:
        """Advance the thread's open run; return its answer when it came to its end."""
        program = self.ledger.programs.get(claimed.program)
        if claimed.run is None or program is None or program.segment is None:
            return None
        with in_run("clearance.segment", claimed.run.id, clearance__thread__id=claimed.thread_id):
            stop = program.segment(claimed.run, claimed.fence)
        return stop.answer if isinstance(stop, Finished) else None

    def _deliver(self) -> None:
        self.engine.work(self.advance, programs=self.ledger.programs.advanced_here)

    def _tell(self) -> None:
        """Send what callers elsewhere want to be told; in a thread of its own, for others may be slow."""
        while not self._stopping.wait(TELL_EVERY):
            self._turn("the courier", self.courier.turn)

    def _tell_people(self) -> None:
        """Send what people want to be told; in a thread of its own, for mail servers may be slow."""
        while not self._stopping.wait(TELL_EVERY):
            self._turn("the messenger", self.messenger.turn)

    def _keep_to_retention(self) -> None:
        """Remove the values of what ended long enough ago, once a day, a part at a time."""
        wait, retention = RETAIN_AGAIN, self.retention
        while retention is not None and not self._stopping.wait(wait):
            apply = partial(retention.apply, older_than=self.retain, by=SYSTEM, limit=AT_ONCE)
            done = self._turn("retention", apply)
            wait = RETAIN_AGAIN if done is None or done.more else RETAIN_EVERY
            if done is not None and done.threads:
                log.info("retention: the values of %d threads were removed", len(done.threads))

    def _may_have_grown(self) -> bool:
        """Whether the trail may have entries to number or to seal: on SQLite, soon after a commit."""
        database = self.ledger.database
        if not database.is_sqlite:
            return True
        version, now = database.data_version(), time.monotonic()
        if version != self._version or now > self._quiet_from + LOOK_ANYWAY:
            self._version, self._quiet_from = version, now + QUIET_AFTER
        return now < self._quiet_from

    def _until_next(self) -> float:
        """Return how long the house rests: longer on PostgreSQL while the trail does not grow."""
        at_rest = not self.ledger.database.is_sqlite and time.monotonic() > self._quiet_from
        return NUMBER_AT_REST if at_rest else NUMBER_EVERY

    def _keep_house(self) -> None:
        swept = tidied = 0.0
        while not self._stopping.wait(self._until_next()):
            if self.notary is not None:
                self._turn("the notary", partial(self._number, self.notary))
            if time.monotonic() - swept > SWEEP_EVERY:
                swept = time.monotonic()
                self._turn("the sweep", self.gate.sweep)
                self._turn("the look after calls elsewhere", partial(foreign.look_after, self.ledger))
            if time.monotonic() - tidied > TIDY_EVERY:
                tidied = time.monotonic()
                self._turn("the purge of requests", partial(once.purge, self.ledger.database))
                self._turn("the purge of streams", partial(speaking.forget_the_ended, self.ledger.database))

    def _number(self, notary: Notary) -> None:
        if self._may_have_grown() and notary.turn() and not self.ledger.database.is_sqlite:
            self._quiet_from = time.monotonic() + QUIET_AFTER

    def _turn(self, what: str, work: Callable[[], Done]) -> Done | None:
        """Do a part of the work; None where it fails: it comes again, and keeps no other from its turn."""
        try:
            return work()
        except ClearanceError as error:
            log.warning("%s waits: %s", what, error)
        except Exception as error:
            log.error("%s failed: %s", what, type(error).__name__, exc_info=error)
            self._stopping.wait(REST_AFTER_A_BUG)
        return None
