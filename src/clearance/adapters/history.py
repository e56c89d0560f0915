"""Histories: what a model is shown of a thread, and how calls are answered in it.

Every call is answered once, next to its message; what the history shows is what really ran.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from clearance.adapters.intake import Faulty, storable
from clearance.outcome import Outcome
from clearance.redaction import masked
from clearance.toolcall import ToolCall, canonical, parse_arguments

INPUT = "/in"
_OPAQUE = ("reasoning", "reasoning_content", "thinking", "signature", "encrypted_content")


class HistoryError(RuntimeError):
    """A history that providers refuse: a bug of this program, found before the model is called."""


def input_id(run_id: str) -> str:
    """Return the id of the message that a run begins with."""
    return run_id + INPUT


def run_of(message: BaseMessage) -> str | None:
    """Return the run that a message begins, if it begins one of ours."""
    if isinstance(message, HumanMessage) and message.id and message.id.endswith(INPUT):
        return message.id.removesuffix(INPUT)
    return None


def ai_messages(messages: Sequence[BaseMessage]) -> int:
    """Return how many AI messages the present run has: those after its message from a person."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and not is_note(message):
            break
        count += isinstance(message, AIMessage)
    return count


def unanswered_tool_calls(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of the last AI message's calls that no result answers yet, in their order."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, AIMessage):
            answered = {m.tool_call_id for m in messages[place + 1 :] if isinstance(m, ToolMessage)}
            return [call_id for call_id in _call_ids(message) if call_id not in answered]
    return []


def answer(
    call: ToolCall | Faulty, outcome: Outcome | None, *, to: AIMessage, secret: Collection[str] = ()
) -> ToolMessage:
    """Return the message that answers a call of the message `to`: its result, or why there is none.

    `secret` are the JSON pointers of what is masked where the message says what ran.
    """
    if isinstance(call, Faulty):
        return _tool_message(call.tool_call_id, call.tool, call.text, to=to, error=True)
    if outcome is None:
        raise HistoryError(f"call {call.key} has no outcome to answer with")
    text = edit_notice(call, outcome, secret=secret) + outcome.text
    message = _tool_message(call.tool_call_id, outcome.tool, text, to=to, error=outcome.is_error)
    message.additional_kwargs["clearance"] = outcome.state.value
    return message


def in_call_order(results: Iterable[ToolMessage], *, of: AIMessage) -> list[ToolMessage]:
    """Return the results of a message's calls in the order of the calls in its content.

    Where the content is in blocks the calls stand in it as the model made them, readable or not; a plain
    text holds none, and the calls that can be read come first, as they are sent.
    """
    blocks = [block for block in of.content if isinstance(block, dict)]
    places = {block.get("call_id") or block.get("id"): place for place, block in enumerate(blocks)}
    return sorted(results, key=lambda result: places.get(result.tool_call_id, len(places)))


def edit_notice(
    call: ToolCall,
    outcome: Outcome,
    *,
    secret: Collection[str],
    words: str = "A reviewer changed this call.",
) -> str:
    """Say that a person changed the call, and what ran; empty where nothing was changed."""
    if not was_changed(call, outcome):
        return ""
    return f"[{words} What ran: {outcome.tool} {masked(outcome.arguments, secret)}]\n"


def rewritten(
    message: AIMessage, calls: Sequence[ToolCall], outcomes: Mapping[str, Outcome]
) -> AIMessage | None:
    """Return the message with the calls as they ran, under the same id; None where it must stay as it is.

    A message with reasoning, signatures or content in blocks is never touched: providers compare it.
    """
    changed = {
        call.tool_call_id: outcomes[call.key]
        for call in calls
        if call.key in outcomes and was_changed(call, outcomes[call.key])
    }
    opaque = not isinstance(message.content, str) or any(
        name in message.additional_kwargs for name in _OPAQUE
    )
    if not changed or opaque:
        return None
    tool_calls = []
    for call in message.tool_calls:
        outcome = changed.get(call["id"] or "")
        args = parse_arguments(outcome.arguments) if outcome else None
        if outcome is not None and args is not None and storable(args):
            call = {**call, "name": outcome.tool, "args": args}
        tool_calls.append(call)
    kept = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    return message.model_copy(update={"tool_calls": tool_calls, "additional_kwargs": kept})


def mended(
    messages: Sequence[BaseMessage],
    *,
    outcome_of: Callable[[str, int, int], Outcome | None],
    begun: Callable[[BaseMessage], str | None] = run_of,
) -> list[BaseMessage]:
    """Return the messages with an answer for every call that a turn left without one.

    A turn that failed or was cancelled leaves its last calls open; the next one must not send them so.
    `outcome_of(run, number, place)` gives the kept outcome of a call where there is one; `begun` the run that
    a message begins.
    """
    shown: list[BaseMessage] = []
    run, number = "", 0
    for place, message in enumerate(messages):
        if isinstance(message, HumanMessage) and not is_note(message):
            run, number = begun(message) or "", 0
        shown.append(message)
        if not isinstance(message, AIMessage):
            continue
        number += 1
        answered = _answered_after(messages, place)
        following = messages[place + 1 : place + 1 + len(answered)]
        if len(answered) == len(_call_ids(message)) or place + 1 + len(following) == len(messages):
            continue
        made = []
        for index, call_id in enumerate(_call_ids(message)):
            if call_id not in answered:
                known = outcome_of(run, number, index) if run else None
                text = known.text if known is not None else "This call did not run: its turn ended before."
                error = known is None or known.is_error
                made.append(_tool_message(call_id, "", text, to=message, error=error))
        shown += in_call_order(made, of=message)
    return shown


def check_history(messages: Sequence[BaseMessage]) -> None:
    """Raise `HistoryError` unless every call is answered exactly once, next to its message."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                raise HistoryError("a result answers no call of the message before it")
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            raise HistoryError("a call is not answered next to its message")
        if isinstance(message, AIMessage):
            open_calls = _call_ids(message)
            if len(set(open_calls)) != len(open_calls) or not all(open_calls):
                raise HistoryError("two calls of a message share an id, or one has none")
    if open_calls:
        raise HistoryError("the last calls are not answered")


def note(text: str, *, note_id: str) -> HumanMessage:
    """Return a message by which the product tells the model something between two turns."""
    return HumanMessage(text, id=note_id, name="clearance")


def is_note(message: BaseMessage) -> bool:
    """Whether the product said this to the model, and no person did."""
    return message.name == "clearance"


def was_changed(call: ToolCall, outcome: Outcome) -> bool:
    """Whether another tool or other arguments ran, or would have run, than the call proposed."""
    if call.tool != outcome.tool:
        return True
    return canonical(parse_arguments(call.arguments)) != canonical(parse_arguments(outcome.arguments))


def _call_ids(message: AIMessage) -> list[str]:
    return [call["id"] or "" for call in (*message.tool_calls, *message.invalid_tool_calls)]


def _answered_after(messages: Sequence[BaseMessage], place: int) -> list[str]:
    found = []
    for message in messages[place + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        found.append(message.tool_call_id)
    return found


def _tool_message(call_id: str, name: str, text: str, *, to: AIMessage, error: bool) -> ToolMessage:
    return ToolMessage(
        text or "(empty)",
        tool_call_id=call_id,
        name=name or None,
        status="error" if error else "success",
        # Models repeat the ids of calls; those of messages are the product's own.
        id=f"{to.id}/{call_id}",
    )
