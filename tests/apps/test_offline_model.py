"""The offline model proposes what is asked for in plain words, and asks when something is missing."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import InjectedToolArg, tool

from clearance.apps.chat.offline import Language, OfflineChatModel, label
from clearance.apps.chat.offline.wording import SENTENCES
from clearance.apps.chat.support.tools import support_tools

PROMPT = SystemMessage("You are a support agent.")
MAIL = {"to": "ana@example.org", "subject": "Lamp", "body": "It ships today."}
ASK_FOR_MAIL = {
    "en": "Send an email to ana@example.org about Lamp saying It ships today.",
    "id": "Kirim email ke ana@example.org tentang Lamp dengan isi It ships today.",
    "zh": "给 ana@example.org 发邮件，主题：Lamp，内容：It ships today.",
}
Model = Runnable[Any, AIMessage]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """The offline model with the support desk's tools, none of which is run here."""
    return OfflineChatModel().bind_tools(support_tools(tmp_path))


@pytest.fixture
def talk(model: Model) -> Callable[[str], AIMessage]:
    """A conversation: say something, and get the reply with everything before in mind."""
    messages: list[BaseMessage] = [PROMPT]

    def say(text: str) -> AIMessage:
        messages.append(HumanMessage(text))
        messages.append(model.invoke(messages))
        assert isinstance(messages[-1], AIMessage)
        return messages[-1]

    return say


