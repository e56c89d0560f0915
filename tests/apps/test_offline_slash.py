"""The offline model's slash form: any tool, exactly as written, or a sentence that says what is right."""

import json
import shlex
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field

from clearance.apps.chat.offline import OfflineChatModel


class Size(StrEnum):
    """A closed set of texts."""

    SMALL = "small"
    LARGE = "large"


class Address(BaseModel):
    """An object inside an argument."""

    street: str


class Everything(BaseModel):
    """A tool with one argument of each kind."""

    model_config = ConfigDict(extra="forbid", title="everything")

    text: str = "t"
    whole: int = 0
    number: float = 0.0
    flag: bool = False
    maybe: int | None = None
    either: int | str = 0
    items: list[int] = []
    address: Address | None = None
    size: Size = Size.SMALL
    code: str = Field(default="AB-1", pattern="^[A-Z]{2}-[0-9]$", examples=["XY-7"])
    few: int = Field(default=1, ge=1, le=9)
    anything: Any = None


# A tool from elsewhere, bound as a JSON schema: two arguments that must be there, and a dotted name.
PAY = {
    "type": "function",
    "function": {
        "name": "bank.pay",
        "description": "Pay.",
        "parameters": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "cents": {"type": "integer", "minimum": 1}},
            "required": ["to", "cents"],
            "additionalProperties": False,
        },
    },
}
NOTHING = {"title": "ping", "description": "Ping.", "type": "object", "properties": {}}


def reply(text: str) -> AIMessage:
    """Return what the model replies to one message, with the tools of this file."""
    answer = OfflineChatModel().bind_tools([Everything, PAY, NOTHING]).invoke([HumanMessage(text)])
    assert isinstance(answer, AIMessage)
    return answer


