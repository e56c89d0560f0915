"""A parked run that is resumed several times at once: its tool runs once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from clearance import killpoints
from clearance.apps.chat.agent import Agent
from clearance.outcome import CallState
from clearance.settlement import Wake
from tests.journeys.front import Front
from tests.journeys.invariants import check, check_effects, check_trail
from tests.journeys.processes import Processes, until, was_killed
from tests.journeys.program import Stage, agent_by_hand, resume_by_hand, saver_by_hand, work

RUNS = 10
ROUNDS = 10
ANSWER: Any = Command(resume={"decisions": [{"type": "approve"}]})


def test_two_workers_that_are_woken_for_one_thread_run_its_tool_once(
    stage: Stage, processes: Processes, front: Front, nightly: bool
) -> None:
    for _ in range(2):
        processes.start(work, stage)
    parked = [front.begin(f"t{n}", f"send {n}") for n in range(RUNS * 10 if nightly else RUNS)]
    for run_id in parked:
        front.decide(front.wait_until_parked(run_id))
        wake_again(front, run_id)
    for run_id in parked:
        front.wait_until_ended(run_id)
        [row] = front.calls(run_id)
        assert row.state is CallState.EXECUTED
    check(front)


def wake_again(front: Front, run_id: str) -> None:
    """Wake a thread without reason, several times."""
    wake: Wake = front.opened.ledger.wake
    for _ in range(3):
        with front.opened.database.write() as tx:
            wake(tx, front.run(run_id).thread_id)


def test_two_resumes_by_hand_run_the_tool_once(front: Front, nightly: bool) -> None:
    """Each with a saver of its own, as two processes of an application without workers have them."""
    rounds = ROUNDS * 10 if nightly else ROUNDS
    with graphs_by_hand(front, 2) as graphs:
        for number in range(rounds):
            config = park_by_hand(graphs[0], f"h{number}")
            assert resume_at_once(graphs, config) == ["send did a"] * 2
            assert graphs[0].get_state(config).values["messages"][-1].content == "send did a"
            again = graphs[0].invoke({"messages": [HumanMessage("look b")]}, config)
            assert again["messages"][-1].content == "look did b"
    check_by_hand(front, rounds)


def test_a_call_that_is_being_started_is_not_taken_for_a_lost_one(front: Front) -> None:
    others = threading.Semaphore(0)
    held = threading.Event()

    def watcher(place: str) -> None:
        match place:
            case "before-take":
                others.release()
            case "taken" if not held.is_set():
                held.set()
                # The ledger says `started`, the tool's thread is not there: long enough for the other one.
                assert others.acquire(timeout=60)
                assert others.acquire(timeout=60)
                threading.Event().wait(0.3)

    with graphs_by_hand(front, 2) as graphs:
        config = park_by_hand(graphs[0], "h0")
        killpoints.watch(watcher)
        try:
            answers = resume_at_once(graphs, config)
        finally:
            killpoints.watch(None)
    assert answers == ["send did a"] * 2
    check_by_hand(front, 1)


def test_an_uncertain_call_of_a_thread_advanced_by_hand_is_run_again_with_its_next_message(
    stage: Stage, processes: Processes, front: Front
) -> None:
    with graphs_by_hand(front, 1) as [graph]:
        config = park_by_hand(graph, "h0", text="hang a")
        resumer = processes.start(resume_by_hand, stage, "h0", "kill taken")
        until(lambda: was_killed(resumer))
        answered = graph.invoke(None, config)
        assert "its outcome is unknown" in answered["messages"][-1].content
        [question] = front.open_outcomes("h0")
        front.decide(question)
        stage.release("a")
        told = graph.invoke({"messages": [HumanMessage("look b")]}, config)
        assert "hang did a" in told["messages"][-1].content
    assert [line.split()[0] for line in stage.effects()] == ["hang", "look"]
    check_by_hand(front, 1)


@contextmanager
def graphs_by_hand(front: Front, count: int) -> Iterator[list[Agent]]:
    """Build agents whose callers advance them, each with a saver of its own on the same file."""
    with ExitStack() as stack:
        savers = [stack.enter_context(saver_by_hand(front.stage)) for _ in range(count)]
        yield [agent_by_hand(front.opened, front.stage, saver) for saver in savers]


def park_by_hand(graph: Agent, thread_id: str, *, text: str = "send a") -> Any:
    """Bring a thread to where it waits for people; return its configuration."""
    config: Any = {"configurable": {"thread_id": thread_id}}
    asked = graph.invoke({"messages": [HumanMessage(text)]}, config)
    assert asked["__interrupt__"]
    return config


def check_by_hand(front: Front, rounds: int) -> None:
    """Check what must be true of threads that their callers have advanced."""
    rows = [row for run in front.runs() for row in front.calls(run.id)]
    assert {row.state for row in rows} == {CallState.EXECUTED}
    check_effects(front, rows)
    asked = [review for n in range(rounds) for review in front.reviews(f"h{n}")]
    check_trail(front, rows=rows, asked=asked)


def resume_at_once(graphs: list[Agent], config: Any) -> list[str]:
    """Let a thread for each graph resume the same run, from the same moment; return what each was told."""
    start = threading.Barrier(len(graphs))

    def resume(graph: Agent) -> str:
        start.wait()
        return str(graph.invoke(ANSWER, config)["messages"][-1].content)

    with ThreadPoolExecutor(len(graphs)) as pool:
        return list(pool.map(resume, graphs))
