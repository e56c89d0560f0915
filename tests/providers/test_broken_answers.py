"""What is cut off, unreadable or unknown never becomes a call that people are shown, or that runs."""

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall, ToolFault

from clearance.adapters.model_calls import RETRIES, Retries, ask_model
from clearance.apps.chat import ReviewedChat
from clearance.errors import ModelFailedError, RunFailedError
from tests.apps.conftest import Desk
from tests.providers.conftest import ANTHROPIC, CHAT, RESPONSES, Open, Wire, opened_model
from tests.providers.loopback import Answer, answering, plain, stream
from tests.providers.spoken import chat_pieces, claude, claude_pieces, response, response_pieces

ONE = (ToolCall("pay", {"account": "DE-1234567890", "amount_cents": 120000}),)
TWO = (*ONE, ToolCall("pay", {"account": "DE-2", "amount_cents": 7}))
ONCE = Retries(tries=1)
QUICK = Retries(first=0.01, most=0.02)


def _wanted() -> None:
    """Somebody still wants the answer."""


def _waiting(chat: ReviewedChat, text: str = "Pay.") -> list[Any]:
    pending = chat.send_message("t", text)["pending_review"]
    assert pending is not None
    return [request["args"] for request in pending["action_requests"]]


def test_a_stream_that_ends_anywhere_before_its_end_gives_no_message(
    provider: LLMock, wire: Wire, monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    model = opened_model(wire, provider.base_url(wire.provider), monkeypatch).bind_tools(desk.tools())
    cuts = 0
    while True:
        provider.reset().truncate(after_chunks=cuts).add(Reply(text="I pay.", tool_calls=ONE))
        try:
            message = ask_model(model, [HumanMessage("Pay.")], {}, still_wanted=_wanted, retries=ONCE)
        except ModelFailedError:
            cuts += 1
        else:
            break
    assert cuts > 8
    assert [call["args"] for call in message.tool_calls] == [ONE[0].arguments]


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt"])
def test_an_answer_that_breaks_off_is_asked_for_again(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk, fault: str
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    getattr(provider, fault)(after_chunks=6)
    provider.add(Reply(tool_calls=ONE, times=2))
    assert _waiting(chat) == [ONE[0].arguments]
    assert len(provider.requests) == 2
    assert desk.payments == []


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt"])
def test_answers_that_all_break_off_end_the_turn_with_no_call_and_the_thread_goes_on(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearance.adapters.model_calls.RETRIES", QUICK)
    chat = open_chat(wire, provider.base_url(wire.provider))
    getattr(provider, fault)(after_chunks=6, times=None)
    provider.add(Reply(tool_calls=ONE, times=None))
    with pytest.raises(RunFailedError, match="broke its answer off"):
        chat.send_message("t", "Pay.")
    assert len(provider.requests) == RETRIES.tries
    assert (chat.pending_review("t"), desk.payments) == (None, [])
    provider.reset().add(Reply(tool_calls=ONE))
    assert _waiting(chat, "Again.") == [ONE[0].arguments]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_calls_of_a_message_that_was_cut_off_are_answered_and_not_shown(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk, streamed: bool, reason: str
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider), streamed=streamed)
    if wire is RESPONSES and reason == "content_filter":
        reason = "length"
    provider.add(Reply(text="I pay.", tool_calls=TWO, finish_reason=reason)).reply("I could not.")
    assert chat.send_message("t", "Pay.")["answer"] == "I could not."
    results = wire.results(provider.last_request.body)
    assert len(results) == 2
    assert all("was cut off" in result for result in results)
    assert desk.payments == []


def test_a_call_that_cannot_be_read_is_answered_and_the_other_one_waits(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk, streamed: bool
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider), streamed=streamed)
    provider.add(Reply(tool_calls=TWO), ToolFault("malformed_arguments"))
    assert _waiting(chat) == [TWO[1].arguments]
    assert chat.submit_review("t", [{"type": "approve"}])["answer"]
    results = wire.results(provider.last_request.body)
    # In the order of the calls; without blocks, what cannot be read is sent after what can.
    assert results.index("paid 7") == (0 if wire is CHAT else 1)
    assert [paid["amount_cents"] for paid in desk.payments] == [7]
    assert chat.send_message("t", "Thanks.")


def test_a_tool_that_was_never_offered_is_answered_and_the_thread_goes_on(
    provider: LLMock, wire: Wire, open_chat: Open, streamed: bool
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider), streamed=streamed)
    provider.add(Reply(tool_calls=ONE), ToolFault("unknown_tool")).reply("Not that one, then.")
    assert chat.send_message("t", "Pay.")["answer"] == "Not that one, then."
    (result,) = wire.results(provider.last_request.body)
    assert result.startswith("There is no tool")


def _use(name: str, cents: int) -> dict[str, Any]:
    called = {"account": "DE-1", "amount_cents": cents}
    return {"type": "tool_use", "id": name, "name": "pay", "input": called}


