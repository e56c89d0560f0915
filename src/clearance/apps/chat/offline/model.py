"""The chat model of the demo: fixed rules behind LangChain's interface, and no AI.

It takes the place of a model where none is set up, so that everything round it can be seen working.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from clearance.apps.chat.offline.bound import read, specification
from clearance.apps.chat.offline.slash import Call
from clearance.apps.chat.offline.turn import ASKED, Reply, reply
from clearance.apps.chat.offline.wording import label

# Words with the white space before them; Chinese has none, so a character is a piece there.
_PIECE = re.compile(r"\s*[\u3400-\u9fff\uf900-\ufaff]|\s*[^\s\u3400-\u9fff\uf900-\ufaff]+|\s+")
_RAW_PIECE = 16


class OfflineChatModel(BaseChatModel):
    """A deterministic stand-in for a chat model, labelled as such in every message.

    It proposes what a person asks for in the slash form, which works for any bound tool, or in a
    phrase that a bound tool declares (see `clearance.apps.chat.offline.bound`); asks when something
    is missing; tells in words what became of its calls; and otherwise says what can be asked. It
    answers in English, Indonesian or Chinese. The same messages give the same reply, but for the
    ids of the message and of its calls, which are always new.

    `response_metadata` of every message holds `model_name="offline"`, `clearance_offline=True` and
    `finish_reason`, which is `stop` or `tool_calls`.
    """

    label: ClassVar[str] = label()

    @property
    def _llm_type(self) -> str:
        return "clearance-offline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "offline", "clearance_offline": True}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with these tools. No `tool_choice` makes it call what nobody asked for.

        Raises `ValueError` when a tool's phrases cannot be read or name arguments that it lacks.
        """
        return self.bind(tools=[specification(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = _reply(messages, kwargs)
        message = AIMessage(
            content=said.text,
            id=str(uuid4()),
            tool_calls=[
                {"type": "tool_call", "id": _new_call_id(), "name": call.tool, "args": _args(call)}
                for call in said.calls
            ],
            additional_kwargs=_kept(said),
            response_metadata=_metadata(said),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = _reply(messages, kwargs)
        message_id = str(uuid4())
        for piece in _PIECE.findall(said.text):
            yield _chunk(AIMessageChunk(content=piece, id=message_id))
        for index, call in enumerate(said.calls):
            for part in _raw_parts(call, index):
                yield _chunk(AIMessageChunk(content="", id=message_id, tool_call_chunks=[part]))
        yield _chunk(
            AIMessageChunk(
                content="",
                id=message_id,
                additional_kwargs=_kept(said),
                response_metadata=_metadata(said),
                chunk_position="last",
            )
        )


def _reply(messages: Sequence[BaseMessage], bound: dict[str, Any]) -> Reply:
    tools = [read(found) for found in bound.get("tools") or ()]
    return reply(messages, {tool.name: tool for tool in tools})


def _raw_parts(call: Call, index: int) -> Iterator[ToolCallChunk]:
    """Yield a call as providers stream it: name and id, then its arguments as pieces of text."""
    raw = json.dumps(_args(call), ensure_ascii=False)
    yield tool_call_chunk(name=call.tool, args="", id=_new_call_id(), index=index)
    for start in range(0, len(raw), _RAW_PIECE):
        piece = raw[start : start + _RAW_PIECE]
        yield tool_call_chunk(name=None, args=piece, id=None, index=index)


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)


def _args(call: Call) -> dict[str, Any]:
    return dict(call.arguments)


def _new_call_id() -> str:
    return f"call_{uuid4().hex}"


def _kept(said: Reply) -> dict[str, Any]:
    return {ASKED: said.asked} if said.asked else {}


def _metadata(said: Reply) -> dict[str, Any]:
    finish = "tool_calls" if said.calls else "stop"
    return {"model_name": "offline", "clearance_offline": True, "finish_reason": finish}
