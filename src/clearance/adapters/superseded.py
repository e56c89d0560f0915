"""Which of a thread's checkpoints can go, and how what they carried is kept.

A `DeltaChannel` has no value in most checkpoints: its value is what the ancestors' writes add up
to, back to the nearest checkpoint that holds one (its seed) or to the first. So a checkpoint can
only go when its writes move to an older one that stays. Afterwards a thread has two checkpoints:
the newest, and the one that carries all writes, one behind the other. The work is as long as what
was added since the last time, whatever the length of the thread.

The tables of both savers have the same columns, so one set of statements serves both. A call of a
subgraph has a namespace of its own, with the id of its task after a colon; it goes with the
checkpoint that it was called from.
"""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.checkpoint.base import writes_sort_key

# The task of all writes that were moved; `idx` then is their place in the order.
_MOVED = "moved"
_ROW = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


@dataclass(frozen=True)
class Saved:
    """One checkpoint: the versions of its channels, and which of them it holds a value for."""

    id: str
    parent: str | None
    versions: Mapping[str, str]
    stored: frozenset[str]


class Tables(Protocol):
    """The tables of one saver, inside one transaction."""

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run a statement on `checkpoints` and `writes`, with `?` for its values."""

    def saved(self, thread_id: str, namespace: str) -> list[Saved]:
        """Return every checkpoint of a namespace, without decoding its values."""

    def forget_values(self, thread_id: str, namespace: str, kept: Sequence[Saved]) -> None:
        """Delete values that lie beside the checkpoints, but for those that these use."""


@dataclass(frozen=True)
class Move:
    """The writes of these channels go from one checkpoint to another, or get a new order there."""

    source: str
    target: str
    channels: frozenset[str]


@dataclass(frozen=True)
class Plan:
    """What becomes of a namespace: who stays, who goes, whose writes move, who gets which parent.

    `kept` begins with the newest; `moves` begin with the oldest.
    """

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    moves: tuple[Move, ...]
    parents: tuple[tuple[str, str | None], ...]


def saved_as(
    key: str,
    parent: str | None,
    checkpoint: Mapping[str, Any],
    *,
    beside: Set[tuple[str, str]] = frozenset(),
) -> Saved:
    """Return what a row says; `beside` are the channels and versions stored outside of it."""
    versions = {name: str(version) for name, version in checkpoint["channel_versions"].items()}
    elsewhere = [name for name, version in versions.items() if (name, version) in beside]
    return Saved(key, parent, versions, frozenset([*checkpoint["channel_values"], *elsewhere]))


def plan(checkpoints: Iterable[Saved]) -> Plan:
    """Return what can go of one namespace's checkpoints, of which there is at least one.

    Each channel that the newest checkpoint has no value for is followed to its seed. Every
    checkpoint on the way passes its writes of these channels to the nearest one that stays.
    """
    known = {saved.id: saved for saved in checkpoints}
    head = known[max(known)]
    way = _way_to_seeds(head, known)
    stays = [saved.id for saved, channels in way if channels & saved.stored]
    if way and way[-1][0].id not in stays:
        stays.append(way[-1][0].id)
    moves: list[Move] = []
    for saved, channels in reversed(way):
        target = saved.id if saved.id in stays else moves[-1].target
        moves.append(Move(saved.id, target, channels))
    kept = (head.id, *stays)
    parents = zip(kept, (*stays, None), strict=True)
    return Plan(
        kept=kept,
        dropped=tuple(sorted(known.keys() - set(kept))),
        moves=tuple(moves),
        parents=tuple((child, new) for child, new in parents if known[child].parent != new),
    )


def delete_superseded(tables: Tables, thread_id: str) -> None:
    """Delete what only older states of the thread need; its newest state stays as it is."""
    found = tables.execute("SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ?", (thread_id,))
    head = ""
    for (namespace,) in sorted(found):  # the root graph's, which has no name, is the first
        if ":" not in namespace:
            newest = _fold(tables, thread_id, namespace)
            head = head or newest
        elif (_called_from(tables, thread_id, namespace) or head) < head:
            _forget(tables, thread_id, namespace)


def _fold(tables: Tables, thread_id: str, namespace: str) -> str:
    """Move the writes, delete what can go, join what stays into one line; return the newest."""
    saved = tables.saved(thread_id, namespace)
    todo, scope = plan(saved), (thread_id, namespace)
    for target in todo.kept:
        if moves := [move for move in todo.moves if move.target == target]:
            _move(moves, tables, scope=scope)
    for gone in todo.dropped:
        tables.execute(f"DELETE FROM writes WHERE {_ROW}", (*scope, gone))
        tables.execute(f"DELETE FROM checkpoints WHERE {_ROW}", (*scope, gone))
    for child, parent in todo.parents:
        tables.execute(
            f"UPDATE checkpoints SET parent_checkpoint_id = ? WHERE {_ROW}", (parent, *scope, child)
        )
    if todo.dropped:
        tables.forget_values(*scope, [one for one in saved if one.id in todo.kept])
    return todo.kept[0]


def _move(moves: Sequence[Move], tables: Tables, *, scope: tuple[str, str]) -> None:
    """Put the writes of these moves, which have one target, behind those it carries already."""
    target = moves[0].target
    [(last,)] = tables.execute(
        f"SELECT max(idx) FROM writes WHERE {_ROW} AND task_id = ?", (*scope, target, _MOVED)
    )
    place = 0 if last is None else last + 1
    for move in moves:
        at = (*scope, move.source)
        if move.source == target and last is not None:
            continue  # its own writes were put in order when it became a target
        writes = tables.execute(f"SELECT task_path, task_id, idx, channel FROM writes WHERE {_ROW}", at)
        for _path, task, idx, channel in sorted(writes, key=lambda w: writes_sort_key(*w[:3])):
            if channel in move.channels:
                tables.execute(
                    "UPDATE writes SET checkpoint_id = ?, task_id = ?, task_path = '', idx = ? "
                    f"WHERE {_ROW} AND task_id = ? AND idx = ?",
                    (target, _MOVED, place, *at, task, idx),
                )
                place += 1
        if move.source == target:
            tables.execute(f"DELETE FROM writes WHERE {_ROW} AND task_id <> ?", (*at, _MOVED))


def _way_to_seeds(head: Saved, known: Mapping[str, Saved]) -> list[tuple[Saved, frozenset[str]]]:
    """Return the ancestors whose writes are replayed, newest first, with the channels meant."""
    wanted = frozenset(channel for channel in head.versions.keys() - head.stored if not _is_consumed(channel))
    way = []
    at = known.get(head.parent or "")
    while at is not None and wanted:
        way.append((at, wanted))
        wanted -= at.stored
        at = known.get(at.parent or "")
    return way


def _is_consumed(channel: str) -> bool:
    """Whether it is one of LangGraph's own that are empty once their value was used."""
    return channel in ("__start__", "__pregel_tasks") or channel.startswith("branch:")


def _called_from(tables: Tables, thread_id: str, namespace: str) -> str | None:
    """Return the root graph's checkpoint in which a subgraph was called, where that is known."""
    [(metadata,)] = tables.execute(
        "SELECT metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? "
        "ORDER BY checkpoint_id DESC LIMIT 1",
        (thread_id, namespace),
    )
    facts = metadata if isinstance(metadata, dict) else json.loads(metadata)
    root: str | None = (facts.get("parents") or {}).get("")
    return root


def _forget(tables: Tables, thread_id: str, namespace: str) -> None:
    for table in ("writes", "checkpoints"):
        tables.execute(
            f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?", (thread_id, namespace)
        )
    tables.forget_values(thread_id, namespace, [])
