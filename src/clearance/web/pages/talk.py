"""A conversation as its page shows it: who said what, which tools were called, and what it waits for."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup
from sqlalchemy import Connection

from clearance.errors import NotFoundError
from clearance.outcome import CallState
from clearance.people import Person, Role, has_role, may_see
from clearance.providers import OFFLINE
from clearance.review import Review, ReviewKind
from clearance.run import Run, RunState
from clearance.store import calls, facts, policies, reviews, runs, secret_parts
from clearance.store.conversations import Conversation, list_conversations
from clearance.store.stream import Piece
from clearance.web import following
from clearance.web.following import Place, Standing
from clearance.web.pages.markdown import markdown
from clearance.workspace import Clearance

NOTHING = Markup()
TURNS = 30
"""The newest turns that a page shows; all of them on demand."""
_ALL = 1000
_LONGEST = 100

_STATES: Mapping[CallState, tuple[str, str, str]] = {
    CallState.HELD: ("◆", "waits for a decision", "waits"),
    CallState.CLEARED: ("…", "approved, about to run", ""),
    CallState.STARTED: ("…", "is running", ""),
    CallState.UNCERTAIN: ("▲", "was started, outcome unknown", "flag"),
    CallState.EXECUTED: ("✓", "done", "ok"),
    CallState.FAILED: ("✗", "failed", "bad"),
    CallState.REJECTED: ("✗", "rejected, did not run", "bad"),
    CallState.RESPONDED: ("✓", "answered by a person, did not run", "ok"),
    CallState.BLOCKED: ("✗", "blocked, did not run", "bad"),
}
_NOT_RUN, _PROPOSED = ("✗", "did not run", "bad"), ("…", "proposed", "")


@dataclass(frozen=True)
class Chip:
    """One call: the tool, and what became of it as a mark, in words and by a style.

    `arguments` and `result` are as they may be shown; `review` asks people about its outcome.
    """

    tool: str
    mark: str
    word: str
    style: str
    arguments: str | None = None
    result: str | None = None
    review: str | None = None


@dataclass(frozen=True)
class Said:
    """What one party said: a person, in plain text; the agent, in Markdown; or the product, about a turn."""

    who: str
    text: str = ""
    html: Markup = NOTHING
    chips: tuple[Chip, ...] = ()
    kind: str = "agent"


@dataclass(frozen=True)
class Talk:
    """A conversation at one instant. `mark` changes with everything but the text that is being said.

    `speaking` is that text so far.
    """

    conversation: Conversation
    mark: str
    standing: Standing
    said: tuple[Said, ...]
    left_out: bool
    speaking: Markup
    closed: bool
    offline: bool

    @property
    def run(self) -> Run:
        """The newest turn."""
        return self.standing.run

    @property
    def works(self) -> bool:
        """Whether the agent is at work, or about to be."""
        return self.run.is_open and self.standing.review is None


def title_of(conversation: Conversation) -> str:
    """Return how a conversation begins, in one line."""
    words = " ".join((conversation.first or "").split())
    return (f"{words[:_LONGEST]}…" if len(words) > _LONGEST else words) or conversation.id


def conversation_seen(here: Clearance, tx: Connection, thread_id: str, *, by: Person) -> Conversation:
    """Return a conversation; for whom it is not there is none: whoever only looks on sees their own."""
    found = next(
        iter(list_conversations(tx, thread_id=thread_id, without=here.programs.silent(), limit=1)), None
    )
    requesters = runs.requesters(tx, thread_id)
    theirs = all(may_see(by, requester=each) for each in requesters)
    if found is None or not theirs or not (sees_all(by) or by.id in requesters):
        raise NotFoundError(f"There is no conversation {thread_id}.")
    return found


def sees_all(person: Person) -> bool:
    """Whether this person may see the conversations of others."""
    return has_role(person, Role.REVIEWER)


def talk_of(here: Clearance, thread_id: str, *, by: Person, all: bool = False) -> Talk:
    """Return a conversation as this person sees it, with its newest turns or `all`.

    Raises `NotFoundError`. Reads the thread's own state: to be called outside of a transaction.
    """
    with here.database.read() as tx:
        conversation = conversation_seen(here, tx, thread_id, by=by)
        thread = runs.thread(tx, thread_id)
        marks = secret_parts.of_thread(tx, thread_id)
        limit = _ALL if all else TURNS
        newest_first = runs.list_runs(tx, thread_id=thread_id, limit=limit + 1)
        remembered = is_offline(tx)
    standing = following.standing(here, newest_first[0].id, place=Place())
    mark = mark_of(here, standing)
    turns = newest_first[:limit][::-1]
    messages = here.transcripts.messages(thread_id)
    from clearance.adapters.transcript import message_records

    records = _by_run(message_records(messages, marks=marks))
    with here.database.read() as tx:
        ledger = _Ledger.read(tx, turns, records)
    said = [each for turn in turns for each in _turn(turn, records.get(turn.id, []), ledger, by=by)]
    metadata = next((each.response_metadata for each in reversed(messages) if each.type == "ai"), {})
    return Talk(
        conversation=conversation,
        mark=mark,
        standing=standing,
        said=tuple(said),
        left_out=len(newest_first) > limit,
        speaking=spoken("" if marks.any else heard("", standing.said)),
        closed=thread is not None and thread.closed_at is not None,
        offline=bool(metadata.get("clearance_offline", not metadata and remembered)),
    )


def pending_review(tx: Connection, standing: Standing) -> Review | None:
    """Return the review that a conversation waits for."""
    return None if standing.review is None else reviews.review(tx, standing.review["review_id"])


def is_answered(tx: Connection, program: str) -> bool:
    """Whether any process ever brought this program here."""
    return policies.active_version(tx, program) is not None


def is_offline(tx: Connection) -> bool:
    """Whether this workspace is a demo's, whose agent speaks by fixed rules."""
    return bool(facts.get(tx, facts.CHAT_MODEL) == OFFLINE)


