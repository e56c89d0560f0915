"""The program that the journeys run in processes of their own: a scripted agent whose effects can be counted.

What the model says depends on the history alone, so a process that takes a thread over goes on as the one
before would have. A message is a script: `send a, send b | look c` are two rounds of tool calls.
"""

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import clearance
from clearance import killpoints, turns
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.apps.chat.agent import Agent
from clearance.assembly import Clearance

PERSON = "ann"
SHORT = 0.4
"""Seconds that `hang` and `peek` may take."""
LARGE = 5_000_000

# The tools: what each says about itself, and whether people are asked.
_SAYS: dict[str, dict[str, object]] = {
    "send": {},
    "step": {"parallel": False},
    "hold": {},
    "hang": {"timeout": SHORT},
    "post": {"idempotent": True},
    "quit": {},
    "pour": {},
    "look": {"read_only": True},
    "peek": {"read_only": True, "timeout": SHORT},
}
_FREE = ("look", "peek")


@dataclass(frozen=True)
class Stage:
    """Where a journey takes place: a database, and a folder for everything else."""

    url: str
    home: Path

    def open(self, *, worker: bool = False) -> Clearance:
        """Open the workspace in this process."""
        return clearance.open(self.url, home=self.home, person=PERSON, worker=worker)

    def effects(self) -> list[str]:
        """Return what the tools really did, as `tool what key`, in its order."""
        file = self.home / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def release(self, what: str) -> None:
        """Let the tools that wait for `what` go on."""
        (self.home / f"go-{what}").touch()


def agent_of(opened: Clearance, stage: Stage) -> Agent:
    """Build the agent on an open workspace."""
    held = [name for name in _SAYS if name not in _FREE]
    return create_reviewed_agent(Script(), tools_of(stage), tools_requiring_approval=held, using=opened)


@contextmanager
def saver_by_hand(stage: Stage) -> Iterator[SqliteSaver]:
    """Open a saver of LangGraph's own, as an application without workers has it."""
    connection = sqlite3.connect(stage.home / "by-hand.db", check_same_thread=False, timeout=60)
    try:
        yield SqliteSaver(connection)
    finally:
        connection.close()


def agent_by_hand(opened: Clearance, stage: Stage, saver: SqliteSaver) -> Agent:
    """Build the agent as an application that advances its graph itself."""
    return create_reviewed_agent(
        Script(),
        tools_of(stage),
        tools_requiring_approval=[name for name in _SAYS if name not in _FREE],
        checkpointer=saver,
        using=opened,
        name="by-hand",
    )


