"""What is stored and held: as much for a turn of a long thread as of a short one, and nothing for a wait."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from sqlalchemy import Connection, event

from clearance.review import Review
from clearance.run import RunState
from clearance.store import audit, calls, listing, reviews, runs
from tests.journeys.front import Front
from tests.journeys.parked import Copy, copies_of, file_bytes, measure, park, stored_bytes
from tests.journeys.processes import PATIENCE, Processes, kill
from tests.journeys.program import Stage, agent_of, work

HISTORIES = (10, 200, 1000)
TURNS = 5
MOST = 15_000
PARKED = 10_000
A_FEW_MEGABYTES = 8 * 1024


# --- bytes of a turn ---


def test_a_reviewed_turn_stores_the_same_however_long_its_thread(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    stored = {}
    for history in HISTORIES:
        thread_id = f"of-{history}"
        _talk_before(front, thread_id, messages=history)
        _turns(front, thread_id, count=1)
        before = stored_bytes(stage)
        _turns(front, thread_id, count=TURNS)
        stored[history] = (stored_bytes(stage) - before) / TURNS
        assert len(front.messages(thread_id)) == history + 4 * (TURNS + 1)
    assert max(stored.values()) <= 1.2 * min(stored.values()), stored
    assert max(stored.values()) <= MOST, stored


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_a_reviewed_turn_takes_at_most_15_kb_of_the_disk(
    stage: Stage, processes: Processes, front: Front
) -> None:
    processes.start(work, stage)
    _turns(front, "t1", count=1)
    before = file_bytes(stage)
    _turns(front, "t1", count=TURNS)
    assert (file_bytes(stage) - before) / TURNS <= MOST


def _talk_before(front: Front, thread_id: str, *, messages: int) -> None:
    """Give a thread a history, written into its state at once."""
    said: list[BaseMessage] = []
    for number in range(messages // 2):
        said += [
            HumanMessage(f"Question {number}: how many are there?", id=f"{thread_id}-q{number}"),
            AIMessage(f"There are {number} of them, as far as I know.", id=f"{thread_id}-a{number}"),
        ]
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    agent_of(front.opened, front.stage).update_state(config, {"messages": said}, as_node="llm_call")


def _turns(front: Front, thread_id: str, *, count: int) -> None:
    for number in range(count):
        assert front.say(thread_id, f"send {number:04}") == f"send did {number:04}"
        front.wait_until_idle(thread_id)


# --- ten thousand parked runs ---


@pytest.fixture
def one(stage: Stage, processes: Processes, front: Front) -> Review:
    """The review that a parked run waits for; no worker lives any more."""
    worker = processes.start(work, stage)
    review = front.wait_until_parked(front.begin("the-first", "send a"))
    kill(worker)
    return review


def test_many_parked_runs_cost_no_thread_and_no_memory_and_each_can_be_decided(
    stage: Stage, processes: Processes, front: Front, one: Review
) -> None:
    waiting, threads, memory = _measured(stage, processes)
    copies = copies_of(one, count=PARKED)
    park(front, one, copies)
    many_waiting, many_threads, more_memory = _measured(stage, processes)
    assert (waiting, many_waiting) == (1, PARKED + 1)
    assert many_threads == threads
    assert more_memory - memory < A_FEW_MEGABYTES, (memory, more_memory)
    _decide_and_see(stage, processes, front, copies[PARKED // 2])


def _decide_and_see(stage: Stage, processes: Processes, front: Front, copy: Copy) -> None:
    processes.start(work, stage)
    with front.opened.database.read() as tx:
        review = reviews.review(tx, copy.review)
    front.decide(review)
    run = front.wait_until_ended(copy.run)
    assert (run.state, run.answer) == (RunState.DONE, "send did a")
    sent = [line for line in stage.effects() if line.startswith("send")]
    assert sent == [f"send a {copy.run}/1/0"]
    with front.opened.database.read() as tx:
        assert reviews.waiting_count(tx) == PARKED


def _claim(copy: Copy, tx: Connection) -> None:
    runs.want(tx, copy.thread)
    assert runs.claim(tx, copy.thread, owner="slot-0") is not None


LOOKS: dict[str, Callable[[Copy, Connection], object]] = {
    "the inbox": lambda _, tx: listing.inbox(tx, limit=50),
    "how many wait": lambda _, tx: reviews.waiting_count(tx),
    "one review": lambda copy, tx: reviews.review(tx, copy.review),
    "what a thread waits for": lambda copy, tx: reviews.pending(tx, copy.thread),
    "what is due": lambda _, tx: reviews.due(tx, now=datetime.now(UTC), limit=100),
    "due threads": lambda _, tx: runs.due_threads(tx, programs=("chat",), limit=100),
    "owners": lambda _, tx: runs.owners(tx),
    "a claim": _claim,
    "second attempts": lambda copy, tx: calls.open_second_attempts(tx, copy.thread),
    "lost calls": lambda copy, tx: calls.abandoned(tx, copy.thread, fence=1, now=datetime.now(UTC)),
    "unfinished calls": lambda copy, tx: calls.any_unfinished(tx, copy.thread),
    "calls of a run": lambda copy, tx: calls.of_run(tx, copy.run),
    "runs by state": lambda _, tx: runs.list_runs(tx, states=(RunState.QUEUED,)),
    "the trail": lambda _, tx: audit.standing(tx),
}


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_nothing_that_is_looked_up_goes_through_all_parked_runs(front: Front, one: Review) -> None:
    [copy, *_] = copies = copies_of(one, count=PARKED)
    park(front, one, copies)
    plans = {name: _plans(front, partial(look, copy)) for name, look in LOOKS.items()}
    through_all = [
        (name, line)
        for name, plan in plans.items()
        for line in itertools.chain(*plan)
        # `anon_…` are the lists that the inbox is put together from, each of one page at most.
        if line.startswith("SCAN")
        and "INDEX" not in line
        and not line.startswith(("SCAN notary", "SCAN anon_"))
    ]
    assert not through_all


def _plans(front: Front, look: Callable[[Connection], object]) -> list[list[str]]:
    """Return how the database carries out each statement of a look, a line for each table."""
    asked: list[tuple[str, Any]] = []

    def note(_1: Any, _2: Any, statement: str, parameters: Any, _3: Any, _4: Any) -> None:
        asked.append((statement, parameters))

    with front.opened.database.write() as tx:
        event.listen(tx.engine, "before_cursor_execute", note)
        try:
            look(tx)
        finally:
            event.remove(tx.engine, "before_cursor_execute", note)
        found = [tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {each}", values) for each, values in asked]
        return [[str(row.detail) for row in rows] for rows in found]


def _measured(stage: Stage, processes: Processes) -> tuple[int, int, int]:
    """Return what `measure` reports of a process of its own."""
    report = stage.home / "report"
    process = processes.start(measure, stage, report)
    process.join(PATIENCE)
    waiting, threads, memory = map(int, report.read_text().split())
    report.unlink()
    return waiting, threads, memory
