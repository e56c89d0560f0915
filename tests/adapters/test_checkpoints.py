"""The savers of LangGraph's state: fences, processes that start at once, what is read back."""

import multiprocessing
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from sqlalchemy import make_url

from clearance.adapters.checkpoints import FencedSaver, of_thread, open_checkpointer
from clearance.errors import FenceLostError, StoreError
from tests.adapters.reviewing import Agent, at

Opener = Callable[[], FencedSaver]


def _plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


# --- fences ---


@pytest.mark.parametrize("place", ["llm_call", "human_review", "tool_node"])
def test_what_a_frozen_worker_writes_after_a_takeover_is_refused_and_leaves_nothing(
    opened: Opener, claim: Callable[[str], int], rows: Callable[[], Any], place: str
) -> None:
    frozen, successor = opened(), opened()
    agent = Agent(frozen)
    frozen.raise_fence("t", claim("t"))
    if place == "tool_node":
        agent.send("t", "r1")
        agent.settled.add("r1")
    left: list[Any] = []

    def take_over() -> None:
        successor.raise_fence("t", claim("t"))
        left.append(rows())

    agent.on[place] = take_over
    with pytest.raises(FenceLostError):
        agent.wake("t") if place == "tool_node" else agent.send("t", "r1")
    assert [rows()] == left
    Agent(successor).wake("t")


@pytest.mark.parametrize("writes", [[("messages", [])], [("__interrupt__", ())]])
def test_put_and_put_writes_and_deletions_are_refused_after_a_takeover(
    opened: Opener,
    claim: Callable[[str], int],
    rows: Callable[[], Any],
    writes: list[tuple[str, Any]],
) -> None:
    frozen, successor = opened(), opened()
    frozen.raise_fence("t", claim("t"))
    Agent(frozen).turn("t", "r1")
    successor.raise_fence("t", claim("t"))
    before = rows()
    config = Agent(frozen).graph.get_state(at("t")).config
    refused: list[Callable[[], object]] = [
        lambda: frozen.put(config, empty_checkpoint(), {}, {}),
        lambda: frozen.put_writes(config, writes, "task"),
        lambda: frozen.delete_superseded("t"),
        lambda: frozen.delete_thread("t"),
        lambda: frozen.with_allowlist([("some", "Type")]).put_writes(config, writes, "task"),
    ]
    for write in refused:
        with pytest.raises(FenceLostError):
            write()
        assert rows() == before


def test_a_copy_of_a_saver_holds_the_fence_that_is_raised_later(
    opened: Opener, claim: Callable[[str], int]
) -> None:
    original, successor = opened(), opened()
    copy = original.with_allowlist([("some", "Type")])
    assert copy is not original
    original.raise_fence("t", claim("t"))
    copy.put(at("t"), empty_checkpoint(), {}, {})
    successor.raise_fence("t", claim("t"))
    with pytest.raises(FenceLostError):
        copy.put(at("t"), empty_checkpoint(), {}, {})


def test_an_older_claim_raises_nothing_and_cannot_write(opened: Opener, claim: Callable[[str], int]) -> None:
    late, successor = opened(), opened()
    old, new = claim("t"), claim("t")
    successor.raise_fence("t", new)
    with pytest.raises(FenceLostError):
        late.raise_fence("t", old)
    with pytest.raises(FenceLostError):
        Agent(late).send("t", "r1")
    Agent(successor).turn("t", "r1")


def test_a_saver_whose_own_newer_claim_was_forgotten_cannot_write(
    saver: FencedSaver, claim: Callable[[str], int]
) -> None:
    old, new = claim("t"), claim("t")
    saver.raise_fence("t", new)
    with pytest.raises(FenceLostError):
        saver.raise_fence("t", old)
    with pytest.raises(FenceLostError):
        Agent(saver).send("t", "r1")


def test_without_a_claim_a_saver_is_an_ordinary_one(saver: FencedSaver) -> None:
    agent = Agent(saver)
    agent.turn("by hand", "r1")
    saver.delete_superseded("by hand")
    assert len(agent.messages("by hand")) == 4
    saver.delete_thread("by hand")
    assert agent.graph.get_state(at("by hand")).values == {}


