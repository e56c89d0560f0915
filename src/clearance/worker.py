"""The worker: advances threads, lets reviews expire, and has the trail numbered and sealed.

Several workers may run; each thread has one segment at a time, and a segment that was overtaken stops.
"""

import logging
import threading
import time
from dataclasses import dataclass, field

from clearance import turns
from clearance.engine import Engine
from clearance.errors import ClearanceError, FenceLostError, StoreError
from clearance.execution import Execution
from clearance.gate import Gate
from clearance.killpoints import at
from clearance.ledger import Ledger
from clearance.notary import Notary
from clearance.program import Finished
from clearance.store.database import retrying
from clearance.store.runs import Claim

NUMBER_EVERY = 0.1
SWEEP_EVERY = 0.5

log = logging.getLogger(__name__)


@dataclass
class Worker:
    """One worker of this process, over objects that `assembly` built."""

    ledger: Ledger
    gate: Gate
    execution: Execution
    engine: Engine
    notary: Notary | None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Work in background threads of this process until `stop`."""
        for body, name in ((self._deliver, "engine"), (self._keep_house, "house")):
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
        """Whether both of its threads still run."""
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
            self._stopping.wait(SWEEP_EVERY)

    def _segment(self, claimed: Claim) -> None:
        try:
            program = self.ledger.programs.get(claimed.program)
            tools = program.tools if program is not None else {}
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
            log.exception("thread %s: the segment failed", claimed.thread_id)
            reason = str(error) if isinstance(error, ClearanceError) else type(error).__name__
            retrying(lambda: turns.fail(self.ledger, claimed, reason=reason))

    def _advance_run(self, claimed: Claim) -> str | None:
        """Advance the thread's open run; return its answer when it came to its end."""
        program = self.ledger.programs.get(claimed.program)
        if claimed.run is None or program is None or program.segment is None:
            return None
        stop = program.segment(claimed.run, claimed.fence)
        return stop.answer if isinstance(stop, Finished) else None

    def _deliver(self) -> None:
        self.engine.work(self.advance, programs=self.ledger.programs.advanced_here)

    def _keep_house(self) -> None:
        swept = 0.0
        while not self._stopping.wait(NUMBER_EVERY):
            try:
                if self.notary is not None:
                    self.notary.turn()
                if time.monotonic() - swept > SWEEP_EVERY:
                    swept = time.monotonic()
                    self.gate.sweep()
            except StoreError as error:
                log.warning("the worker waits for the database: %s", error)