def called(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a message leads to."""
    return [(call["name"], call["args"]) for call in reply(text).tool_calls]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("text=hello", "hello"),
        ('text="two words"', "two words"),
        ("text='two words'", "two words"),
        ('text="it\'s"', "it's"),
        (r'text="say \"hi\""', 'say "hi"'),
        ('text=""', ""),
        ("text=", ""),
        ("text=a=b=c", "a=b=c"),
        ("text=007", "007"),
        ("text=null", "null"),
        ("text=#1", "#1"),
        ('text="first\nsecond"', "first\nsecond"),
        ('text="a\u2028b"', "a\u2028b"),
        ("text=你好", "你好"),
        ("whole=0", 0),
        ("whole=-12", -12),
        ("whole=9007199254740993", 2**53 + 1),
        ("whole=18446744073709551617", 2**64 + 1),
        (f"whole={10**400}", 10**400),
        ("number=7", 7),
        ("number=7.0", 7.0),
        ("number=48250.10", 48250.1),
        ("number=-1e3", -1000.0),
        ("flag=true", True),
        ("flag=false", False),
        ("maybe=null", None),
        ("maybe=3", 3),
        ("either=3", 3),
        ("either=three", "three"),
        ("items='[1, 2]'", [1, 2]),
        ("items=[]", []),
        ("""address='{"street": "Main 1"}'""", {"street": "Main 1"}),
        ("address=null", None),
        ("size=large", "large"),
        ("code=XY-7", "XY-7"),
        ("few=9", 9),
        ("anything=free", "free"),
        ("""anything='{"a": [1, 2.5, null]}'""", {"a": [1, 2.5, None]}),
    ],
)
def test_a_value_is_typed_by_the_schema(written: str, value: Any) -> None:
    [(tool, arguments)] = called(f"/everything {written}")
    [(name, given_value)] = arguments.items()
    assert (tool, name, given_value) == ("everything", written.partition("=")[0], value)
    assert type(given_value) is type(value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("/nonsense x=1", "There is no tool nonsense. The tools are: everything, bank.pay, ping."),
        ("/everything colour=red", "everything has no argument colour. It takes: text, whole, number"),
        ("/everything hello", "everything: word 1 has no name. Write name=value"),
        ("/everything text=two words", "everything: word 2 has no name."),
        ("/everything text=a text=a", "everything: text is given twice. Give it once."),
        ("/everything text=it's", "everything: a quotation mark is not closed"),
        ("/everything text=a\\", "everything: a quotation mark is not closed, or a backslash"),
        ("/everything whole=7.0", "everything: whole must be a whole number."),
        ("/everything whole=007", "everything: whole must be a whole number."),
        ("/everything whole=1e3", "everything: whole must be a whole number."),
        ("/everything whole=1_000", "everything: whole must be a whole number."),
        ("/everything whole=٣", "everything: whole must be a whole number."),
        ("/everything whole=", "everything: whole must be a whole number."),
        (f"/everything whole={'9' * 5000}", "everything: whole must be a whole number."),
        ("/everything number=NaN", "everything: number must be a number."),
        ("/everything number=1e999", "everything: number must be a number."),
        ("/everything number=0.1000000000000000001", "everything: number must be a number."),
        ("/everything flag=yes", "everything: flag must be true or false."),
        ("/everything flag=True", "everything: flag must be true or false."),
        ("/everything maybe=none", "everything: maybe must be null or a whole number."),
        ("/everything items=1", "everything: items must be a list in JSON"),
        ("/everything items='[1, NaN]'", "everything: items must be a list in JSON"),
        ("/everything items='[\"1\"]'", "everything: items must be a list in JSON"),
        ("/everything items='[1],\"x\":[2]'", "everything: items must be a list in JSON"),
        ("""/everything address='{"street": "a", "street": "b"}'""", "address must be null or an object"),
        ("/everything size=huge", "everything: size must be one of: small, large."),
        ("/everything code=xy-7", "everything: code must be a text, such as XY-7."),
        ("/everything few=10", "everything: few must be a whole number, at least 1, at most 9."),
        ("/bank.pay to=ana", "bank.pay: cents is missing. It must be a whole number, at least 1."),
        ("/bank.pay to=ana cents=0", "bank.pay: cents must be a whole number, at least 1."),
        ("/bank.pay", "Write it like this: /bank.pay to=… cents=…"),
        ("/ping loud=true", "ping takes no arguments."),
        ("/everything text=" + "x" * 300_000, "The commands are longer than the 262144 bytes"),
    ],
)
def test_what_cannot_be_read_is_answered_in_words_and_never_called(written: str, said: str) -> None:
    answer = reply(written)
    assert said in str(answer.text)
    assert not answer.tool_calls
    assert answer.response_metadata["finish_reason"] == "stop"


def test_every_fault_of_a_command_is_named_at_once() -> None:
    said = str(reply("/bank.pay cents=x colour=red blue").text)
    for fault in ("to is missing", "cents must be", "no argument colour", "word 3 has no name"):
        assert fault in said


def test_a_tool_without_arguments_is_called_by_its_name() -> None:
    assert called("/ping") == [("ping", {})]


def test_several_lines_are_several_calls_of_one_message() -> None:
    written = 'Please do both:\n/ping\n  /bank.pay to=ana cents=5\n/everything text="a\nb" flag=true\n'
    assert called(written) == [
        ("ping", {}),
        ("bank.pay", {"to": "ana", "cents": 5}),
        ("everything", {"text": "a\nb", "flag": True}),
    ]


def test_one_faulty_line_keeps_the_others_from_being_called() -> None:
    answer = reply("/ping\n/bank.pay to=ana")
    assert not answer.tool_calls
    assert "cents is missing" in str(answer.text)


def test_a_command_is_never_swallowed_by_a_quotation_mark_left_open_above_it() -> None:
    answer = reply("/everything text=Don't\n/bank.pay to=ana cents=5\n/everything text=Can't")
    assert not answer.tool_calls
    assert str(answer.text).count("a quotation mark is not closed") == 2


@pytest.mark.parametrize("text", ["/usr/bin is full", "and/or", "1 /ping", "see /ping", "/ ping"])
def test_a_slash_that_begins_no_command_is_only_text(text: str) -> None:
    answer = reply(text)
    assert not answer.tool_calls
    assert "no AI" in str(answer.text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="/"), max_size=80))
def test_any_text_in_single_quotation_marks_arrives_as_it_is(value: str) -> None:
    assert called(f"/everything text={shlex.quote(value)}") == [("everything", {"text": value})]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8", exclude_characters="/"), max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    ).filter(lambda value: not isinstance(value, str))
)  # fmt: skip
def test_any_json_value_arrives_as_it_is(value: Any) -> None:
    written = json.dumps(value)
    [(_, arguments)] = called(f"/everything anything={shlex.quote(written)}")
    assert json.dumps(arguments["anything"]) == written
