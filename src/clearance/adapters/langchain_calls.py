"""A tool call of a LangChain agent, run by `execution` through LangChain's own handler of the call.

The handler knows what a tool is given besides its arguments (state, store, runtime), and its result may be
more than text: content in blocks, an artifact, a `Command` that changes the state. The ledger keeps text; the
rest is kept beside it, so that a call that ended gives the same result when its turn is resumed elsewhere.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall as MessageCall
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from clearance.adapters import caller
from clearance.execution import PausedError
from clearance.ledger import Ledger
from clearance.results import Result
from clearance.store import calls as ledger_rows
from clearance.store.runs import BELOW
from clearance.toolcall import Tool

log = logging.getLogger(__name__)

Given = ToolMessage | Command[Any] | list[Any]
Handler = Callable[[ToolCallRequest], Given]


@dataclass
class Call:
    """One call on its way: what LangChain asks to run, and how. `given` is what its tool gave here."""

    request: ToolCallRequest
    handler: Handler
    context: Context
    ledger: Ledger
    thread_id: str
    given: Given | None = None

    def tools(
        self, known: Mapping[str, Tool], real: Mapping[str, BaseTool], *, entered: bool
    ) -> dict[str, Tool]:
        """Return the agent's tools, each run through the handler of this call: a person may choose another.

        `entered` says that the tool runs an agent that waits for people: it is entered again where it stands.
        """
        return {
            name: replace(
                tool, run=partial(self._run, real.get(name), name), idempotent=tool.idempotent or entered
            )
            for name, tool in known.items()
        }

    def kept(self, key: str) -> Given | None:
        """Return what the tool gave, in this process or another; None where its text is all of it."""
        if self.given is not None:
            return self.given
        with self.ledger.database.read() as tx:
            found = ledger_rows.artifact(tx, _artifact(key))
        return None if found is None else _read(found)

    def _run(self, tool: BaseTool | None, name: str, arguments: dict[str, Any], key: str) -> Result:
        call: MessageCall = {**self.request.tool_call, "name": name, "args": arguments}
        # Without a tool LangChain's handler says what is wrong.
        request = self.request.override(tool_call=call, tool=tool)  # type: ignore[arg-type]
        config = request.runtime.config
        config["configurable"] = {**config.get("configurable", {}), "idempotency_key": key}
        try:
            given = self.context.copy().run(self._handled, request, key)
        except GraphInterrupt as interrupt:
            raise PausedError from interrupt
        self.given = given
        if not _is_text(given):
            # The tool has run: what cannot be kept of its result leaves the text, and no other outcome.
            try:
                with self.ledger.database.write() as tx:
                    ledger_rows.keep_artifact(tx, _artifact(key), key=key, content=_write(given))
            except Exception as error:  # noqa: BLE001 - what the tool has done stays done
                why = type(error).__name__
                log.warning("what %s gave beside its text is not kept: %s", call["name"], why)
        return _result(given, call_id=call["id"])

    def _handled(self, request: ToolCallRequest, key: str) -> Given:
        caller.inside.set(f"{self.thread_id}{BELOW}{key}")
        return self.handler(request)


def answers(given: Given, *, to: ToolMessage, notice: str) -> Given:
    """Return what a tool gave, with the message `to` in the place of its own answer where that is text.

    Content in blocks stays as it is, behind the notice.
    """
    match given:
        case ToolMessage():
            content: Any = to.content
            if not isinstance(given.content, str):
                content = [*([{"type": "text", "text": notice}] if notice else []), *given.content]
            kwargs = {**given.additional_kwargs, **to.additional_kwargs}
            return given.model_copy(update={"content": content, "id": to.id, "additional_kwargs": kwargs})
        case Command(update=dict() as update) if isinstance(update.get("messages"), list):
            messages = [
                answers(each, to=to, notice=notice) if _is_answer(each, to.tool_call_id) else each
                for each in update["messages"]
            ]
            return replace(given, update={**update, "messages": messages})
        case list():
            return [answers(each, to=to, notice=notice) for each in given]
        case _:
            return given


def _is_text(given: Given) -> bool:
    return isinstance(given, ToolMessage) and isinstance(given.content, str) and given.artifact is None


def _is_answer(message: object, call_id: str) -> bool:
    return isinstance(message, ToolMessage) and message.tool_call_id == call_id


def _result(given: Given, *, call_id: str | None) -> Result:
    found = next(iter(_messages(given, call_id or "")), None)
    if found is None:
        return Result(ok=True, text="done")
    return Result(ok=found.status != "error", text=found.text or "(empty)")


def _messages(given: object, call_id: str) -> Sequence[ToolMessage]:
    match given:
        case ToolMessage():
            return [given] if given.tool_call_id == call_id else []
        case Command(update=dict() as update):
            return _messages(update.get("messages", []), call_id)
        case list():
            return [found for each in given for found in _messages(each, call_id)]
        case _:
            return []


def _artifact(key: str) -> str:
    return f"{key}/given"


_FIELDS = ("graph", "update", "goto")


def _write(given: Given) -> bytes:
    """Write a result as LangGraph writes a state, a `Command` by its parts."""
    plain = [
        {name: getattr(each, name) for name in _FIELDS} if isinstance(each, Command) else each
        for each in (given if isinstance(given, list) else [given])
    ]
    kind, content = JsonPlusSerializer().dumps_typed({"many": isinstance(given, list), "given": plain})
    return kind.encode() + b"\0" + content


def _read(content: bytes) -> Given:
    kind, _, data = content.partition(b"\0")
    found = JsonPlusSerializer().loads_typed((kind.decode(), data))
    read = [Command(**each) if isinstance(each, dict) else each for each in found["given"]]
    return read if found["many"] else read[0]
