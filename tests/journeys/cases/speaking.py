"""The model of the cases: it says what a step wrote down for it, in whatever process it is asked.

What it says depends on the history alone and on files: the message of a person names its script, and the
AI messages since then say how far the script has come. A history that a provider would refuse is refused.
"""

import copy
import hashlib
import json
import pickle
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from tests.journeys.cases.loading import CaseError
from tests.scripted import refuse_broken

SCRIPTS = "scripts"
BROKEN = "broken-histories"
_NAMED = re.compile(r"^\[(\w+)\]")


@dataclass(frozen=True)
class Said:
    """One AI message: a text, and calls as the steps write them (`id`, `tool`, `args` or `raw`)."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""


@dataclass(frozen=True)
class Script:
    """What the model says in one turn; then, where a call is rejected, `again` up to `times` times."""

    messages: list[Said]
    again: Mapping[str, int] | None = None
    times: int = 0


def read_habit(said: str) -> tuple[Mapping[str, int], int]:
    """Return what a model changes in a call that it repeats after a rejection, and how often it does."""
    if found := re.fullmatch(r"after each rejection sends the same call under a new id, (\d+) times", said):
        return {}, int(found[1])
    if found := re.fullmatch(r"after each rejection sends the call with (\w+) ([-+]) (\d+)", said):
        return {found[1]: int(found[2] + found[3])}, 1000
    raise CaseError(f"The interpreter knows no model that {said!r}.")


def keep_script(folder: Path, script: Script) -> str:
    """Keep a script, and return the message of a person that calls for it: the same for the same script."""
    place, text = folder / SCRIPTS, pickle.dumps(script)
    place.mkdir(exist_ok=True)
    name = hashlib.sha256(text).hexdigest()[:16]
    if not (place / name).exists():
        new = place / f"{name}.{threading.get_ident()}"
        new.write_bytes(text)
        new.replace(place / name)
    return f"[{name}] Please do it."


class Speaker(BaseChatModel):
    """The model. `handed` holds the argument objects that it gave away, by the id of their call."""

    _folder: Path = PrivateAttr()
    _handed: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    @property
    def handed(self) -> dict[str, Any]:
        """The argument objects that the model gave away in this process, by the id of their call."""
        return self._handed

    @property
    def _llm_type(self) -> str:
        return "cases"

    def bind_tools(self, tools: Any, **_: Any) -> "Speaker":
        """The script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        try:
            refuse_broken(messages)
        except AssertionError as error:
            with (self._folder / BROKEN).open("a") as file:
                file.write(f"{error}\n")
            raise
        return ChatResult(generations=[ChatGeneration(message=self._said(messages))])

    def _said(self, messages: Sequence[BaseMessage]) -> AIMessage:
        last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and m.name is None)
        turn = messages[last + 1 :]
        named = _NAMED.match(str(messages[last].content))
        if named is None:
            return AIMessage("Understood.")
        script: Script = pickle.loads((self._folder / SCRIPTS / named[1]).read_bytes())
        number = sum(isinstance(message, AIMessage) for message in turn)
        if number < len(script.messages):
            return self._message(script.messages[number])
        rejected = number - len(script.messages)
        if script.again is not None and rejected < script.times and _was_rejected(turn):
            return self._message(_repeated(script, rejected + 1))
        heard = [str(message.content)[:200] for message in turn if isinstance(message, ToolMessage)]
        return AIMessage("What came of it: " + " / ".join(heard))

    def _message(self, said: Said) -> AIMessage:
        if any("raw" in call for call in said.calls):
            return _as_read_from_the_wire(said)
        calls = []
        for call in said.calls:
            given = copy.deepcopy(call.get("args", {}))
            self._handed[str(call.get("id"))] = given
            calls.append({"name": call["tool"], "args": given, "id": call.get("id"), "type": "tool_call"})
        # Past the checks of LangChain's own class, which would copy the arguments.
        message = AIMessage(said.text)
        return message.model_copy(update={"tool_calls": calls})


def _repeated(script: Script, times: int) -> Said:
    """Return the last call of the script, under a new id and with what the model changes each time."""
    call = script.messages[-1].calls[-1]
    args = dict(call["args"])
    for name, step in (script.again or {}).items():
        args[name] += step * times
    return Said([{**call, "id": f"{call['id']}-again-{times}", "args": args}])


def _was_rejected(turn: Sequence[BaseMessage]) -> bool:
    last = turn[-1] if turn else None
    return isinstance(last, ToolMessage) and last.status == "error"


def _as_read_from_the_wire(said: Said) -> AIMessage:
    """Return the message that LangChain's reading makes of raw arguments, the raw text beside it."""
    raw, valid, invalid = [], [], []
    for call in said.calls:
        text = call["raw"] if "raw" in call else json.dumps(call["args"])
        wire = {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["tool"], "arguments": text},
        }
        raw.append(wire)
        try:
            read = parse_tool_call(wire, return_id=True)
        except OutputParserException as error:
            invalid.append(make_invalid_tool_call(wire, str(error)))
            continue
        if read is not None and isinstance(read["args"], dict):
            valid.append(read)
        else:
            invalid.append(make_invalid_tool_call(wire, "not an object"))
    return AIMessage(
        said.text, tool_calls=valid, invalid_tool_calls=invalid, additional_kwargs={"tool_calls": raw}
    )
