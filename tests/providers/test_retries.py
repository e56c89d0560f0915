"""A provider that is busy, down or gone: asked again with patience, then named in one clear sentence."""

import logging
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall

from clearance.adapters.model_calls import RETRIES, Retries, ask_model
from clearance.apps.chat import create_reviewed_agent
from clearance.errors import FenceLostError, ModelFailedError, RunFailedError
from clearance.workspace import Clearance
from tests.apps.conftest import Desk
from tests.providers.conftest import ANTHROPIC, CHAT, POLICY, Open, Wire, chat_on, opened_model
from tests.providers.loopback import Answer, answering, plain

QUICK = Retries(first=0.01, most=0.02)
HELLO = [HumanMessage("Hello")]
PAY = Reply(tool_calls=(ToolCall("pay", {"account": "DE-1", "amount_cents": 5}),))


def _wanted() -> None:
    """Somebody still wants the answer."""


def test_a_busy_provider_is_asked_again_when_it_said(
    provider: LLMock, wire: Wire, streamed: bool, open_chat: Open
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider), streamed=streamed)
    provider.rate_limit(times=2, retry_after=0.3).reply("Here I am.")
    assert chat.send_message("t", "Hello")["answer"] == "Here I am."
    assert [record.status for record in provider.requests] == [429, 429, 200]
    provider.assert_resilient()


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(provider: LLMock, wire: Wire, open_chat: Open, status: int) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.fail(status, retry_after=0.02).reply("Here I am.")
    assert chat.send_message("t", "Hello")["answer"] == "Here I am."
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("status", "said"), [(429, "takes no more requests"), (503, "cannot answer now (503)")]
)
def test_a_provider_that_stays_so_is_named_and_the_thread_goes_on(
    provider: LLMock, wire: Wire, open_chat: Open, status: int, said: str
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.fail(status, times=None, retry_after=0.02)
    with pytest.raises(RunFailedError, match="The model's provider") as failed:
        chat.send_message("t", "Hello")
    assert said in failed.value.reason
    assert f"(Tried {RETRIES.tries} times.)" in failed.value.reason
    assert len(provider.requests) == RETRIES.tries
    provider.reset().reply("Here I am.")
    assert chat.send_message("t", "Still there?")["answer"] == "Here I am."


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "refuses the request (400)"),
        (401, "does not accept the key (401)"),
        (402, "wants to be paid first (402)"),
        (403, "does not let this key use the model (403)"),
        (404, "does not know the model"),
        (413, "finds the conversation too large"),
        (422, "refuses the request (422)"),
    ],
)
def test_what_no_retry_can_help_fails_at_once_and_the_thread_goes_on(
    provider: LLMock, wire: Wire, open_chat: Open, status: int, said: str
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.fail(status).reply("Here I am.")
    with pytest.raises(RunFailedError) as failed:
        chat.send_message("t", "Hello")
    assert said in failed.value.reason
    assert "Tried" not in failed.value.reason
    assert len(provider.requests) == 1
    assert chat.send_message("t", "Still there?")["answer"] == "Here I am."


def test_a_conversation_that_is_too_long_is_named_as_that(
    provider: LLMock, wire: Wire, open_chat: Open
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.limits(context_window=5)
    with pytest.raises(RunFailedError, match="conversation too long for the model"):
        chat.send_message("t", "Hello")
    assert len(provider.requests) == 1


def test_nobody_waits_for_longer_than_a_turn_may_take(provider: LLMock, wire: Wire, open_chat: Open) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.rate_limit(retry_after=3600)
    with pytest.raises(RunFailedError, match="It asks to wait 3600 seconds"):
        chat.send_message("t", "Hello")
    assert len(provider.requests) == 1


def test_a_tool_that_ran_before_the_model_failed_does_not_run_again(
    provider: LLMock, wire: Wire, open_chat: Open, desk: Desk
) -> None:
    chat = open_chat(wire, provider.base_url(wire.provider))
    provider.add(PAY)
    chat.send_message("t", "Pay.")
    provider.fail(503, times=None, retry_after=0.02)
    with pytest.raises(RunFailedError):
        chat.submit_review("t", [{"type": "approve"}])
    provider.reset().reply("It is paid.")
    assert chat.send_message("t", "And now?")["answer"] == "It is paid."
    assert len(desk.payments) == 1
    assert wire.results(provider.last_request.body) == ["paid 5"]


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"Retry_After": "0.4"}, 0.4),
        ({"Retry_After": "1"}, 1.0),
        ({"retry_after_ms": "300", "Retry_After": "60"}, 0.3),
        (
            {"Retry_After": "Sun, 06 Nov 2022 08:49:38 GMT", "Date": "Sun, 06 Nov 2022 08:49:37 GMT"},
            1.0,
        ),
        ({"Retry_After": "soon"}, 0.0),
        ({"Retry_After": "-5"}, 0.0),
        ({"Retry_After": "nan"}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_pause_is_read_in_every_form(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, headers: dict[str, str], least: float
) -> None:
    said = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]
    }
    with (
        answering(plain({}, status=429, **headers), plain(said)) as peer,
        caplog.at_level(logging.WARNING, "clearance"),
    ):
        model = opened_model(CHAT, peer.url, monkeypatch)
        model.disable_streaming = True
        assert ask_model(model, HELLO, {}, still_wanted=_wanted, retries=QUICK).text == "Hi"
    (record,) = [each for each in caplog.records if "comes in" in each.message]
    assert isinstance(record.args, tuple)
    paused = float(str(record.args[2]))
    assert least <= paused <= max(least, QUICK.most * 2)