def _call(name: str, cents: int) -> dict[str, Any]:
    return _called(name, json.dumps({"account": "DE-1", "amount_cents": cents}))


def _called(name: str, arguments: str) -> dict[str, Any]:
    made = {"type": "function_call", "id": f"fc_{len(arguments)}{arguments[-2:-1]}", "call_id": name}
    return {**made, "name": "pay", "arguments": arguments, "status": "completed"}


UNSURE = {
    "cut in its number": '{"account": "DE-1", "amount_cents": 12',
    "said twice": '{"account": "DE-1", "amount_cents": 1, "amount_cents": 120000}',
    "followed by more": '{"account": "DE-1", "amount_cents": 1} and 2',
    "no text at all": "",
}


@pytest.mark.parametrize("arguments", UNSURE.values(), ids=UNSURE)
def test_arguments_that_only_look_whole_in_a_stream_are_never_shown(
    wire: Wire, arguments: str, open_chat: Open, desk: Desk
) -> None:
    made = {
        CHAT.name: chat_pieces(("call_1", arguments)),
        RESPONSES.name: response_pieces(_called("call_1", arguments)),
        ANTHROPIC.name: claude_pieces({**_use("toolu_1", 1), "input": arguments}),
    }
    with answering(made[wire.name], _goodbye(wire)) as peer:
        assert open_chat(wire, peer.url).send_message("t", "Pay.")["answer"] == "Bye."
    assert wire.faults(peer.bodies[1]) == []
    assert wire.results(peer.bodies[1])[0].startswith("The arguments")
    assert desk.payments == []


def _goodbye(wire: Wire) -> Answer:
    if wire is ANTHROPIC:
        return claude_pieces({"type": "text", "text": "Bye."}, end="end_turn")
    if wire is CHAT:
        said = {"role": "assistant", "content": "Bye."}
        return stream({"choices": [{"index": 0, "delta": said, "finish_reason": "stop"}]})
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    delta = {
        "type": "response.output_text.delta",
        "sequence_number": 0,
        **place,
        "delta": "Bye.",
        "logprobs": [],
    }
    return stream(delta, {"type": "response.completed", "sequence_number": 1, "response": response()})


TWINS = [
    pytest.param(
        ANTHROPIC, True, claude_pieces(_use("toolu_1", 1), _use("toolu_1", 2)), id="anthropic-streamed"
    ),
    pytest.param(ANTHROPIC, False, plain(claude(_use("toolu_1", 1), _use("toolu_1", 2))), id="anthropic"),
    pytest.param(
        RESPONSES, True, response_pieces(_call("call_1", 1), _call("call_1", 2)), id="responses-streamed"
    ),
    pytest.param(RESPONSES, False, plain(response(_call("call_1", 1), _call("call_1", 2))), id="responses"),
]


@pytest.mark.parametrize(("wire", "streamed", "said"), TWINS)
def test_two_calls_with_one_id_get_ids_of_their_own_inside_and_outside_the_content(
    wire: Wire, streamed: bool, said: Answer, open_chat: Open
) -> None:
    with answering(said, said) as peer:
        chat = open_chat(wire, peer.url, streamed=streamed)
        chat.send_message("t", "Pay.")
        chat.submit_review("t", [{"type": "approve"}, {"type": "approve"}])
    assert wire.faults(peer.bodies[1]) == []
    assert wire.results(peer.bodies[1]) == ["paid 1", "paid 2"]


ERRORS = {
    CHAT.name: stream(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "I"}, "finish_reason": None}]},
        {"error": {"message": "The server had an error", "type": "server_error"}},
    ),
    RESPONSES.name: stream(
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r", "output": []}},
        {"type": "error", "sequence_number": 1, "error": {"message": "Overloaded", "type": "server_error"}},
    ),
    ANTHROPIC.name: stream(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ),
}


def test_an_error_inside_a_stream_is_tried_again_and_then_named(
    monkeypatch: pytest.MonkeyPatch, wire: Wire
) -> None:
    with answering(ERRORS[wire.name]) as peer:
        model = opened_model(wire, peer.url, monkeypatch)
        with pytest.raises(ModelFailedError, match="broke its answer off"):
            ask_model(model, [HumanMessage("Hi")], {}, still_wanted=_wanted, retries=QUICK)
    assert len(peer.bodies) == QUICK.tries


def test_a_stream_of_nothing_is_an_answer_that_broke_off(monkeypatch: pytest.MonkeyPatch, wire: Wire) -> None:
    nothing = Answer(200, "", {"Content-Type": "text/event-stream"})
    with answering(nothing) as peer:
        model = opened_model(wire, peer.url, monkeypatch)
        with pytest.raises(ModelFailedError, match="broke its answer off"):
            ask_model(model, [HumanMessage("Hi")], {}, still_wanted=_wanted, retries=QUICK)
    assert len(peer.bodies) == QUICK.tries
