"""The offline model tells what became of its calls, as it happened, in the language of the question."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable

from clearance.adapters import history
from clearance.apps.chat.offline import Language, OfflineChatModel
from clearance.apps.chat.offline.wording import SENTENCES, Say
from clearance.apps.chat.support.tools import support_tools
from clearance.outcome import CallState, Outcome, blocked, expired, uncertain
from clearance.toolcall import ToolCall

PROMPT = SystemMessage("You are a support agent.")
MAIL = {"to": "ana@example.org", "subject": "Lamp", "body": "It ships today."}
ASK_FOR_MAIL = {
    "en": "Send an email to ana@example.org about Lamp saying It ships today.",
    "id": "Kirim email ke ana@example.org tentang Lamp dengan isi It ships today.",
    "zh": "给 ana@example.org 发邮件，主题：Lamp，内容：It ships today.",
}
LANGUAGES = ("en", "id", "zh")
Model = Runnable[Any, AIMessage]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """The offline model with the support desk's tools, none of which is run here."""
    return OfflineChatModel().bind_tools(support_tools(tmp_path))


def calls_of(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a message without their ids."""
    return [(call["name"], call["args"]) for call in message.tool_calls]


def after_mail(model: Model, outcome: Outcome | None, *, language: str) -> str:
    """Let the model propose a mail, answer it as Clearance does, and return what the model then says."""
    messages: list[BaseMessage] = [PROMPT, HumanMessage(ASK_FOR_MAIL[language])]
    proposed = model.invoke(messages)
    assert calls_of(proposed) == [("send_email", MAIL)]
    call = ToolCall("r/1/0", "send_email", json.dumps(MAIL), proposed.tool_calls[0]["id"] or "")
    told = history.answer(call, outcome or ended(CallState.EXECUTED), to=proposed)
    said = model.invoke([*messages, proposed, told])
    assert not said.tool_calls
    return str(said.text)


def ended(state: CallState, text: str = "done", *, tool: str = "send_email", **changed: str) -> Outcome:
    """Return how the proposed mail ended, perhaps with other arguments."""
    return Outcome("r/1/0", state, tool=tool, arguments=json.dumps({**MAIL, **changed}), text=text)


@pytest.mark.parametrize(("language", "words"), [("en", "email to"), ("id", "Email ke"), ("zh", "邮件")])
def test_a_result_is_told_in_the_language_of_the_question(model: Model, language: str, words: str) -> None:
    result = json.dumps({"to": MAIL["to"], "subject": "Lamp", "handed_to": "outbox/1.eml"})
    said = after_mail(model, ended(CallState.EXECUTED, result), language=language)
    assert words in said
    assert MAIL["to"] in said
    assert "outbox/1.eml" in said


def rejected_text(reason: str) -> str:
    """Return how the model is told of a rejection."""
    not_again = "Do not try it again unless you are asked to."
    return f"A reviewer rejected this call; send_email did not run. {not_again}{reason}"


@pytest.mark.parametrize(
    ("language", "words", "question"),
    [
        ("en", "send_email was not carried out. The reason given: too early", "What would you like"),
        ("id", "send_email tidak dijalankan. Alasannya: too early", "Apa yang sebaiknya"),
        ("zh", "send_email 没有执行。给出的理由：too early", "接下来您希望我做什么"),
    ],
)
def test_a_rejection_is_explained_with_its_reason_and_followed_by_a_question(
    model: Model, language: str, words: str, question: str
) -> None:
    text = rejected_text(" Reason: too early")
    said = after_mail(model, ended(CallState.REJECTED, text), language=language)
    assert words in said
    assert question in said


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("state", "text", "words"),
    [
        (
            CallState.REJECTED,
            rejected_text(""),
            ("gave no reason", "tanpa memberi alasan", "没有给出理由"),
        ),
        (CallState.REJECTED, expired("send_email"), ("in time", "sebelum tenggat", "期限内")),
        (CallState.BLOCKED, blocked("send_email"), ("policy", "kebijakan", "策略")),
        (CallState.UNCERTAIN, uncertain("send_email"), ("unknown", "Tidak diketahui", "无法确定")),
        (CallState.FAILED, "SupportError: Full disk.", ("failed", "gagal", "失败")),
    ],
)
def test_what_did_not_succeed_is_never_told_as_done(
    model: Model, language: str, state: CallState, text: str, words: tuple[str, str, str]
) -> None:
    said = after_mail(model, ended(state, text), language=language)
    assert words[LANGUAGES.index(language)] in said
    assert SENTENCES[Language(language)][Say.WHAT_NEXT] in said
    assert "SupportError" not in said


def test_an_edited_call_is_told_as_it_ran(model: Model) -> None:
    result = json.dumps({"to": "budi@example.org", "subject": "Lamp", "handed_to": "outbox/1.eml"})
    outcome = ended(CallState.EXECUTED, result, to="budi@example.org")
    said = after_mail(model, outcome, language="en")
    assert "A person changed this call before it ran. What ran: send_email {" in said
    assert "The email to budi@example.org" in said
    assert "ana@example.org" not in said


def test_a_call_that_was_edited_into_another_tool_is_told_under_its_name(model: Model) -> None:
    outcome = Outcome(
        "r/1/0", CallState.EXECUTED, tool="get_weather", arguments='{"city":"Oslo"}', text="Cold."
    )
    said = after_mail(model, outcome, language="en")
    assert "What ran: get_weather" in said
    assert "Result of get_weather:\nCold." in said
    assert "send_email" not in said


def test_the_notice_of_langchains_own_middleware_is_understood(model: Model) -> None:
    proposed = model.invoke([HumanMessage(ASK_FOR_MAIL["en"])])
    text = (
        "Note: a human reviewer replaced this tool call before it ran. Executed instead: get_weather with "
        'arguments {"city": "Oslo"}.\n\nTool response:\nCold.'
    )
    told = ToolMessage(text, tool_call_id=proposed.tool_calls[0]["id"], name="get_weather")
    said = str(model.invoke([HumanMessage(ASK_FOR_MAIL["en"]), proposed, told]).text)
    assert said == (
        'A person changed this call before it ran. What ran: get_weather with arguments {"city": "Oslo"}.\n'
        "Result of get_weather:\nCold."
    )


def test_a_persons_own_answer_is_passed_on(model: Model) -> None:
    said = after_mail(model, ended(CallState.RESPONDED, "I called Ana."), language="en")
    assert said == "Result of send_email:\nI called Ana."


def test_a_long_result_is_shortened_and_says_so(model: Model) -> None:
    said = after_mail(model, ended(CallState.EXECUTED, "x" * 60_000), language="en")
    assert len(said) < 2200
    assert "the whole text has 60000 characters" in said


def test_every_result_of_a_message_is_told_in_its_order(model: Model) -> None:
    messages: list[BaseMessage] = [
        HumanMessage("/get_weather city=Oslo\n/delete_record table=orders record_id=SO-1001")
    ]
    proposed = model.invoke(messages)
    texts = (
        ("success", "Cold."),
        ("error", "A reviewer rejected this call; it did not run. Reason: keep it"),
    )
    told = [
        ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)
        for call, (status, text) in zip(proposed.tool_calls, texts, strict=True)
    ]
    said = model.invoke([*messages, proposed, *told])
    weather, deletion, question = str(said.text).split("\n\n")
    assert weather == "Result of get_weather:\nCold."
    assert deletion == "delete_record was not carried out. The reason given: keep it"
    assert question == "What would you like me to do now?"
    assert not said.tool_calls


def test_a_call_that_was_never_offered_is_told_as_not_run(model: Model) -> None:
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"type": "invalid_tool_call", "id": "1", "name": "send_email", "args": "{", "error": "x"}
        ],
    )
    told = ToolMessage("The arguments are not JSON.", tool_call_id="1", name="send_email", status="error")
    said = str(model.invoke([HumanMessage(ASK_FOR_MAIL["en"]), broken, told]).text)
    assert "send_email was not carried out: The arguments are not JSON." in said


def test_news_of_an_earlier_call_are_told_with_the_next_reply(model: Model) -> None:
    news = history.note(
        "[Clearance: the outcome of the earlier call send_email {} is known now: sent]", note_id="n"
    )
    reply = model.invoke([HumanMessage("weather in Oslo"), news])
    assert calls_of(reply) == [("get_weather", {"city": "Oslo"})]
    assert "News of an earlier call: Clearance: the outcome of the earlier call send_email" in str(reply.text)
    told = ToolMessage("Cold.", tool_call_id=reply.tool_calls[0]["id"], name="get_weather")
    assert str(model.invoke([HumanMessage("weather in Oslo"), news, reply, told]).text).endswith("Cold.")
