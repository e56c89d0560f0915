"""The door that the journeys use: one process that sends, decides and looks, and advances nothing."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage

from clearance.apps.chat import ReviewedChat
from clearance.errors import RunUnfinishedError
from clearance.outcome import CallState
from clearance.review import Review, ReviewKind, ReviewStatus
from clearance.run import Run, RunState
from clearance.store import calls, reviews, runs
from clearance.store.calls import LedgerRow
from clearance.store.database import retrying
from tests.journeys.processes import until
from tests.journeys.program import PERSON, Stage, agent_of

Decision = Mapping[str, Any]
APPROVE: Decision = {"type": "approve"}
REJECT: Decision = {"type": "reject"}


class Front:
    """The web process of a journey, on its stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.opened = stage.open()
        self.chat = ReviewedChat(agent_of(self.opened, stage))

    def close(self) -> None:
        """Close the connections."""
        self.opened.close()

    def begin(self, thread_id: str, text: str) -> str:
        """Send a message and return its run, without waiting for what comes of it."""
        with suppress(RunUnfinishedError):
            self.chat.send_message(thread_id, text, by=PERSON, wait=0)
        run = self.open_run(thread_id)
        assert run is not None
        return run.id

    def decide(self, review: Review, decision: Decision = APPROVE) -> Review:
        """Take the same decision on every call that waits, as the one person who decides here."""
        decisions = [{**decision, "call": call.key} for call in review.waiting]
        return self.opened.gate.decide(review.id, decisions, by=PERSON, version=review.version)

    def bring_to_end(
        self, run_id: str, *, decision: Decision = APPROVE, meanwhile: Callable[[], object] = bool
    ) -> Run:
        """Decide whatever the run waits for until it has ended; return it. `meanwhile` is called often."""

        def ended() -> bool:
            meanwhile()
            review = self.pending_of(run_id)
            if review is not None:
                self.decide(review, decision)
            return not self.run(run_id).is_open

        until(ended, what=f"the end of run {run_id}")
        return self.run(run_id)

    def wait_until_ended(self, run_id: str) -> Run:
        """Return the run as soon as it has ended; whatever it waits for is decided by somebody else."""
        until(lambda: not self.run(run_id).is_open, what=f"the end of run {run_id}")
        return self.run(run_id)

    def wait_until_first_call_is(self, state: CallState, run_id: str) -> None:
        """Return as soon as the ledger says so of the run's first call."""
        until(lambda: self.calls(run_id)[0].state is state, what=f"{state} of the call of run {run_id}")

    def wait_until_idle(self, thread_id: str) -> None:
        """Return as soon as no process has anything left to do for the thread."""
        until(lambda: self.is_idle(thread_id), what=f"{thread_id} to be idle")

    def say(self, thread_id: str, text: str, *, decision: Decision = APPROVE) -> str:
        """Send a message, decide what it leads to, and return the answer."""
        run = self.bring_to_end(self.begin(thread_id, text), decision=decision)
        assert run.state is RunState.DONE, run
        return run.answer or ""

    def wait_until_pending(self, run_id: str) -> Review:
        """Return the review that the run waits for, as soon as it does."""

        def pending() -> Review | None:
            run = self.run(run_id)
            assert run.is_open, run
            return self.pending_of(run_id)

        return until(pending, what=f"a review of run {run_id}")

    def wait_until_parked(self, run_id: str) -> Review:
        """Return the review that the run waits for, as soon as no process has anything left of it."""
        review = self.wait_until_pending(run_id)
        self.wait_until_idle(review.thread_id)
        return review

    def is_idle(self, thread_id: str) -> bool:
        """Whether nothing is wanted of the thread, and nobody owns it."""
        with self.opened.database.read() as tx:
            found = runs.thread(tx, thread_id)
        return found is not None and found.owner is None and found.wanted == found.done

    def run(self, run_id: str) -> Run:
        """Return a run as it is now."""
        with self.opened.database.read() as tx:
            return runs.run(tx, run_id)

    def open_run(self, thread_id: str) -> Run | None:
        """Return the thread's open run, or its newest one."""
        with self.opened.database.read() as tx:
            return runs.open_run(tx, thread_id) or next(iter(runs.list_runs(tx, thread_id=thread_id)), None)

    def runs(self) -> list[Run]:
        """Return every run."""
        with self.opened.database.read() as tx:
            return runs.list_runs(tx, limit=10_000)

    def pending_of(self, run_id: str) -> Review | None:
        """Return the review that the run waits for now."""
        with self.opened.database.read() as tx:
            run = runs.run(tx, run_id)
            found = reviews.pending(tx, run.thread_id)
        return found if found is not None and found.run_id == run_id else None

    def reviews(self, thread_id: str) -> list[Review]:
        """Return the reviews of a thread, newest first."""
        with self.opened.database.read() as tx:
            return reviews.of_thread(tx, thread_id, limit=1_000)

    def open_outcomes(self, thread_id: str) -> list[Review]:
        """Return the reviews that ask what became of an uncertain call."""
        return [
            review
            for review in self.reviews(thread_id)
            if review.kind is ReviewKind.OUTCOME and review.status is ReviewStatus.PENDING
        ]

    def calls(self, run_id: str) -> list[LedgerRow]:
        """Return the ledger's rows of a run."""
        with self.opened.database.read() as tx:
            return calls.of_run(tx, run_id)

    def messages(self, thread_id: str) -> list[BaseMessage]:
        """Return what the thread keeps."""
        # Its connection is cut where the server was restarted; it is a new one then.
        return retrying(lambda: self.chat.messages(thread_id))