class Script(BaseChatModel):
    """Calls the tools that the message names, round by round; then says what came of it.

    The answer holds what a real model would know by then: the notes that the product has put before the
    message, and every result of the turn.
    """

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> "Script":
        """The script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_said(messages))])


def tools_of(stage: Stage) -> list[BaseTool]:
    """Return the tools; each writes one line for each time that it really ran."""
    return [tool.model_copy(update={"func": _work_of(tool.name, stage)}) for tool in _TOOLS]


def _nothing(what: str, config: RunnableConfig) -> str:
    """Has the parameters of every tool."""
    raise NotImplementedError(what, config)


# Their schemas take a while to make, and are the same on every stage.
_TOOLS = [
    StructuredTool.from_function(_nothing, name=name, description=f"Do {name}.", metadata={"clearance": says})
    for name, says in _SAYS.items()
]


# --- what the processes run ---


def work(stage: Stage, watcher: str | None = None) -> None:
    """Be a worker until somebody ends this process."""
    _watch(stage, watcher)
    opened = stage.open(worker=True)
    ReviewedChat(agent_of(opened, stage))
    threading.Event().wait()


def send(stage: Stage, thread_id: str, text: str, watcher: str | None = None) -> None:
    """Send a message, as a web process does."""
    with stage.open() as opened:
        chat = ReviewedChat(agent_of(opened, stage))
        _watch(stage, watcher)
        chat.send_message(thread_id, text, by=PERSON)


def decide(stage: Stage, thread_id: str, decisions: object, watcher: str | None = None) -> None:
    """Decide what a thread waits for, as a web process does."""
    with stage.open() as opened:
        chat = ReviewedChat(agent_of(opened, stage))
        _watch(stage, watcher)
        chat.submit_review(thread_id, decisions, by=PERSON)


def resume_by_hand(stage: Stage, thread_id: str, watcher: str | None = None) -> None:
    """Approve what a thread waits for, as an application does that advances its graph itself."""
    with stage.open() as opened, saver_by_hand(stage) as saver:
        graph = agent_by_hand(opened, stage, saver)
        _watch(stage, watcher)
        config: Any = {"configurable": {"thread_id": thread_id}}
        graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)


def withdraw(stage: Stage, review_id: str, watcher: str | None = None) -> None:
    """Take a question back."""
    with stage.open() as opened:
        _watch(stage, watcher)
        opened.gate.withdraw(review_id, by=PERSON, reason="not needed any more")


def cancel(stage: Stage, run_id: str, watcher: str | None = None) -> None:
    """End a run early."""
    with stage.open() as opened:
        _watch(stage, watcher)
        turns.cancel(opened.ledger, run_id, by=PERSON, reason="not needed any more")


def _watch(stage: Stage, watcher: str | None) -> None:
    """Watch the places of this process: `kill NAME:N`, `stop NAME:N`, `wait NAME:N` or `record FILE`.

    `wait` holds the thread that comes by for the n-th time, and nothing else of the process.
    """
    if watcher is None:
        return
    how, _, target = watcher.partition(" ")
    match how:
        case "kill":
            killpoints.watch(killpoints.signalling(target))
        case "stop":
            killpoints.watch(killpoints.signalling(target, number=signal.SIGSTOP))
        case "wait":
            killpoints.watch(_waiting(stage, target))
        case "record":
            killpoints.watch(lambda place: _append(stage.home / target, place))
        case _:
            raise ValueError(watcher)


def _waiting(stage: Stage, target: str) -> Callable[[str], None]:
    name, _, count = target.partition(":")
    left, lock = [int(count or "1")], threading.Lock()

    def watcher(place: str) -> None:
        if place != name:
            return
        with lock:
            left[0] -= 1
            mine = left[0] == 0
        if mine:
            _append(stage.home / "waits", place)
            _until(stage.home / "go-watcher")

    return watcher


# --- the model's words and the tools' work ---


def _said(messages: Sequence[BaseMessage]) -> AIMessage:
    last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and m.name is None)
    turn, rounds = messages[last + 1 :], str(messages[last].content).split("|")
    number = sum(isinstance(message, AIMessage) for message in turn)
    if number < len(rounds):
        if rounds[number].strip() == "boom":
            raise RuntimeError("the model is broken")
        wanted = [part.split() for part in rounds[number].split(",")]
        calls = [
            {"name": name, "args": {"what": what}, "id": f"call_{place}"}
            for place, (name, what) in enumerate(wanted)
        ]
        return AIMessage("", tool_calls=calls)
    heard = [str(message.content) for message in turn if isinstance(message, ToolMessage)]
    notes = [str(message.content) for message in turn if isinstance(message, HumanMessage)]
    return AIMessage(" / ".join([*notes, *heard]))


def _work_of(name: str, stage: Stage) -> Callable[[str, RunnableConfig], str]:
    def run(what: str, config: RunnableConfig) -> str:
        key = config["configurable"]["idempotency_key"]
        _append(stage.home / "effects", f"{name} {what} {key}")
        match name:
            case "hold" | "hang" | "peek":
                _until(stage.home / f"go-{what}")
            case "quit":
                os._exit(3)
            case "pour":
                return "x" * LARGE
        return f"{name} did {what}"

    return run


def _append(file: Path, line: str) -> None:
    """Write one line to the disk; lines of several processes never mix."""
    number = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(number, f"{line}\n".encode())
        os.fsync(number)
    finally:
        os.close(number)


def _until(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


def speak_to(log: Path) -> None:
    """Let what this process says go to a file."""
    number = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    sys.stdout.flush()
    for each in (1, 2):
        os.dup2(number, each)
    os.close(number)
