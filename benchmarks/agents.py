"""The same agent twice: reviewed by this product, and by LangChain's own middleware with its SQLite saver.

Both have the same fake model, which calls one tool and then says that it is done, and the same tool, which
does nothing.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import clearance
from clearance.apps.chat import ReviewedChat, create_reviewed_agent

PERSON = "ann"
QUESTION = "Please note that the meeting is on Friday."
started: list[float] = []
"""When the tool was started, each time, by `time.perf_counter`."""


@tool
def note(text: str) -> str:
    """Note something."""
    started.append(time.perf_counter())
    return f"noted {len(text)} characters"


class Fake(BaseChatModel):
    """Notes what a person says, and is done."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **_: Any) -> "Fake":
        """It knows its one tool."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if isinstance(messages[-1], HumanMessage):
            args = {"text": str(messages[-1].content)}
            call = {"name": "note", "args": args, "id": f"call_{len(messages)}"}
            said = AIMessage("I note that.", tool_calls=[call])
        else:
            said = AIMessage("It is noted.")
        return ChatResult(generations=[ChatGeneration(message=said)])


def history(messages: int) -> list[BaseMessage]:
    """Return a talk of so many short messages."""
    said: list[BaseMessage] = []
    for number in range(messages // 2):
        said += [
            HumanMessage(f"Question {number}: how many are there?", id=f"q{number}"),
            AIMessage(f"There are {number} of them, as far as I know.", id=f"a{number}"),
        ]
    return said


class Reviewed:
    """This product's agent, with a worker in the process. A person decides, or it is `free`."""

    def __init__(self, workspace: clearance.Clearance, *, free: bool = False) -> None:
        self.workspace = workspace
        self._agent = create_reviewed_agent(
            Fake(),
            [note],
            tools_requiring_approval=[] if free else ["note"],
            using=workspace,
            name="free" if free else "reviewed",
        )
        self.chat = ReviewedChat(self._agent)

    def begin(self, thread: str, messages: int) -> None:
        """Give a thread a history."""
        config: Any = {"configurable": {"thread_id": thread}}
        self._agent.update_state(config, {"messages": history(messages)}, as_node="llm_call")

    def ask(self, thread: str) -> Any:
        """Send the message, and return the review that it waits for, if it does."""
        return self.chat.send_message(thread, QUESTION, by=PERSON)["pending_review"]

    def turn(self, thread: str) -> None:
        """Take one turn, from the message to the answer, deciding at once what it waits for."""
        asked = self.ask(thread)
        if asked is not None:
            approve = [{"type": "approve"}]
            gate = self.workspace.gate
            gate.decide(asked["review_id"], approve, by=PERSON, version=asked["version"])
            self.chat.wait_for(asked["run_id"])


class LangChains:
    """LangChain's agent; `free` is the one without its middleware."""

    def __init__(self, saver: SqliteSaver, *, free: bool = False) -> None:
        middleware = [] if free else [HumanInTheLoopMiddleware(interrupt_on={"note": True})]
        self._agent = create_agent(
            Fake(), [note], middleware=middleware, checkpointer=saver, system_prompt="You note things."
        )
        self._free = free

    def begin(self, thread: str, messages: int) -> None:
        """Give a thread a history."""
        self._agent.update_state(_config(thread), {"messages": history(messages)}, as_node="model")

    def turn(self, thread: str) -> None:
        """Take one turn, from the message to the answer, deciding at once what it waits for."""
        self._agent.invoke({"messages": [HumanMessage(QUESTION)]}, _config(thread))
        if not self._free:
            self._agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), _config(thread))


@contextmanager
def saver_in(folder: Path) -> Iterator[SqliteSaver]:
    """Open LangGraph's SQLite saver on a file of its own."""
    connection = sqlite3.connect(folder / "langchain.db", check_same_thread=False)
    try:
        yield SqliteSaver(connection)
    finally:
        connection.close()


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}
