"""A chat model that says what a test wrote down, and refuses histories that real providers refuse."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

Step = AIMessage | str | Callable[[Sequence[BaseMessage]], AIMessage | str]


class ScriptedModel(BaseChatModel):
    """Gives its steps in turn; at the end of the script, a closing text. `seen` holds every history."""

    _steps: list[Step] = PrivateAttr()
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, steps: Iterable[Step]) -> None:
        super().__init__()
        self._steps = list(steps)

    @property
    def seen(self) -> list[list[BaseMessage]]:
        """The histories that the model was given."""
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        """The script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        refuse_broken(messages)
        self._seen.append(list(messages))
        step: Step = self._steps.pop(0) if self._steps else "(end of the script)"
        said = step(messages) if callable(step) else step
        message = AIMessage(said) if isinstance(said, str) else said.model_copy()
        return ChatResult(generations=[ChatGeneration(message=message)])


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "", first: str = "call_0") -> AIMessage:
    """Return an AI message that calls tools; ids repeat from message to message, as models' do."""
    number = int(first.removeprefix("call_"))
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": f"call_{number + place}"}
            for place, (name, args) in enumerate(wanted)
        ],
    )


def refuse_broken(messages: Sequence[BaseMessage]) -> None:
    """Raise, as a provider answers 400, for calls that are not answered once, next to their message."""
    waiting: set[str] = set()
    assert isinstance(messages[0], SystemMessage), "the history begins with the system prompt"
    assert isinstance(messages[1], HumanMessage), "a person speaks first"
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, f"a result for no open call: {message.tool_call_id}"
            assert message.content, "an empty result"
            waiting.discard(message.tool_call_id)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        if isinstance(message, AIMessage):
            ids = [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
            assert all(ids), "a call without id"
            assert len(set(ids)) == len(ids), "two calls with one id"
            waiting = {str(call_id) for call_id in ids}
    assert not waiting, f"calls without a result: {waiting}"