def calls_of(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a message without their ids."""
    return [(call["name"], call["args"]) for call in message.tool_calls]


# The label


def test_every_message_is_labelled_as_no_ai(talk: Callable[[str], AIMessage]) -> None:
    marks = {"model_name": "offline", "clearance_offline": True}
    assert talk("hello").response_metadata == {**marks, "finish_reason": "stop"}
    asked = talk("What is the weather in Oslo?")
    assert asked.response_metadata == {**marks, "finish_reason": "tool_calls"}
    assert OfflineChatModel.label == label() != label(Language.ID)
    assert "no AI" in OfflineChatModel.label


def test_each_language_has_every_sentence_with_the_same_places() -> None:
    english = {key: set(Template(text).get_identifiers()) for key, text in SENTENCES[Language.EN].items()}
    for language in Language:
        found = {key: set(Template(text).get_identifiers()) for key, text in SENTENCES[language].items()}
        assert found == english


# Requests in plain words


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("What is the weather in Jakarta?", ("get_weather", {"city": "Jakarta"})),
        ("please, weather for New York today", ("get_weather", {"city": "New York"})),
        ("Bagaimana cuaca di Jakarta hari ini?", ("get_weather", {"city": "Jakarta"})),
        ("雅加达的天气怎么样？", ("get_weather", {"city": "雅加达"})),
        ("Search orders for Ana", ("search_orders", {"query": "Ana"})),
        ('find orders for "desk lamp".', ("search_orders", {"query": "desk lamp"})),
        ("Tolong cari pesanan dari Budi", ("search_orders", {"query": "Budi"})),
        ("请查询陈静的订单。", ("search_orders", {"query": "陈静"})),
        *[(text, ("send_email", MAIL)) for text in ASK_FOR_MAIL.values()],
        (
            "Refund 20.00 for order SO-1003 because one cup broke!",
            ("issue_refund", {"order_id": "SO-1003", "amount": "20.00", "reason": "one cup broke!"}),
        ),
        (
            "kembalikan 20.00 untuk pesanan SO-1003 karena pecah",
            ("issue_refund", {"order_id": "SO-1003", "amount": "20.00", "reason": "pecah"}),
        ),
        (
            "给订单 SO-1003 退款 20.00 欧元，因为杯子碎了",
            ("issue_refund", {"order_id": "SO-1003", "amount": "20.00", "reason": "杯子碎了"}),
        ),
        ("Delete customer CU-1005", ("delete_record", {"table": "customers", "record_id": "CU-1005"})),
        ("Hapus pesanan SO-1005", ("delete_record", {"table": "orders", "record_id": "SO-1005"})),
        ("删除客户 CU-1005", ("delete_record", {"table": "customers", "record_id": "CU-1005"})),
    ],
)
def test_a_phrase_becomes_the_call_that_it_asks_for(
    talk: Callable[[str], AIMessage], text: str, call: tuple[str, dict[str, Any]]
) -> None:
    reply = talk(text)
    assert calls_of(reply) == [call]
    assert list(reply.tool_calls[0]["args"]) == list(call[1])
    assert reply.text == ""


def test_several_sentences_are_several_calls_of_one_message(talk: Callable[[str], AIMessage]) -> None:
    reply = talk("Hi! What is the weather in Oslo? Search orders for Ana.\nDelete customer CU-1005. Thanks!")
    assert [name for name, _ in calls_of(reply)] == ["get_weather", "search_orders", "delete_record"]
    assert len({call["id"] for call in reply.tool_calls}) == 3


def test_a_request_below_a_text_to_the_end_is_a_call_of_its_own(talk: Callable[[str], AIMessage]) -> None:
    asked = (
        "Refund 1.00 for order SO-1003 because it broke\nSend an email to ana@example.org about A saying B"
    )
    refund, mail = calls_of(talk(asked))
    assert (refund[1]["reason"], mail[1]["body"]) == ("it broke", "B")


def test_a_text_to_the_end_keeps_its_lines_and_sentences(talk: Callable[[str], AIMessage]) -> None:
    [(_, mail)] = calls_of(talk("Send an email to ana@example.org about A saying Hello. Thanks!\nBye."))
    assert mail["body"] == "Hello. Thanks!\nBye."


@pytest.mark.parametrize(
    "text",
    [
        "Delete everything",
        "Delete customer CU-1005 or maybe not. Who knows?",
        "What is love?",
        "",
        "/",
        "删除",
    ],
)
def test_what_is_not_asked_for_in_full_is_not_guessed(talk: Callable[[str], AIMessage], text: str) -> None:
    assert not talk(text).tool_calls


@pytest.mark.parametrize(
    ("text", "label_words", "example"),
    [
        ("Can you write me a poem?", "no AI", "- Delete customer CU-1005"),
        ("Bisakah kamu membuat puisi untuk saya?", "bukan AI", "- Hapus pelanggan CU-1005"),
        ("写一首诗吧", "不是人工智能", "- 删除客户 CU-1005"),
    ],
)
def test_anything_else_is_answered_with_what_can_be_asked(
    talk: Callable[[str], AIMessage], text: str, label_words: str, example: str
) -> None:
    said = str(talk(text).text)
    assert label_words in said
    assert example in said
    assert "- /issue_refund order_id=SO-1003 amount=49.90" in said


def test_a_model_without_tools_says_so() -> None:
    assert "no tools" in str(OfflineChatModel().invoke([HumanMessage("hello")]).text)


# Questions


@pytest.mark.parametrize(
    ("request_text", "questions"),
    [
        ("Send an email", ["To whom?", "subject", "say"]),
        ("kirim email", ["Kepada siapa?", "subjek", "isi"]),
        ("发邮件", ["发给谁", "主题", "内容"]),
    ],
)
def test_what_is_missing_is_asked_for_one_by_one(
    talk: Callable[[str], AIMessage], request_text: str, questions: list[str]
) -> None:
    reply = talk(request_text)
    for question, answer in zip(questions, MAIL.values(), strict=True):
        assert question in str(reply.text)
        assert not reply.tool_calls
        reply = talk(answer)
    assert calls_of(reply) == [("send_email", MAIL)]


def test_an_answer_that_does_not_fit_is_asked_for_again(talk: Callable[[str], AIMessage]) -> None:
    assert "How much" in str(talk("refund order SO-1003 because it broke").text)
    again = talk("twenty")
    assert "amount must be a text, such as 49.90" in str(again.text)
    assert "How much" in str(again.text)
    call = ("issue_refund", {"order_id": "SO-1003", "amount": "20.00", "reason": "it broke"})
    assert calls_of(talk("20.00.")) == [call]


def test_an_answer_goes_to_the_request_that_was_asked_about() -> None:
    @tool
    def post(text: str, title: str = "") -> str:
        """Post."""
        return text + title

    @tool
    def name(title: str) -> str:
        """Name."""
        return title

    post.metadata = {"offline": {"phrases": {"en": ["post {text}"]}}}
    name.metadata = {"offline": {"phrases": {"en": ["name it"]}}}
    model = OfflineChatModel().bind_tools([post, name])
    messages: list[BaseMessage] = [HumanMessage("post hello\nname it")]
    messages += [model.invoke(messages), HumanMessage("Ada")]
    assert calls_of(model.invoke(messages)) == [("post", {"text": "hello"}), ("name", {"title": "Ada"})]


def test_a_question_without_words_of_the_tool_names_the_argument() -> None:
    @tool
    def grade(points: int) -> str:
        """Grade."""
        return str(points)

    grade.metadata = {"offline": {"phrases": {"en": ["grade it[ with {points}]"]}}}
    model = OfflineChatModel().bind_tools([grade])
    asked = model.invoke([HumanMessage("grade it")])
    assert asked.text == "What should points be for grade? It must be a whole number."
    answered = model.invoke([HumanMessage("grade it"), asked, HumanMessage("36893488147419103233")])
    assert calls_of(answered) == [("grade", {"points": 2**65 + 1})]


@pytest.mark.parametrize(
    ("request_text", "word", "answer"),
    [
        ("send an email", "never mind", "All right"),
        ("kirim email", "batal", "Baik"),
        ("发邮件", "算了", "好的"),
    ],
)
def test_a_question_can_be_dropped(
    talk: Callable[[str], AIMessage], request_text: str, word: str, answer: str
) -> None:
    talk(request_text)
    assert answer in str(talk(word).text)
    assert not talk("ana@example.org").tool_calls


def test_another_request_takes_the_place_of_the_open_question(talk: Callable[[str], AIMessage]) -> None:
    talk("send an email")
    assert calls_of(talk("weather in Oslo")) == [("get_weather", {"city": "Oslo"})]


# Streams, ids and tools from elsewhere

STREAMED = [
    "hello",
    "写一首诗吧",
    ASK_FOR_MAIL["zh"],
    "send an email",
    '/get_weather city="São Paulo"\n/send_email to=ana@example.org subject=灯 body="a\nb"',
    "/send_email to=ana",
]


def without_ids(message: AIMessage) -> dict[str, Any]:
    """Return what two replies must have in common."""
    return {
        "content": message.content,
        "calls": calls_of(message),
        "metadata": message.response_metadata,
        "kept": message.additional_kwargs,
    }


def joined(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    """Return the message that the chunks add up to."""
    first, *others = chunks
    for chunk in others:
        first = first + chunk
    return first


@pytest.mark.parametrize("text", STREAMED)
def test_a_stream_adds_up_to_what_is_given_at_once(model: Model, text: str) -> None:
    chunks = [chunk for chunk in model.stream([HumanMessage(text)]) if isinstance(chunk, AIMessageChunk)]
    whole = joined(chunks)
    assert without_ids(whole) == without_ids(model.invoke([HumanMessage(text)]))
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.response_metadata.get("finish_reason") for chunk in chunks[:-1]] == [None] * (
        len(chunks) - 1
    )
    assert chunks[-1].response_metadata["finish_reason"] in ("stop", "tool_calls")


def test_words_and_the_raw_text_of_calls_come_in_pieces(model: Model) -> None:
    words = [chunk.text for chunk in model.stream([HumanMessage("hello")])]
    assert words[:3] == ["I", " am", " the"]
    text = "/send_email to=ana@example.org subject=灯 body=b\n/get_weather city=Oslo"
    raw: dict[int | None, str] = {}
    for chunk in model.stream([HumanMessage(text)]):
        assert isinstance(chunk, AIMessageChunk)
        for part in chunk.tool_call_chunks:
            raw[part["index"]] = raw.get(part["index"], "") + (part["args"] or "")
    assert [json.loads(part) for part in raw.values()] == [
        {"to": "ana@example.org", "subject": "灯", "body": "b"},
        {"city": "Oslo"},
    ]


def test_asynchronous_use_gives_the_same(model: Model) -> None:
    async def both() -> tuple[AIMessage, list[AIMessage]]:
        asked = [HumanMessage(ASK_FOR_MAIL["id"])]
        return await model.ainvoke(asked), [chunk async for chunk in model.astream(asked)]

    at_once, chunks = asyncio.run(both())
    assert calls_of(at_once) == [("send_email", MAIL)]
    whole = joined([chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)])
    assert without_ids(whole) == without_ids(at_once)


@pytest.mark.parametrize("text", STREAMED)
def test_the_same_messages_give_the_same_reply_under_new_ids(model: Model, text: str) -> None:
    one, other = (model.invoke([PROMPT, HumanMessage(text)]) for _ in range(2))
    assert without_ids(one) == without_ids(other)
    ids = [message.id for message in (one, other)]
    ids += [call["id"] for message in (one, other) for call in message.tool_calls]
    assert len(set(ids)) == len(ids)


def test_an_argument_that_is_injected_is_not_offered() -> None:
    @tool
    def note(text: str, key: Annotated[str, InjectedToolArg] = "") -> str:
        """Note."""
        return text + key

    model = OfflineChatModel().bind_tools([note])
    assert calls_of(model.invoke([HumanMessage("/note text=a")])) == [("note", {"text": "a"})]
    assert "note has no argument key" in str(model.invoke([HumanMessage("/note text=a key=b")]).text)


@pytest.mark.parametrize(
    ("phrase", "fault"),
    [
        ("note {nothing}", "declares phrases for arguments it lacks"),
        ("note {text", "a brace that belongs to no"),
        ("note (a|b", "cannot be read"),
    ],
)
def test_a_phrase_that_cannot_mean_what_it_says_is_refused_when_it_is_bound(phrase: str, fault: str) -> None:
    @tool
    def note(text: str) -> str:
        """Note."""
        return text

    note.metadata = {"offline": {"phrases": {"en": [phrase]}}}
    with pytest.raises(ValueError, match=fault):
        OfflineChatModel().bind_tools([note])
