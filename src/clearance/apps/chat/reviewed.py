"""The reviewed chat: messages in, answers or reviews out, decisions taken; the same from every door."""

import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT

from clearance import turns
from clearance.adapters import history
from clearance.adapters.checkpoints import FencedSaver
from clearance.adapters.langgraph import RunContext
from clearance.adapters.speaking import Speaker
from clearance.apps.chat.agent import Agent, parts_of
from clearance.errors import NoPendingReviewError, RunFailedError, RunUnfinishedError
from clearance.killpoints import at
from clearance.ledger import new_id
from clearance.outcome import Outcome
from clearance.payload import build_review_request
from clearance.program import Finished, Parked
from clearance.review import Review
from clearance.run import Run, RunState
from clearance.store import policies, reviews, runs

WAIT = 30.0
POLL = 0.01
POLL_BESIDE_A_WORKER = 0.05


class Reply(TypedDict):
    """What a thread answers: exactly one of `answer` and `pending_review` is set."""

    thread_id: str
    answer: str | None
    pending_review: dict[str, Any] | None


class ReviewedChat:
    """The conversation with one agent. A worker advances it: this process's own, or any other.

    `wait` is in seconds; when it ends, the run goes on and `RunUnfinishedError` carries its id.
    """

    def __init__(self, agent: Agent) -> None:
        parts = parts_of(agent)
        self._clearance = parts.clearance
        self._reviewed = parts.reviewed
        self._checkpointer = parts.checkpointer
        self._graphs = threading.local()
        self._shown: dict[str, tuple[str, int]] = {}
        self._name = parts.reviewed.program
        known = parts.clearance.programs.get(self._name)
        if known is None:
            raise ValueError("The agent's workspace does not know it.")
        self._clearance.register(replace(known, segment=self._segment))

    def send_message(self, thread_id: str, text: str, *, by: str | None = None, wait: float = WAIT) -> Reply:
        """Send a person's message and return the agent's answer, or the review that it waits for.

        Raises `EmptyMessageError`, `ThreadBusyError`, `ReviewPendingError`, `RunFailedError`,
        `RunUnfinishedError`.
        """
        person = by or self._clearance.person
        run = turns.start(
            self._clearance.ledger, thread_id, text, run_id=new_id(), program=self._name, by=person
        )
        return self.wait_for(run.id, wait=wait)

    def submit_review(
        self,
        thread_id: str,
        decisions: object,
        *,
        review_id: str | None = None,
        version: int | None = None,
        by: str | None = None,
        wait: float = WAIT,
    ) -> Reply:
        """Take a person's decisions on what the thread waits for, and return what it answers then.

        Without `review_id` they are for the review that this object last returned for the thread. Where it
        returned none, they must name their calls, unless the thread was never decided on before: a late
        repetition must not reach another review.
        Raises `NoPendingReviewError`, `ReviewConflictError`, `InvalidReviewDecisionError`,
        `ForbiddenError`, and what `send_message` raises while waiting.
        """
        person = by or self._clearance.person
        shown_id, shown_version = self._shown.get(thread_id, (None, None))
        gate = self._clearance.gate
        if review_id is None and shown_id is None:
            review = gate.decide_waiting(thread_id, decisions, by=person)
        else:
            seen = (
                version if version is not None else (shown_version if review_id in (None, shown_id) else None)
            )
            found = self._review(thread_id, review_id or shown_id or "")
            review = gate.decide(
                found.id, decisions, by=person, version=found.version if seen is None else seen
            )
        at("decided")
        return self.wait_for(review.run_id, wait=wait)

    def pending_review(self, thread_id: str) -> dict[str, Any] | None:
        """Return the review that the thread waits for, as clients get it; None when it waits for none."""
        with self._clearance.database.read() as tx:
            review = reviews.pending(tx, thread_id)
        return None if review is None else self._payload(review)

    def wait_for(self, run_id: str, *, wait: float = WAIT) -> Reply:
        """Return what a run answers, or the review that it waits for, as soon as it does."""
        until = time.monotonic() + wait
        # Where a worker of this process advances the run it is announced; of others nothing is heard.
        pause = POLL_BESIDE_A_WORKER if self._clearance.worker.alive else POLL
        with self._clearance.database.listening(run_id) as heard:
            while (reply := self._reply(run_id)) is None:
                if time.monotonic() >= until:
                    raise RunUnfinishedError(run_id)
                heard.wait(pause)
                heard.clear()
        return reply

    def _reply(self, run_id: str) -> Reply | None:
        """Return what a run answers or waits for; None while it is worked on."""
        with self._clearance.database.read() as tx:
            run = runs.run(tx, run_id)
            review = reviews.pending(tx, run.thread_id) if run.state is RunState.WAITING else None
        match run.state:
            case RunState.DONE:
                self._shown.pop(run.thread_id, None)
                return Reply(thread_id=run.thread_id, answer=run.answer or "", pending_review=None)
            case RunState.FAILED | RunState.CANCELLED:
                raise RunFailedError(run.id, run.reason or str(run.state))
            case RunState.WAITING if review is not None:
                return Reply(thread_id=run.thread_id, answer=None, pending_review=self._payload(review))
            case _:
                return None

    def messages(self, thread_id: str) -> list[BaseMessage]:
        """Return the thread's messages as they are kept."""
        state = self._graph().get_state({"configurable": {"thread_id": thread_id}})
        found: list[BaseMessage] = state.values.get("messages", [])
        return found

    def _review(self, thread_id: str, review_id: str) -> Review:
        with self._clearance.database.read() as tx:
            if reviews.pending(tx, thread_id) is None and not review_id:
                raise NoPendingReviewError(thread_id)
            found = reviews.review(tx, review_id)
        if found.thread_id != thread_id:
            raise NoPendingReviewError(thread_id)
        return found

    def _payload(self, review: Review) -> dict[str, Any]:
        with self._clearance.database.read() as tx:
            schemas = {call.schema_hash: policies.schema(tx, call.schema_hash) for call in review.waiting}
        self._shown[review.thread_id] = (review.id, review.version)
        return build_review_request(review, schemas=schemas, address=self._reviewed.address(review.id))

    def _graph(self) -> Agent:
        """Return the compiled graph of this thread: a checkpointer's connection is not shared."""
        graph: Agent | None = getattr(self._graphs, "graph", None)
        if graph is None:
            graph = self._reviewed.graph().compile(checkpointer=self._saver(), name=self._name)
            self._graphs.graph = graph
        return graph

    def _saver(self) -> BaseCheckpointSaver[Any]:
        own = isinstance(self._checkpointer, FencedSaver)
        return self._clearance.checkpointer() if own else self._checkpointer

    def _segment(self, run: Run, fence: int) -> Finished | Parked:
        """Advance a run to its next stop: begin with its message, or go on where the graph stands."""
        saver = self._saver()
        if isinstance(saver, FencedSaver):
            saver.raise_fence(run.thread_id, fence)
        at("fence-raised")
        graph, config = self._graph(), self._config(run)
        saved = saver.get_tuple(config)
        first: Any = None
        ended: dict[str, Outcome] = {}
        if saved is None or not self._has_begun(run, saved, config):
            message = HumanMessage(run.input or "", id=history.input_id(run.id))
            first = {"messages": [message], "run": run.id}
        elif run.state is not RunState.WAITING and (asked := _asked(saved)) is not None:
            ended = self._reviewed.run_ahead(run, asked, fence=fence)
        own = saver if isinstance(saver, FencedSaver) else None
        with (
            Speaker(self._clearance.database, run.id, attempt=fence) as speaker,
            own.holding_back(run.thread_id) if own is not None else nullcontext(),
        ):
            store = partial(own.store, run.thread_id) if own is not None else _nothing
            context = RunContext(run, fence, speaker, ended, store)
            values = graph.invoke(first, config, context=context, durability="sync")
            if "__interrupt__" in values:
                return Parked()
            if own is not None:
                own.delete_superseded(run.thread_id)
        return Finished(_answer(values["messages"]))

    def _has_begun(self, run: Run, saved: CheckpointTuple, config: Any) -> bool:
        """Whether the message that the run begins with is in the thread's state."""
        begun = saved.checkpoint["channel_values"].get("run")
        if begun is not None:
            return bool(begun == run.id)
        # Its last run was begun by an earlier version, or by hand.
        found = self._graph().get_state(config).values.get("messages", [])
        return any(message.id == history.input_id(run.id) for message in reversed(found))

    def _config(self, run: Run) -> Any:
        # The limit on steps is counted in the state; LangGraph's own starts again at every resume.
        return {"configurable": {"thread_id": run.thread_id}, "recursion_limit": 10_000}


ReviewedChatUseCase = ReviewedChat


def _asked(saved: CheckpointTuple) -> Mapping[str, Any] | None:
    """Return the question that a thread's newest state waits for; None when it waits for none."""
    for _, channel, value in saved.pending_writes or ():
        if channel == INTERRUPT and value:
            asked: Mapping[str, Any] = value[0].value
            return asked
    return None


def _nothing() -> None:
    """A saver of somebody else's stores everything at once."""


def _answer(messages: list[BaseMessage]) -> str:
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return last.text if last is not None else ""