def test_a_takeover_of_one_thread_does_not_stop_another(opened: Opener, claim: Callable[[str], int]) -> None:
    mine, other = opened(), opened()
    mine.raise_fence("a", claim("a"))
    mine.raise_fence("b", claim("b"))
    other.raise_fence("a", claim("a"))
    agent = Agent(mine)
    agent.turn("b", "r1")
    with pytest.raises(FenceLostError):
        agent.send("a", "r1")


def test_no_claim_comes_between_the_check_and_the_write(
    opened: Opener, claim: Callable[[str], int], migrated_database_url: str
) -> None:
    mine, successor = opened(), opened()
    mine.raise_fence("t", claim("t"))
    with of_thread("t"), mine._tables():
        if isinstance(successor, SqliteSaver):
            successor.conn.execute("PRAGMA busy_timeout = 1")
            with pytest.raises(StoreError, match="locked"):
                successor.raise_fence("t", 2)
        else:
            with psycopg.connect(_plain(migrated_database_url)) as other:
                other.execute("SET lock_timeout = 1")
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    other.execute("UPDATE threads SET fence = fence + 1 WHERE id = 't'")


def test_an_error_in_the_middle_leaves_everything_as_it_was(
    saver: FencedSaver, rows: Callable[[], Any]
) -> None:
    Agent(saver).turn("t", "r1")
    before = rows()

    def fail() -> None:
        with saver._tables() as tables:
            tables.execute("DELETE FROM checkpoints WHERE thread_id = ?", ("t",))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows() == before
    saver.delete_superseded("t")


# --- the databases ---


def _open_together(url: str, together: Any) -> None:
    together.wait()
    saver = open_checkpointer(url)
    assert list(saver.list(None)) == []
    saver.close()


def test_processes_that_start_at_once_all_get_a_saver(database_url: str) -> None:
    # The children are forked from a process that has imported all this and opened nothing.
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload([__name__])
    together = forking.Barrier(4)
    children = [forking.Process(target=_open_together, args=(database_url, together)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0, 0]


class Unknown:
    """A type that a checkpoint may name, and that reading it must not make."""

    made = 0

    def __init__(self, text: str) -> None:
        type(self).made += 1
        self.text = text

    def model_dump(self) -> dict[str, str]:
        return {"text": self.text}


def test_reading_a_checkpoint_makes_only_messages_and_plain_values(saver: FencedSaver) -> None:
    checkpoint = empty_checkpoint()
    message = HumanMessage("kept", id="m")
    checkpoint["channel_values"] = {"a": [Unknown("x")], "b": [message]}
    checkpoint["channel_versions"] = {"a": "1", "b": "1"}
    saver.put(at("t"), checkpoint, {}, checkpoint["channel_versions"])
    before = Unknown.made
    read = saver.get_tuple(at("t"))
    assert read is not None
    assert read.checkpoint["channel_values"]["b"] == [message]
    assert read.checkpoint["channel_values"]["a"] == [{"text": "x"}]
    assert Unknown.made == before


def test_a_lost_connection_is_an_error_of_the_store_and_the_next_call_connects_again(
    new_postgres_database: Callable[[], str],
) -> None:
    url = new_postgres_database()
    saver = open_checkpointer(url)
    with psycopg.connect(_plain(url), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    agent = Agent(saver)
    with pytest.raises(StoreError):
        agent.send("t", "r1")
    agent.send("t", "r1")
    saver.close()


def test_a_locked_file_is_an_error_of_the_store(tmp_path: Path) -> None:
    saver = open_checkpointer(f"sqlite:///{tmp_path / 'clearance.db'}")
    with sqlite3.connect(tmp_path / "checkpoints.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        saver.conn.execute("PRAGMA busy_timeout = 1")  # type: ignore[attr-defined]  # of SQLite's
        with pytest.raises(StoreError):
            saver.delete_thread("t")
        other.execute("ROLLBACK")
    other.close()
    saver.delete_thread("t")
    saver.close()
