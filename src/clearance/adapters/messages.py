"""How a graph keeps a thread's messages: only what was added is stored, not the list again.

LangGraph's `DeltaChannel` stores the writes and replays them through a reducer when the state is
read. Its own `add_messages` cannot be that reducer: it invents ids, so a message would have
another one at every read.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages
from langgraph.channels import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES


def merge_messages(
    state: list[BaseMessage], writes: Sequence[list[BaseMessage] | BaseMessage]
) -> list[BaseMessage]:
    """Return the messages after these writes, in one pass over the state and the writes.

    A message whose id is in the state replaces that one in its place; any other is appended, and one that
    came without an id is given one from its place and its content, the same at every reading. A
    `RemoveMessage` takes the message of its id away, or all of them for `REMOVE_ALL_MESSAGES`; one
    that names nothing changes nothing. The given list is not changed.

    It does not matter how writes are batched: merging twice gives what merging both at once gives.

    Raises ValueError for a state in which two messages have the same id, and what LangChain raises for
    something that is no message.
    """
    merged = {message.id: message for message in state}
    if None in merged or len(merged) != len(state):
        raise ValueError("Each message of a thread needs an id of its own.")
    for message in _each(writes):
        if not isinstance(message, RemoveMessage):
            kept = message if message.id else _named(message, merged)
            merged[kept.id] = kept
        elif message.id == REMOVE_ALL_MESSAGES:
            merged.clear()
        else:
            merged.pop(message.id, None)
    return list(merged.values())


def _each(writes: Sequence[Any]) -> Iterator[BaseMessage]:
    """Yield the messages of the writes, those in short forms (`("user", "text")`, dicts, texts) as well."""
    for write in writes:
        for message in write if isinstance(write, list) else [write]:
            if isinstance(message, BaseMessage):
                yield message
            else:
                yield from convert_to_messages([message])


def _named(message: BaseMessage, merged: Mapping[str | None, BaseMessage]) -> BaseMessage:
    """Return the message with an id that follows from where it stands and what it says."""
    content = hashlib.sha256(repr((message.type, message.content)).encode(errors="replace")).hexdigest()[:12]
    place = len(merged)
    while (name := f"{place}-{content}") in merged:
        place += 1
    return message.model_copy(update={"id": name})


# What a graph's state declares: `messages: Messages`. The number means "no snapshots": one would
# write the whole thread again, and `delete_superseded` keeps what has to be replayed in one place,
# where reading it takes as long as reading a snapshot.
Messages = Annotated[list[BaseMessage], DeltaChannel(merge_messages, snapshot_frequency=1_000_000_000)]
