"""Agents that talk: a model that answers in pieces, when the test lets it, and a server to hear it on.

Run as a program (`python -m tests.web.talking URL FOLDER`) it is a worker whose model stops in mid-speech, so
that a test can kill it there.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr
from sqlalchemy import func, select

import clearance
from clearance import turns
from clearance.apps.chat import ReviewedChat, create_reviewed_agent
from clearance.ledger import new_id
from clearance.store import tables
from clearance.workspace import Clearance
from tests.scripted import refuse_broken
from tests.web.live import serving
from tests.web.served import Served

PATIENCE = 30.0
Piece = str | AIMessageChunk | threading.Event | Exception


class TalkingModel(BaseChatModel):
    """Says its answers in turn, piece by piece; an event among the pieces is waited for, an error raised."""

    _answers: list[list[Piece]] = PrivateAttr()
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, answers: Iterable[Sequence[Piece]]) -> None:
        super().__init__()
        self._answers = [list(each) for each in answers]

    @property
    def seen(self) -> list[list[BaseMessage]]:
        """The histories that the model was given."""
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "talking"

    def bind_tools(self, tools: Any, **_: Any) -> "TalkingModel":
        """The answers know their tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError("this model only talks in pieces")

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        refuse_broken(messages)
        self._seen.append(list(messages))
        for piece in self._answers.pop(0) if self._answers else ["(end of the script)"]:
            match piece:
                case threading.Event():
                    assert piece.wait(PATIENCE), "nobody let the model go on"
                case Exception():
                    raise piece
                case AIMessageChunk():
                    yield ChatGenerationChunk(message=piece)
                case str():
                    yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


class Gates:
    """Makes events that models wait for."""

    def __init__(self) -> None:
        self.made: list[threading.Event] = []

    def __call__(self) -> threading.Event:
        """Make one more."""
        self.made.append(threading.Event())
        return self.made[-1]


def calling(name: str, arguments: str, *, id: str = "call_0", index: int = 0) -> AIMessageChunk:
    """Return a piece in which a call comes."""
    return AIMessageChunk(
        content="", tool_call_chunks=[tool_call_chunk(name=name, args=arguments, id=id, index=index)]
    )


@dataclass
class Office:
    """What the agent's tools did."""

    mails: list[str]

    def tools(self) -> list[BaseTool]:
        """send_email is for review, get_weather is not."""

        def send_email(to: str, account: int = 0) -> str:
            """Send an e-mail."""
            self.mails.append(to)
            return f"sent to {to} for {account}"

        def get_weather(city: str) -> str:
            """Tell the weather."""
            return f"sunny in {city}"

        free = StructuredTool.from_function(get_weather)
        free.metadata = {"clearance": {"read_only": True}}
        return [StructuredTool.from_function(send_email), free]


def talks(workspace: Clearance, model: BaseChatModel) -> Office:
    """Have the chat of this workspace answer with the model."""
    office = Office([])
    agent = create_reviewed_agent(
        model, office.tools(), tools_requiring_approval=["send_email"], using=workspace
    )
    ReviewedChat(agent)
    return office


class Working(Protocol):
    """Whatever has an open workspace."""

    workspace: Clearance


@dataclass(frozen=True)
class Frame:
    """One frame of a stream."""

    kind: str
    data: dict[str, Any]
    id: str


def start(served: Served, text: str = "Hello") -> str:
    """Start a run in the thread t1, and return its id."""
    ledger = served.workspace.ledger
    return turns.start(ledger, "t1", text, run_id=new_id(), program="chat", by="ann").id


def kept(served: Working) -> int:
    """Return how many pieces of what runs said are kept now."""
    with served.workspace.database.read() as tx:
        return tx.execute(select(func.count()).select_from(tables.stream)).scalar_one()


def until(condition: Callable[[], object], *, patience: float = PATIENCE) -> None:
    """Return as soon as something is so."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.01)


class Spoken(Protocol):
    """An answer over HTTP, whatever client got it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""

    def iter_lines(self) -> Iterator[str]:
        """Yield its lines as they come."""


def frames(answer: Spoken) -> Iterator[Frame]:
    """Yield the frames of a stream as they come; comments and hints about retrying are no frames."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "event" in fields:
            yield Frame(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
        fields = {}


def text_after_restart(heard: Iterable[Frame]) -> str:
    """Return the text that a client shows: what came since the last restart."""
    text = ""
    for frame in heard:
        text = "" if frame.kind == "restart" else text + frame.data.get("text", "")
    return text


@contextmanager
def live(workspace: Clearance) -> Iterator[httpx.Client]:
    """Serve the workspace on a port of this machine, and give a client that many may use at once."""
    limits = httpx.Limits(max_connections=None)
    with (
        serving(workspace) as address,
        httpx.Client(base_url=address, timeout=PATIENCE, limits=limits) as client,
    ):
        yield client


def _stop_in_mid_speech(url: str, home: Path) -> None:
    with clearance.open(url, home=home, person="ann", worker=False) as workspace:
        talks(workspace, TalkingModel([["It was ", "a dark ", threading.Event()]] * 9))
        workspace.worker.start()
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    _stop_in_mid_speech(sys.argv[1], Path(sys.argv[2]))
