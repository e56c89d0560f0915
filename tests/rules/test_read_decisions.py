"""What a client sends is read as one decision for each waiting call, or refused whole; nothing is guessed."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearance.decision import named_calls, read_decisions
from clearance.errors import InvalidReviewDecisionError
from clearance.policy import DecisionType, Threshold
from clearance.review import Decision, Review
from clearance.shapes import MAX_TEXT
from tests.rules.json_values import json_values
from tests.rules.small_reviews import (
    FILE,
    NOW,
    PAYMENT,
    Desk,
    approve,
    call,
    edit,
    reject,
    respond,
    review,
)

ONE = review(call("c1"))
TWO = review(call("c1", tool="pay", arguments=PAYMENT), call("c2", tool="delete_file", arguments=FILE))


def read(payload: object, about: Review = ONE) -> tuple[Decision, ...]:
    """Read decisions of a person about a review."""
    return read_decisions(payload, about, by="u-1001", now=NOW)


def pointers(payload: object, about: Review = ONE) -> list[str]:
    """Return where a payload is refused."""
    with pytest.raises(InvalidReviewDecisionError) as caught:
        read(payload, about)
    return [fault.pointer for fault in caught.value.faults]


NO_SET_FOR_TWO: dict[str, object] = {
    "nothing": [],
    "null": None,
    "a text": "approve",
    "an object": {"decisions": {}},
    "an object around a right list": {"decisions": [approve("c1"), approve("c2")]},
    "one of two": [approve("c1")],
    "one of two without a name": [approve()],
    "one too many": [approve("c1"), approve("c2"), approve("c3")],
    "one too many without names": [approve(), approve(), approve()],
    "an unknown name": [approve("c1"), approve("c9")],
    "one name twice": [approve("c1"), approve("c1")],
    "one name twice, and all": [approve("c1"), approve("c2"), approve("c1")],
    "one named and one not": [approve("c1"), approve()],
    "an empty name": [approve("c1"), approve("")],
    "the tool for a name": [approve("pay"), approve("delete_file")],
    "the model's own id": [approve("call_0"), approve("call_0")],
    "a number for a name": [approve("c1"), {"type": "approve", "call": 2}],
    "a name with a blank": [approve("c1"), approve("c2 ")],
    "other decisions without names": [reject(message="no mail"), approve()],
    "the same without names, with a comment": [reject(message="no"), reject(message="no")],
    "no type": [{"call": "c1"}, approve("c2")],
    "null for a type": [{"call": "c1", "type": None}, approve("c2")],
    "a bool for a type": [{"call": "c1", "type": True}, approve("c2")],
    "an unknown type": [{"call": "c1", "type": "yes"}, approve("c2")],
    "a type with a blank": [{"call": "c1", "type": "APPROVE "}, approve("c2")],
    "a type in capitals": [{"call": "c1", "type": "Approve"}, approve("c2")],
    "a list for a type": [{"call": "c1", "type": ["approve"]}, approve("c2")],
    "approved instead of a type": [{"call": "c1", "approved": "false"}, approve("c2")],
    "approved beside a type": [{"call": "c1", "type": "approve", "approved": True}, approve("c2")],
    "a list in the list": [[approve("c1"), approve("c2")]],
    "null in the list": [None, approve("c2")],
    "text in the list": ["approve", "approve"],
    "bytes": b"[]",
    "a number": 2,
    "true": True,
    "a set": {"approve"},
    "a generator": iter([approve("c1"), approve("c2")]),
}


@pytest.mark.parametrize("payload", NO_SET_FOR_TWO.values(), ids=NO_SET_FOR_TWO.keys())
def test_what_is_not_one_decision_for_each_waiting_call_is_refused(payload: object) -> None:
    with pytest.raises(InvalidReviewDecisionError):
        read(payload, TWO)


CONTENT: dict[str, tuple[dict[str, Any], str]] = {
    "an edit without its content": ({"type": "edit"}, "/0/edited_action"),
    "an edit with null": ({"type": "edit", "edited_action": None}, "/0/edited_action"),
    "an edit with a list": ({"type": "edit", "edited_action": []}, "/0/edited_action"),
    "an edit whose arguments are beside it": ({"type": "edit", "args": {"path": 1}}, "/0/args"),
    "an edit without arguments": ({"type": "edit", "edited_action": {"name": "x"}}, "/0/edited_action/args"),
    "an edit to null": (edit(None, None), "/0/edited_action/args"),
    "an edit to a list": (edit(None, []), "/0/edited_action/args"),
    "an edit to a number": (edit(None, 7), "/0/edited_action/args"),
    "an edit to cut-off text": (edit(None, '{"a":'), "/0/edited_action/args"),
    "an edit to text that is a list": (edit(None, "[]"), "/0/edited_action/args"),
    "an edit to NaN": (edit(None, {"a": float("nan")}), "/0/edited_action/args"),
    "an edit with a repeated key": (edit(None, '{"a":1,"a":2}'), "/0/edited_action/args"),
    "an edit with a lone surrogate": (edit(None, {"a": "\ud800"}), "/0/edited_action/args"),
    "an edit with bytes": (edit(None, {"a": b"x"}), "/0/edited_action/args"),
    "an edit with a key that is no text": (edit(None, {1: "a"}), "/0/edited_action/args"),
    "an edit beyond the limit": (edit(None, {"a": "x" * 300_000}), "/0/edited_action/args"),
    "an edit of no tool": (edit(None, {}, name=""), "/0/edited_action/name"),
    "an edit with an unknown field": (
        {"type": "edit", "edited_action": {"args": {}, "id": "c1"}},
        "/0/edited_action/id",
    ),
    "an edit whose name is a number": (
        {"type": "edit", "edited_action": {"name": 7, "args": {}}},
        "/0/edited_action/name",
    ),
    "an approval with an edit": (approve(edited_action={"args": {}}), "/0/edited_action"),
    "a rejection with an edit": (reject(edited_action={"args": {}}), "/0/edited_action"),
    "an answer without text": ({"type": "respond"}, "/0/message"),
    "an answer of blanks": (respond(message=" \n"), "/0/message"),
    "a message that is a number": (reject(message=7), "/0/message"),
    "a message with a null character": (reject(message="a\0b"), "/0/message"),
    "a message with a lone surrogate": (reject(message="\udc00"), "/0/message"),
    "a message beyond the limit": (reject(message="x" * (MAX_TEXT + 1)), "/0/message"),
    "a message whose bytes are beyond the limit": (
        reject(message="\N{GRINNING FACE}" * (MAX_TEXT // 4 + 1)),
        "/0/message",
    ),
    "a field that is not known": (approve(force=True), "/0/force"),
    "a field with a slash": ({"type": "approve", "a/b": True}, "/0/a~1b"),
    "a name with a null character": (approve("c1\0"), "/0/call"),
}


@pytest.mark.parametrize(("item", "pointer"), CONTENT.values(), ids=CONTENT.keys())
def test_a_decision_of_a_wrong_shape_is_refused_at_its_place(item: dict[str, Any], pointer: str) -> None:
    assert pointer in pointers([item])


def test_every_fault_of_every_decision_is_told_at_once() -> None:
    assert pointers([{"type": "yes"}, reject("c2", message=7, force=1)], TWO) == [
        "/0/type",
        "/1/force",
        "/1/message",
    ]
    assert pointers([approve("c9"), approve("c8")], TWO) == ["/0/call", "/1/call"]


def test_a_refusal_names_the_calls_that_wait() -> None:
    with pytest.raises(InvalidReviewDecisionError, match=r"2 calls wait and 1 decisions came.*c1, c2"):
        read([approve("c1")], TWO)


def test_a_message_of_the_longest_size_is_taken() -> None:
    assert read([reject(message="x" * MAX_TEXT)])[0].message == "x" * MAX_TEXT


@pytest.mark.parametrize("kind", list(DecisionType))
def test_one_waiting_call_needs_no_name(kind: DecisionType) -> None:
    item: dict[str, Any] = {"type": kind.value, "message": "why"}
    if kind is DecisionType.EDIT:
        item["edited_action"] = {"args": {}}
    (found,) = read([item])
    assert (found.call, found.type, found.message, found.by, found.at) == ("c1", kind, "why", "u-1001", NOW)


@pytest.mark.parametrize("item", [approve(), reject(), {"type": "approve", "call": None, "message": ""}])
def test_decisions_that_are_the_same_and_carry_nothing_need_no_names(item: dict[str, Any]) -> None:
    assert [found.call for found in read([item, dict(item)], TWO)] == ["c1", "c2"]


def test_edits_without_names_are_refused_where_two_calls_wait() -> None:
    with pytest.raises(InvalidReviewDecisionError, match="must name"):
        read([edit(None, {}), edit(None, {})], TWO)


def test_only_calls_that_still_wait_are_named() -> None:
    desk = Desk(review(call("c1"), call("c2", who=[Threshold(approve=2)])))
    after = desk.decide([approve("c1"), approve("c2")])
    assert [found.call for found in read([approve("c2")], after)] == ["c2"]
    assert pointers([approve("c1")], after) == ["/0/call"]
    with pytest.raises(InvalidReviewDecisionError, match="1 calls wait and 2 decisions came"):
        read([approve("c1"), approve("c2")], after)


def test_edited_arguments_are_kept_exactly_as_values_and_as_text() -> None:
    by_value = read([edit(None, {"b": 10**20, "a": 48250.0, "t": "\u202e"})])[0]
    by_text = read([edit(None, '{"b": 100000000000000000000, "a": 48250.00, "t": "\\u202e"}')])[0]
    assert by_value.arguments == '{"b":100000000000000000000,"a":48250.0,"t":"\u202e"}'
    assert by_text.arguments == by_value.arguments


def test_an_edit_without_a_name_is_of_the_same_tool() -> None:
    assert read([edit(None, {})])[0].tool == "send_email"
    assert read([edit(None, {}, name="pay")])[0].tool == "pay"
    assert read([approve()])[0].tool is None


def test_the_order_of_named_decisions_does_not_matter() -> None:
    payload = [edit("c1", {}), reject("c2", message="no"), respond("c3", "done")]
    about = review(call("c1"), call("c2"), call("c3"))
    expected = {found.call: found for found in read(payload, about)}
    for order in itertools.permutations(payload):
        assert {found.call: found for found in read(list(order), about)} == expected


def test_named_calls_finds_the_names_in_whatever_was_sent() -> None:
    assert named_calls([approve("c1"), {"call": 7}, None, {"type": "x", "call": "c2"}]) == ["c1", "c2"]
    assert named_calls(None) == named_calls("c1") == named_calls({"call": "c1"}) == []


@given(json_values)
def test_whatever_json_is_sent_it_is_read_whole_or_refused(payload: Any) -> None:
    try:
        found = read(payload, TWO)
    except InvalidReviewDecisionError:
        return
    assert sorted(each.call for each in found) == ["c1", "c2"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["approve", "reject", "respond", "edit", "yes", None])},
            optional={
                "call": st.sampled_from(["c1", "c2", "c3", "", None]),
                "message": st.sampled_from(["", "why", None, 1]),
                "edited_action": st.sampled_from([None, {}, {"args": {}}, {"args": "{}"}, {"args": "x"}]),
            },
        ),
        max_size=3,
    )
)
def test_what_is_read_says_what_was_sent_for_that_very_call(payload: list[dict[str, Any]]) -> None:
    try:
        found = read(payload, TWO)
    except InvalidReviewDecisionError:
        return
    assert sorted(each.call for each in found) == ["c1", "c2"]
    sent = {item.get("call"): item["type"] for item in payload}
    if None in sent:
        assert len({each.type for each in found}) == 1
    else:
        assert {each.call: each.type.value for each in found} == sent