def mark_of(here: Clearance, standing: Standing) -> str:
    """Return what changes when the page has to show something else than more of the same text."""
    with here.database.read() as tx:
        rows = calls.of_run(tx, standing.run.id)
    review = standing.review or {}
    parts = [
        standing.run.id,
        standing.run.state.value,
        f"{review.get('review_id')}@{review.get('version')}",
        *(f"{row.key}:{row.attempt}:{row.state.value}" for row in rows),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def heard(text: str, pieces: Iterable[Piece]) -> str:
    """Return the text that is being said after some more pieces of it; an empty one begins it anew."""
    for piece in pieces:
        text = text + piece.text if piece.text else ""
    return text


def spoken(text: str) -> Markup:
    """Return a text of the agent as it is shown."""
    return markdown(text) if text.strip() else NOTHING


@dataclass(frozen=True)
class _Ledger:
    """What the ledger says about the calls of some turns."""

    rows: Mapping[str, calls.LedgerRow]
    asked: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls, tx: Connection, turns: Sequence[Run], records: Mapping[str, list[dict[str, Any]]]
    ) -> "_Ledger":
        named = {key for turn in turns for key in _keys(records.get(turn.id, []), turn.id).values()}
        rows = calls.rows(tx, named)
        unknown = [row.key for row in rows.values() if row.state is CallState.UNCERTAIN]
        asked = {key: reviews.of_call(tx, key, kind=ReviewKind.OUTCOME) for key in unknown}
        return cls(rows, {key: found[-1].id for key, found in asked.items() if found})

    def chip(
        self, call: Mapping[str, Any], key: str, result: Mapping[str, Any] | None, *, open: bool
    ) -> Chip:
        row = self.rows.get(key)
        if row is not None:
            mark, word, style = _STATES[row.state]
        elif result is not None:
            mark, word, style = _STATES.get(result["state"], _NOT_RUN if result["error"] else _PROPOSED)
        else:
            mark, word, style = _PROPOSED if open else _NOT_RUN
        text = None if result is None else result["text"]
        return Chip(call["name"] or "", mark, word, style, call["arguments"], text, self.asked.get(key))


def _by_run(records: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        found.setdefault(each["run_id"] or "", []).append(each)
    return found


def _keys(records: Sequence[dict[str, Any]], run_id: str) -> dict[tuple[int, int], str]:
    """Return the keys of a turn's calls, by the place of their message and their place in it."""
    found = {}
    number = 0
    for at, each in enumerate(records):
        if each["role"] == "assistant":
            number += 1
            found.update({(at, i): f"{run_id}/{number}/{i}" for i in range(len(each["tool_calls"]))})
    return found


def _turn(run: Run, records: Sequence[dict[str, Any]], ledger: _Ledger, *, by: Person) -> list[Said]:
    """Return what was said in one turn, and how it ended where that is no answer."""
    asker = "You" if run.requester == by.id else run.requester
    said = []
    if not any(each["role"] == "user" for each in records) and run.input is not None:
        said.append(Said(asker, text=run.input, kind="you" if asker == "You" else "person"))
    keys = _keys(records, run.id)
    for at, each in enumerate(records):
        match each["role"]:
            case "user":
                said.append(Said(asker, text=each["text"], kind="you" if asker == "You" else "person"))
            case "assistant":
                chips = tuple(
                    ledger.chip(call, keys[at, i], _result(records, at, call["id"]), open=run.is_open)
                    for i, call in enumerate(each["tool_calls"])
                )
                if chips or each["text"].strip():
                    said.append(Said("Agent", html=spoken(each["text"]), chips=chips))
            case "notice":
                said.append(Said("Clearance", text=each["text"], kind="note"))
    if not records and run.answer is not None:
        said.append(Said("Agent", html=spoken(run.answer)))
    return [*said, *_end(run)]


def _result(records: Sequence[dict[str, Any]], at: int, call_id: str | None) -> dict[str, Any] | None:
    """Return the result of a call: models repeat ids, so it is the next one after its message."""
    for each in records[at + 1 :]:
        if each["role"] == "assistant":
            return None
        if each["role"] == "tool" and each["tool_call_id"] == call_id:
            return each
    return None


def _end(run: Run) -> list[Said]:
    if run.redacted_at is not None:
        return [Said("Clearance", text="What was said here was removed by retention.", kind="note")]
    if run.state is RunState.FAILED:
        text = (
            f"This turn failed: {run.reason or 'no reason is known'}. Nothing more of it runs. Write again."
        )
        return [Said("Clearance", text=text, kind="note")]
    if run.state is RunState.CANCELLED:
        return [Said("Clearance", text=f"This turn was cancelled. {run.reason or ''}".strip(), kind="note")]
    return []
