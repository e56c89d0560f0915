"""States: how a thread stands, as the LangGraph server tells it, and by which name a client says what it saw.

A name is that of a checkpoint and of an interrupt alike. It stands for the review and its version where the
thread waits, and else for the run that was done last. Clients send it back, and know nothing of its form.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clearance.people import Person
from clearance.policy import DecisionType
from clearance.run import Run, RunState
from clearance.store import runs
from clearance.store.conversations import Conversation
from clearance.web import following
from clearance.web.langgraph_server.messages import human, messages_of
from clearance.web.threads import seen
from clearance.workspace import Clearance

_NAME = re.compile(r"(.+)@(\d{1,9})")
_BEGINNING, _EARLIER = "beginning", "earlier"
NODE = "human_review"
STATUS = {
    RunState.QUEUED: "busy",
    RunState.RUNNING: "busy",
    RunState.WAITING: "interrupted",
    RunState.DONE: "idle",
    RunState.CANCELLED: "idle",
    RunState.FAILED: "error",
}
"""What the LangGraph server calls a thread whose newest run is in this state."""


@dataclass(frozen=True)
class ThreadState:
    """How a thread stands. `name` is what a client sends back to say that it saw this."""

    thread: runs.Thread
    newest: Run | None
    name: str
    interrupts: list[dict[str, Any]]
    messages: list[dict[str, Any]]

    @property
    def values(self) -> dict[str, Any]:
        """The state's values; a stream's have what waits among them, as LangGraph's have."""
        return {"messages": self.messages}

    @property
    def streamed(self) -> dict[str, Any]:
        """The values as a stream sends them."""
        return self.values | ({"__interrupt__": self.interrupts} if self.interrupts else {})


def state_of(here: Clearance, thread_id: str, *, by: Person) -> ThreadState:
    """Return how a thread stands; `NotFoundError` for one that the caller may not see."""
    with here.database.read() as tx:
        thread = seen(tx, thread_id, by=by)
        name, newest = name_of_state(here, thread_id)
    found = following.standing(here, newest.id) if newest is not None else None
    interrupts = interrupts_of(found.review) if found is not None else []
    if interrupts:
        name = interrupts[0]["id"]
    return ThreadState(thread, newest, name, interrupts, messages_of(here, thread_id, newest))


def name_of_state(here: Clearance, thread_id: str) -> tuple[str, Run | None]:
    """Return the name of a thread's state where it waits for nothing, and its newest run.

    A run that failed changes no name: a client that was told of the failure goes on from where it was.
    """
    with here.database.read() as tx:
        newest = next(iter(runs.list_runs(tx, thread_id=thread_id, limit=1)), None)
        done = next(iter(runs.list_runs(tx, thread_id=thread_id, states=(RunState.DONE,), limit=1)), None)
    return (_BEGINNING if done is None else done.id), newest


def interrupts_of(review: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return what a thread waits for as LangGraph tells it: nothing, or one interrupt."""
    if review is None:
        return []
    name = f"{review['review_id']}@{review['version']}"
    return [
        {
            "id": name,
            "value": _question(review),
            "when": "during",
            "resumable": True,
            "ns": [f"{NODE}:{name}"],
        }
    ]


def read_name(name: str) -> tuple[str, int] | None:
    """Return the review and the version that a name stands for; None where it stands for none."""
    found = _NAME.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def _question(review: Mapping[str, Any]) -> dict[str, Any]:
    """Return a review in the words of all front ends: LangChain's, and of Agent Inbox those before.

    There `arguments` is the object that it is for LangChain's clients; the exact text is beside it.
    """
    requests = [
        {**each, "arguments": each["args"], "arguments_text": each["arguments"]}
        for each in review["action_requests"]
    ]
    question = {**review, "action_requests": requests}
    if len(requests) != 1:
        # The older form shows one call only, and nobody must answer for what they were not shown.
        return question
    allowed = review["review_configs"][0]["allowed_decisions"]
    return question | {
        "action_request": {"action": requests[0]["name"], "args": requests[0]["args"]},
        "config": {
            "allow_accept": DecisionType.APPROVE in allowed,
            "allow_edit": DecisionType.EDIT in allowed,
            "allow_respond": DecisionType.RESPOND in allowed or DecisionType.REJECT in allowed,
            "allow_ignore": DecisionType.REJECT in allowed,
        },
        "description": requests[0]["description"],
    }


def state_record(state: ThreadState) -> dict[str, Any]:
    """Return a state as `GET …/state` and the history give it. Earlier ones cannot be taken up again."""
    created = state.newest.created_at.isoformat() if state.newest is not None else None
    task: dict[str, Any] = {
        "id": state.name,
        "name": NODE,
        "path": [],
        "error": None,
        "checkpoint": None,
        "state": None,
    }
    return {
        "values": state.values,
        "next": [NODE] if state.interrupts else [],
        "tasks": [{**task, "interrupts": state.interrupts}] if state.interrupts else [],
        "interrupts": state.interrupts,
        "metadata": _metadata(state.thread.program),
        "created_at": created,
        "checkpoint": _checkpoint(state.thread.id, state.name),
        "parent_checkpoint": _checkpoint(state.thread.id, _EARLIER),
    }


def _checkpoint(thread_id: str, name: str) -> dict[str, Any]:
    return {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": name, "checkpoint_map": None}


def _metadata(program: str) -> dict[str, str]:
    return {"graph_id": program, "assistant_id": program}


def thread_record(
    here: Clearance, conversation: Conversation, *, messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a thread as the LangGraph server tells it."""
    newest = conversation.newest
    interrupts = interrupts_of(following.standing(here, newest.id).review)
    status = STATUS[newest.state]
    if status == "interrupted" and not interrupts:
        status = "busy"  # It was decided, and a worker is about to go on.
    updated = (newest.ended_at or newest.created_at).isoformat()
    return {
        "thread_id": conversation.id,
        "created_at": conversation.created_at.isoformat(),
        "updated_at": updated,
        "state_updated_at": updated,
        "metadata": _metadata(conversation.program),
        "config": {},
        "status": status,
        "values": {"messages": messages},
        "interrupts": {each["id"]: [each] for each in interrupts},
        "error": newest.reason if newest.state is RunState.FAILED else None,
    }


def first_message(conversation: Conversation) -> list[dict[str, Any]]:
    """Return what lists of threads show of a conversation: how it begins."""
    text = conversation.first
    return [] if text is None else [human(text, id=f"{conversation.id}/first")]


class LastShown:
    """Which review each key was last shown in each thread, for clients that cannot say what they saw.

    It is kept in this process, for the last `most`; who is not found here looks once more, and decides then.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._names: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, key: str, thread_id: str, interrupts: list[dict[str, Any]]) -> None:
        """Keep what was shown now."""
        for each in interrupts:
            with self._lock:
                self._names[key, thread_id] = each["id"]
                self._names.move_to_end((key, thread_id))
                if len(self._names) > self._most:
                    self._names.popitem(last=False)

    def name(self, key: str, thread_id: str) -> str | None:
        """Return the name of what was shown last; None for nothing."""
        return self._names.get((key, thread_id))
