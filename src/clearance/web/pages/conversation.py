"""The conversation around a review: what was said before its calls were proposed, and what happened."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from clearance.reading import Whole, said_in
from clearance.redaction import scrubbed
from clearance.review import ReviewKind
from clearance.run import is_one_call
from clearance.store import secret_parts
from clearance.web.pages.markdown import markdown
from clearance.workspace import Clearance

SHOWN = 12
"""The newest messages that a review shows."""


@dataclass(frozen=True)
class Spoken:
    """One message, or one result of a tool. `calls` are the names of tools that a model called in it."""

    who: str
    html: Markup
    calls: tuple[str, ...] = ()
    claim: bool = False


@dataclass(frozen=True)
class Conversation:
    """What was said, the oldest first; `left_out` counts what came before it."""

    messages: tuple[Spoken, ...]
    left_out: int = 0


def conversation_around(here: Clearance, found: Whole) -> Conversation:
    """Return what was said in a review's thread until its calls were proposed, or what another caller sent.

    Reads the thread's own state: to be called outside of a transaction.
    """
    records = [] if is_one_call(found.review.program) else _records(here, found)
    if not records:
        said = said_in(found.run)
        return Conversation((Spoken(found.review.requester, markdown(said)),) if said else ())
    shown = records[-SHOWN:]
    return Conversation(tuple(_spoken(each, found) for each in shown), left_out=len(records) - len(shown))


def _records(here: Clearance, found: Whole) -> list[dict[str, Any]]:
    from clearance.adapters.transcript import message_records

    with here.database.read() as tx:
        marks = secret_parts.of_thread(tx, found.review.thread_id)
    records = message_records(here.transcripts.messages(found.review.thread_id), marks=marks)
    return [each for each in _until(records, found) if each["text"] or each["tool_calls"]]


def _until(records: list[dict[str, Any]], found: Whole) -> list[dict[str, Any]]:
    """Return the records up to the message that proposed the calls of this review."""
    review, counted = found.review, 0
    if review.kind is ReviewKind.OUTCOME:
        ends = [at for at, each in enumerate(records) if each["run_id"] == review.run_id]
        return records[: ends[-1] + 1] if ends else records
    for at, each in enumerate(records):
        if each["run_id"] == review.run_id and each["role"] == "assistant":
            counted += 1
            if counted == review.message:
                return records[: at + 1]
    return records


def _spoken(record: dict[str, Any], found: Whole) -> Spoken:
    names = {
        "user": found.review.requester,
        "assistant": "The model",
        "tool": "Result",
        "notice": "Clearance",
    }
    role = record["role"]
    return Spoken(
        names.get(role, role),
        markdown(scrubbed(record["text"], found.words)),
        tuple(call["name"] for call in record["tool_calls"]),
        claim=role == "assistant",
    )
