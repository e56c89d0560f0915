"""What a reviewed turn stores: the bytes of all new rows, in short threads and in long ones."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import clearance
from benchmarks.agents import PERSON, LangChains, Reviewed, saver_in
from benchmarks.figures import Figure, Surroundings

TURNS = 5


def measure(here: Surroundings) -> list[Figure]:
    """Take some turns at the end of each history, and count what became more."""
    folder, other = here.folder(), here.folder()
    figures = []
    with (
        clearance.open(here.database("sqlite", folder), home=folder, person=PERSON) as workspace,
        saver_in(other) as saver,
    ):
        ours, theirs = Reviewed(workspace), LangChains(saver)
        for messages in here.sizes.histories:
            here.tell(f"bytes at {messages} messages")
            files = [folder / "clearance.db", folder / "checkpoints.db"]
            a_turn = _of_a_turn(ours, messages, files=files)
            beside = _of_a_turn(theirs, messages, files=[other / "langchain.db"])
            what = f"a reviewed turn stores, at {messages:,} messages"
            figures.append(Figure(what, a_turn / 1000, "kB", langchain=beside / 1000))
    return figures


def _of_a_turn(agent: Reviewed | LangChains, messages: int, *, files: Iterable[Path]) -> float:
    thread = f"of {messages}"
    agent.begin(thread, messages)
    agent.turn(thread)
    before = sum(map(_stored, files))
    for _ in range(TURNS):
        agent.turn(thread)
    return (sum(map(_stored, files)) - before) / TURNS


def _stored(file: Path) -> int:
    """Return the length of all that a database holds, over every column of every row."""
    total = 0
    with closing(sqlite3.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            length = " + ".join(f'coalesce(length(CAST("{name}" AS BLOB)), 0)' for name in columns)
            total += connection.execute(f'SELECT coalesce(sum({length}), 0) FROM "{table}"').fetchone()[0]
    return total
