"""How a graph keeps a thread's messages: only what was added is stored, not the list again.

LangGraph's `DeltaChannel` stores the writes and replays them through a reducer when the state is
read. Its own `add_messages` cannot be that reducer: it invents ids, so a message would have
another one at every read.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES


def merge_messages(
    state: list[BaseMessage], writes: Sequence[list[BaseMessage] | BaseMessage]
) -> list[BaseMessage]:
    """Return the messages after these writes, in one pass over the state and the writes.

    A message whose id is in the state replaces that one in its place; any other is appended. A
    `RemoveMessage` takes the message of its id away, or all of them for `REMOVE_ALL_MESSAGES`; one
    that names nothing changes nothing. The given list is not changed.

    It does not matter how writes are batched: merging twice gives what merging both at once gives.

    Raises ValueError for a message without an id, or a state in which two have the same one, and
    TypeError for what is no message.
    """
    merged = {message.id: message for message in state}
    if None in merged or len(merged) != len(state):
        raise ValueError("Each message of a thread needs an id of its own.")
    for message in _each(writes):
        if not isinstance(message, RemoveMessage):
            merged[message.id] = message
        elif message.id == REMOVE_ALL_MESSAGES:
            merged.clear()
        else:
            merged.pop(message.id, None)
    return list(merged.values())


def _each(writes: Sequence[list[BaseMessage] | BaseMessage]) -> Iterator[BaseMessage]:
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            if not isinstance(message, BaseMessage):
                raise TypeError(f"Only messages can be kept; got {type(message).__name__}.")
            if not message.id:
                raise ValueError(f"A {message.type} message has no id. Give it one first.")
            yield message


# What a graph's state declares: `messages: Messages`. The number means "no snapshots": one would
# write the whole thread again, and `delete_superseded` keeps what has to be replayed in one place,
# where reading it takes as long as reading a snapshot.
Messages = Annotated[list[BaseMessage], DeltaChannel(merge_messages, snapshot_frequency=1_000_000_000)]