@pytest.mark.parametrize(
    "answer", [Answer(0), Answer(200, "{", {"Content-Type": "application/json"}, missing=9)]
)
def test_a_connection_that_is_lost_is_tried_again_and_then_named(
    monkeypatch: pytest.MonkeyPatch, wire: Wire, answer: Answer, streamed: bool
) -> None:
    with answering(answer) as peer:
        model = opened_model(wire, peer.url, monkeypatch)
        model.disable_streaming = not streamed
        with pytest.raises(ModelFailedError) as failed:
            ask_model(model, HELLO, {}, still_wanted=_wanted, retries=QUICK)
    assert failed.value.tries == QUICK.tries == len(peer.bodies)
    assert (failed.value.__cause__, failed.value.__suppress_context__) == (None, True)


def test_a_provider_that_is_not_there_is_named_with_what_to_look_at(
    monkeypatch: pytest.MonkeyPatch, wire: Wire
) -> None:
    with answering(Answer(0)) as peer:
        gone = peer.url
    model = opened_model(wire, gone, monkeypatch)
    with pytest.raises(ModelFailedError, match="cannot be reached"):
        ask_model(model, HELLO, {}, still_wanted=_wanted, retries=QUICK)


def test_a_provider_that_is_too_slow_is_tried_again(
    provider: LLMock, monkeypatch: pytest.MonkeyPatch, wire: Wire
) -> None:
    monkeypatch.setattr("clearance.apps.chat.models.REQUEST_TIMEOUT", 0.3)
    model = opened_model(wire, provider.base_url(wire.provider), monkeypatch)
    provider.delay(1.0, times=2)
    with pytest.raises(ModelFailedError, match="did not answer in time"):
        ask_model(model, HELLO, {}, still_wanted=_wanted, retries=Retries(tries=2, first=0.01))
    assert ask_model(model, HELLO, {}, still_wanted=_wanted).text


def test_a_client_that_tries_again_by_itself_is_not_multiplied(
    provider: LLMock, workspace: Clearance, desk: Desk
) -> None:
    model = init_chat_model("gpt-4o", model_provider="openai", max_retries=2)
    provider.fail(503, times=None, retry_after=0.02)
    with pytest.raises(RunFailedError):
        chat_on(model, workspace, desk).send_message("t", "Hello")
    assert len(provider.requests) == 3


def test_nobody_asks_again_for_a_thread_that_was_taken_over(
    provider: LLMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over() -> None:
        raise FenceLostError("t")

    model = opened_model(CHAT, provider.base_url("openai"), monkeypatch)
    provider.fail(503, times=None, retry_after=0.02)
    with pytest.raises(FenceLostError):
        ask_model(model, HELLO, {}, still_wanted=taken_over)
    assert len(provider.requests) == 1


def test_what_a_provider_wrote_is_in_no_error_and_no_log_line(
    wire: Wire, caplog: pytest.LogCaptureFixture, open_chat: Open
) -> None:
    told = {
        "error": {"type": "x", "message": "Incorrect API key provided: sk-very-secret", "code": "sk-code"}
    }
    with (
        answering(plain(told, status=500, Retry_After="0.01"), plain(told, status=401)) as peer,
        caplog.at_level(logging.INFO, "clearance"),
        pytest.raises(RunFailedError) as failed,
    ):
        open_chat(wire, peer.url).send_message("t", "My account is DE-1")
    assert "(401)" in failed.value.reason
    logged = "\n".join(logging.Formatter().format(record) for record in caplog.records if _ours(record))
    assert "try 2" in logged
    assert "the segment failed: The model's provider does not accept the key" in logged
    for secret in ("sk-", "DE-1", "Traceback"):
        assert secret not in f"{failed.value}\n{logged}"


def _ours(record: logging.LogRecord) -> bool:
    return record.name.startswith("clearance")


def test_a_bug_stays_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("choices")

    model = opened_model(ANTHROPIC, "http://127.0.0.1:9", monkeypatch)
    monkeypatch.setattr(type(model), "_stream", broken)
    with pytest.raises(KeyError):
        ask_model(model, HELLO, {}, still_wanted=_wanted)


def test_a_caller_who_drives_the_graph_gets_the_error_and_can_go_on(
    provider: LLMock, workspace: Clearance, desk: Desk, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened_model(wire, provider.base_url(wire.provider), monkeypatch)
    agent: Any = create_reviewed_agent(model, desk.tools(), using=workspace, policy=POLICY)
    config: Any = {"configurable": {"thread_id": "by-hand"}}
    provider.fail(401).reply("Here I am.")
    with pytest.raises(ModelFailedError, match="does not accept the key"):
        agent.invoke({"messages": HELLO}, config)
    assert agent.invoke(None, config)["messages"][-1].text == "Here I am."
