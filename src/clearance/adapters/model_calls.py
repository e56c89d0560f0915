"""One answer of a model: asked for again where that can help, and taken only when it came to its end.

This is the one place that tries again: models opened by name have clients that do not, and where a client
retries by itself (`max_retries`), only an answer that broke off is asked for again here.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages import InvalidToolCall as Invalid
from langchain_core.messages import ToolCall as Call
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.runnables import Runnable, RunnableConfig
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, stop_before_delay
from tenacity.wait import wait_exponential, wait_random

from clearance.adapters.intake import end_reasons
from clearance.adapters.model_errors import BrokenOffError, Failure, read_failure
from clearance.adapters.speaking import Speaker
from clearance.errors import InvalidArgumentsError, ModelFailedError
from clearance.toolcall import parse_arguments

log = logging.getLogger(__name__)

# What LangChain says of a stream that ended before its first piece, in an error of no class of its own.
_NOTHING_CAME = "No generation chunks were returned"


@dataclass(frozen=True)
class Retries:
    """How often a model is asked, and how long: `first`, `most` and `longest` are in seconds.

    The pause doubles from `first` to `most`, unless the provider says how long to wait. No try begins more
    than `longest` after the first did.
    """

    tries: int = 5
    first: float = 0.5
    most: float = 8.0
    longest: float = 60.0


RETRIES = Retries()


def ask_model(
    model: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    *,
    still_wanted: Callable[[], None],
    speaker: Speaker | None = None,
    retries: Retries | None = None,
) -> AIMessage:
    """Return the model's whole answer to the messages.

    `still_wanted` is called before every further try and raises where nobody wants the answer any more.
    `retries` is `RETRIES` where it is not given.
    `speaker` is told the text of an answer in pieces while it comes, and when a try begins anew.
    Raises `ModelFailedError` when the provider refuses, or when no try brought an answer.
    """
    retries = retries or RETRIES
    own = _retries_itself(model)
    backoff = wait_exponential(multiplier=retries.first, max=retries.most) + wait_random(0, retries.first / 2)
    tries = Retrying(
        retry=retry_if_exception(lambda error: _worth_another(error, own=own)),
        stop=stop_after_attempt(retries.tries) | stop_before_delay(retries.longest),
        wait=lambda state: _wait(state) or backoff(state),
        before=lambda state: still_wanted() if state.attempt_number > 1 else None,
        before_sleep=_tell,
        reraise=True,
    )
    try:
        return tries(_answer, model, messages, config, speaker=speaker)
    except Exception as error:
        failure = read_failure(error)
        if failure is None:
            raise
        tried = int(tries.statistics.get("attempt_number", 1))
        waited = f" It asks to wait {failure.wait:.0f} seconds." if failure.wait and failure.wait >= 1 else ""
        # Not chained: what the provider wrote may quote the key or the conversation, and would be logged.
        raise ModelFailedError(failure.text + waited, tries=tried) from None


def _answer(
    model: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    *,
    speaker: Speaker | None,
) -> AIMessage:
    """Ask once. An answer in pieces is joined; the last piece that says so says how it ended."""
    pieces: list[Any] = []
    ended: dict[str, Any] = {}
    if speaker is not None:
        speaker.begin()
    try:
        for piece in model.stream(list(messages), config):
            if speaker is not None and isinstance(piece, AIMessageChunk):
                speaker.say(piece.text)
            ended |= end_reasons(piece)
            pieces.append(piece)
    except Exception as error:
        failure = read_failure(error)
        broken_off = bool(pieces) and failure is not None and failure.may_pass
        if broken_off or str(error) == _NOTHING_CAME:
            raise BrokenOffError from error
        raise
    joined = pieces[0] + pieces[1:] if len(pieces) > 1 else pieces[0]
    if not isinstance(joined, AIMessageChunk):
        return cast(AIMessage, joined)
    if "model_provider" in joined.response_metadata and not ended:
        raise BrokenOffError
    return _from_pieces(joined, ended)


def _from_pieces(joined: AIMessageChunk, ended: dict[str, Any]) -> AIMessage:
    """Return joined pieces as a message whose calls are read strictly from their whole texts.

    The framework's own reading completes what was cut off: `{"amount": 1` becomes a call.
    """
    calls: list[Call] = []
    broken: list[Invalid] = []
    provider = joined.response_metadata.get("model_provider")
    for piece in joined.tool_call_chunks:
        try:
            # Anthropic sends no piece of text at all for a call without arguments.
            text = piece["args"] or ("{}" if provider == "anthropic" else "")
            args = parse_arguments(text)
        except InvalidArgumentsError as error:
            broken.append(_invalid(piece, str(error)))
        else:
            calls.append(Call(type="tool_call", name=piece["name"] or "", args=args, id=piece["id"]))
    message = cast(AIMessage, message_chunk_to_message(joined))
    metadata = {**joined.response_metadata, **ended}
    return message.model_copy(
        update={"tool_calls": calls, "invalid_tool_calls": broken, "response_metadata": metadata}
    )


def _invalid(piece: ToolCallChunk, error: str) -> Invalid:
    return Invalid(
        type="invalid_tool_call", name=piece["name"], args=piece["args"], id=piece["id"], error=error
    )


def _retries_itself(model: Runnable[Any, Any]) -> bool:
    """Whether the model's client tries again by itself; `None` is a client's own default, which does."""
    return getattr(getattr(model, "bound", model), "max_retries", 0) != 0


def _worth_another(error: BaseException, *, own: bool) -> bool:
    failure = read_failure(error)
    return failure is not None and failure.may_pass and (isinstance(error, BrokenOffError) or not own)


def _failure(state: RetryCallState) -> Failure | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return read_failure(error) if error is not None else None


def _wait(state: RetryCallState) -> float:
    """Return the seconds that the provider asks to wait; 0 where it asks for none."""
    failure = _failure(state)
    return failure.wait or 0.0 if failure is not None else 0.0


def _tell(state: RetryCallState) -> None:
    failure = _failure(state)
    why = failure.text.partition(".")[0] if failure is not None else ""
    number, pause = state.attempt_number + 1, state.upcoming_sleep
    log.warning("The model's provider %s; try %d comes in %.1f s", why, number, pause)
