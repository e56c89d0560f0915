"""What a segment writes is held back, and stored in one transaction when others rely on it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from clearance.adapters.checkpoints import FencedSaver
from clearance.errors import FenceLostError
from tests.adapters.reviewing import Agent, at

Opener = Callable[[], FencedSaver]


def _source(saver: FencedSaver) -> Any:
    found = saver.get_tuple(at("t"))
    return None if found is None else found.metadata["source"]


def test_others_see_the_message_at_once_and_what_follows_when_it_is_stored(opened: Opener) -> None:
    saver, other = opened(), opened()
    with saver.holding_back("t"):
        Agent(saver).send("t", "r1")
        assert _source(other) == "input"
        saver.store("t")
        assert _source(other) == "loop"


def test_all_is_stored_at_the_end_of_the_segment(opened: Opener, rows: Callable[[], Any]) -> None:
    saver = opened()
    with saver.holding_back("t"):
        Agent(saver).send("t", "r1")
        held = rows()
    assert rows() != held
    assert Agent(opened()).graph.get_state(at("t")).interrupts


def test_what_a_segment_wrote_before_it_failed_is_stored(opened: Opener) -> None:
    saver, other = opened(), opened()
    with suppress(ZeroDivisionError), saver.holding_back("t"):
        Agent(saver).send("t", "r1")
        raise ZeroDivisionError
    assert _source(other) == "loop"


def test_a_segment_that_was_overtaken_stores_nothing_of_what_it_held_back(
    opened: Opener, claim: Callable[[str], int], rows: Callable[[], Any]
) -> None:
    frozen, successor = opened(), opened()
    frozen.raise_fence("t", claim("t"))
    left: list[Any] = []

    def segment() -> None:
        with frozen.holding_back("t"):
            Agent(frozen).send("t", "r1")
            successor.raise_fence("t", claim("t"))
            left.append(rows())

    with pytest.raises(FenceLostError):
        segment()
    assert [rows()] == left


def test_what_is_held_back_is_stored_before_what_it_supersedes_is_deleted(opened: Opener) -> None:
    held, plain = opened(), opened()
    for saver, thread in ((held, "t"), (plain, "u")):
        agent = Agent(saver)
        agent.send(thread, "r1")
        agent.settled.add("r1")
        if saver is held:
            with saver.holding_back(thread):
                agent.wake(thread)
                saver.delete_superseded(thread)
        else:
            agent.wake(thread)
            saver.delete_superseded(thread)
    states = [Agent(opened()).graph.get_state(at(thread)) for thread in ("t", "u")]
    said = [[message.content for message in state.values["messages"]] for state in states]
    assert said[0] == said[1]
    assert [len(list(held.list(at(thread)))) for thread in ("t", "u")] == [2, 2]
