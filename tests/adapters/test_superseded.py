"""What is deleted of a thread's checkpoints, and that its state never changes by it."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt

from clearance.adapters.checkpoints import FencedSaver
from clearance.adapters.checkpoints_sqlite import FencedSqliteSaver
from clearance.adapters.messages import merge_messages
from tests.adapters.reviewing import Agent, State, at


def test_what_is_superseded_goes_and_the_state_stays(
    saver: FencedSaver, claim: Callable[[str], int], rows: Callable[[], Any]
) -> None:
    agent = Agent(saver)
    for number in range(3):
        saver.raise_fence("t", claim("t"))
        agent.turn("t", f"r{number}")
        before = agent.graph.get_state(at("t"))
        saver.delete_superseded("t")
        after = agent.graph.get_state(at("t"))
        assert (after.values, after.tasks, after.metadata) == (
            before.values,
            before.tasks,
            before.metadata,
        )
    assert [message.id for message in agent.messages("t")] == [
        f"r{number}/{part}" for number in range(3) for part in ("in", "1", "tool", "2")
    ]
    # Each message is one row, and nothing else is left but the two checkpoints.
    assert [len(found) for table, found in rows().items() if "blobs" not in table] == [2, 12]


def test_deleting_twice_changes_nothing_more(saver: FencedSaver, rows: Callable[[], Any]) -> None:
    Agent(saver).turn("t", "r1")
    saver.delete_superseded("t")
    before = rows()
    saver.delete_superseded("t")
    assert rows() == before


def test_a_thread_that_was_never_used_has_nothing_to_delete(saver: FencedSaver) -> None:
    saver.delete_superseded("unknown")


def test_a_parked_thread_can_be_woken_after_its_own_and_another_threads_deletion(
    saver: FencedSaver,
) -> None:
    agent = Agent(saver)
    agent.turn("parked", "r1")
    asked = agent.send("parked", "r2")["__interrupt__"]
    agent.turn("other", "r3")
    saver.delete_superseded("other")
    saver.delete_superseded("parked")
    assert list(agent.graph.get_state(at("parked")).interrupts) == asked
    assert agent.wake("parked")["__interrupt__"] == asked
    agent.settled.add("r2")
    assert "__interrupt__" not in agent.wake("parked")
    assert len(agent.messages("parked")) == 8


def test_a_segment_killed_between_two_checkpoints_goes_on_after_a_deletion(
    saver: FencedSaver,
) -> None:
    agent = Agent(saver)
    agent.turn("t", "r1")

    def die() -> None:
        raise KeyboardInterrupt

    agent.on["tool_node"] = die
    agent.settled.add("r2")
    with pytest.raises(KeyboardInterrupt):
        agent.send("t", "r2")
    saver.delete_superseded("t")
    agent.wake("t")
    assert len(agent.messages("t")) == 8


def _rare(frequency: int) -> type:
    """The state with snapshots after so many updates, and a second channel with its own rhythm."""

    class Snapshots(TypedDict, total=False):
        messages: Annotated[list[BaseMessage], DeltaChannel(merge_messages, snapshot_frequency=frequency)]
        notes: Annotated[list[BaseMessage], DeltaChannel(merge_messages, snapshot_frequency=5)]
        run: str

    return Snapshots


@pytest.mark.parametrize("frequency", [1, 2, 3, 7, 1_000])
def test_deletion_keeps_every_channel_whatever_its_snapshots(saver: FencedSaver, frequency: int) -> None:
    agent = Agent(saver, state=_rare(frequency))
    for number in range(7):
        agent.turn("t", f"r{number}")
        if number % 3 == 1:
            note = HumanMessage("note", id=f"n{number}")
            agent.graph.update_state(at("t"), {"notes": [note]}, as_node="tool_node")
            agent.wake("t")
        if number == 4:
            kept = agent.messages("t")[-2:]
            agent.graph.update_state(at("t"), {"messages": Overwrite(kept)}, as_node="human_review")
        before = agent.graph.get_state(at("t")).values
        saver.delete_superseded("t")
        assert agent.graph.get_state(at("t")).values == before
        assert len(list(saver.list(at("t")))) <= 3
    assert [note.id for note in agent.graph.get_state(at("t")).values["notes"]] == ["n1", "n4"]


def test_parallel_writes_keep_their_order(saver: FencedSaver) -> None:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("fan", lambda _state: None)
    graph.add_node("one", lambda key: {"messages": [HumanMessage(key, id=key)]})
    graph.add_edge(START, "fan")
    graph.add_conditional_edges("fan", lambda _state: [Send("one", key) for key in "hgfedcba"])
    program = graph.compile(checkpointer=saver)
    program.invoke({"run": "r1"}, at("t"), durability="sync")
    program.invoke({"run": "r2"}, at("t"), durability="sync")
    before = program.get_state(at("t")).values["messages"]
    saver.delete_superseded("t")
    assert program.get_state(at("t")).values["messages"] == before
    assert [message.id for message in before] == list("hgfedcba")


def test_calls_of_subgraphs_go_when_they_have_ended_and_stay_while_they_wait(
    saver: FencedSaver, rows: Callable[[], Any]
) -> None:
    begun: list[str] = []
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("begin", lambda state: begun.append(state["run"]))
    inner.add_node("ask", lambda state: {"run": interrupt(state["run"])})
    inner.add_edge(START, "begin")
    inner.add_edge("begin", "ask")
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    program = outer.compile(checkpointer=saver)
    for number in range(2):
        program.invoke({"run": f"question {number}"}, at("t"), durability="sync")
        saver.delete_superseded("t")
        assert program.invoke(Command(resume="yes"), at("t"), durability="sync")["run"] == "yes"
        saver.delete_superseded("t")
        assert {namespace for _, namespace, *_ in rows()["checkpoints"]} == {""}
    assert begun == ["question 0", "question 1"]


def _stored(rows: dict[str, list[tuple[Any, ...]]]) -> int:
    """Return the length of all values, as text."""
    values = [value for table in rows.values() for row in table for value in row]
    return sum(len(value if isinstance(value, bytes) else json.dumps(value, default=str)) for value in values)


def test_a_turn_stores_as_much_at_the_end_of_a_long_thread_as_of_a_short_one(
    saver: FencedSaver, rows: Callable[[], Any]
) -> None:
    agent = Agent(saver)
    growth = []
    for thread, length in (("short", 10), ("middle", 200), ("long", 1_000)):
        history = [HumanMessage("x" * 50, id=f"{thread}/{number}") for number in range(length)]
        agent.graph.update_state(at(thread), {"messages": history}, as_node="human_review")
        agent.turn(thread, "r0")
        saver.delete_superseded(thread)
        before = _stored(rows())
        for number in range(1, 6):
            agent.turn(thread, f"r{number}")
            saver.delete_superseded(thread)
        growth.append((_stored(rows()) - before) / 5)
        assert len(agent.messages(thread)) == length + 24
    assert max(growth) <= 1.2 * min(growth)
    assert max(growth) <= 8_000


def test_the_work_is_as_long_as_what_was_added_since_whatever_the_length_of_the_thread(
    tmp_path: Path,
) -> None:
    saver = FencedSqliteSaver(tmp_path / "checkpoints.db")
    agent = Agent(saver)
    steps: Counter[int] = Counter()
    for number in range(40):
        agent.turn("t", f"r{number}")
        saver.conn.set_progress_handler(partial(steps.update, [number]), 10)
        saver.delete_superseded("t")
        saver.conn.set_progress_handler(None, 10)
    saver.close()
    assert steps[39] <= 1.1 * steps[2]
