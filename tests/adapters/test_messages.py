"""The reducer of a thread's messages."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from clearance.adapters.messages import merge_messages

Write = list[BaseMessage] | BaseMessage


def _message(key: str, text: str) -> BaseMessage:
    return HumanMessage(text, id=key)


messages = st.builds(_message, st.sampled_from("abcdef"), st.text(max_size=2))
removals = st.sampled_from([*"abcdefx", REMOVE_ALL_MESSAGES]).map(lambda key: RemoveMessage(id=key))
one = st.one_of(messages, messages, messages, removals)
writes = st.lists(st.one_of(one, st.lists(one, max_size=4)), max_size=6)
states = st.lists(messages, max_size=6, unique_by=lambda message: message.id)


@given(states, writes, writes)
def test_how_writes_are_batched_does_not_matter(
    state: list[BaseMessage], first: list[Write], second: list[Write]
) -> None:
    apart = merge_messages(merge_messages(state, first), second)
    assert apart == merge_messages(state, [*first, *second])


@given(states, writes)
def test_the_given_state_is_not_changed(state: list[BaseMessage], changes: list[Write]) -> None:
    before = list(state)
    merge_messages(state, changes)
    assert all(was is now for was, now in zip(before, state, strict=True))


@given(states, writes)
def test_every_id_is_one_that_was_given_and_occurs_once(
    state: list[BaseMessage], changes: list[Write]
) -> None:
    ids = [message.id for message in merge_messages(state, changes)]
    assert len(ids) == len(set(ids))
    assert set(ids) <= set("abcdef")


def test_a_message_with_a_known_id_takes_the_place_of_that_message() -> None:
    state = [_message("a", "1"), _message("b", "2"), _message("c", "3")]
    merged = merge_messages(state, [AIMessage("new", id="b"), [_message("d", "4")]])
    assert [(message.id, message.content) for message in merged] == [
        ("a", "1"),
        ("b", "new"),
        ("c", "3"),
        ("d", "4"),
    ]


def test_a_removed_message_that_comes_back_is_the_last() -> None:
    state = [_message("a", "1"), _message("b", "2")]
    merged = merge_messages(state, [RemoveMessage(id="a"), _message("a", "again")])
    assert [message.id for message in merged] == ["b", "a"]


@pytest.mark.parametrize(
    ("state", "changes", "error"),
    [
        ([HumanMessage("no id")], [], ValueError),
        ([_message("a", "1"), _message("a", "2")], [], ValueError),
        ([], [3], NotImplementedError),
    ],
)
def test_what_has_no_id_of_its_own_is_refused(
    state: list[BaseMessage], changes: Sequence[Write], error: type[Exception]
) -> None:
    with pytest.raises(error):
        merge_messages(state, changes)
