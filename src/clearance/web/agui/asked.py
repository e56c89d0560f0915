"""What a client of AG-UI asks for, of all that it sends: the new message of a person, or what people decide.

The history that comes with it is its own view, and is passed over: the thread is what is kept here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from clearance.errors import ConflictError, Fault, InvalidInputError
from clearance.policy import DecisionType
from clearance.schema import pointer

if TYPE_CHECKING:
    from ag_ui.core import ResumeEntry, RunAgentInput

_INTERRUPT = re.compile(r"(.+)@(\d{1,9})#(.+)")
_ID = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True)
class Said:
    """What a person says; the client's id of the message says that it is this one, and no other."""

    id: str
    text: str


@dataclass(frozen=True)
class Answered:
    """What a person decides: one answer for each interrupt that is resumed, all of one review."""

    review_id: str
    version: int
    answers: tuple[Mapping[str, Any], ...]


def read_input(body: Mapping[str, Any]) -> "RunAgentInput":
    """Return the input of a run. Raises `InvalidInputError`, and the problem 501 without the extra."""
    try:
        from ag_ui.core import RunAgentInput
    except ImportError:
        raise HTTPException(501) from None
    try:
        asked = RunAgentInput.model_validate(body)
    except ValidationError as error:
        found = [Fault(pointer([str(part) for part in item["loc"]]), item["msg"]) for item in error.errors()]
        raise InvalidInputError("This is no input of an AG-UI run.", faults=found) from None
    faults = []
    if asked.tools:
        faults.append(Fault("/tools", "are a client's own, and do not run here: send none"))
    if asked.state:
        faults.append(Fault("/state", "is not written from outside: send none"))
    if "\0" in asked.thread_id or not asked.thread_id:
        faults.append(Fault("/threadId", "must be a text without null characters"))
    if faults:
        raise InvalidInputError("A run takes what a person says, or decides, and no more.", faults=faults)
    return asked


def wanted(asked: "RunAgentInput") -> Said | Answered:
    """Return what of the input is new."""
    return answered(asked.resume) if asked.resume else said(asked.messages)


def said(messages: Sequence[Any]) -> Said:
    """Return the new message: the last one, which must be a person's. Raises `InvalidInputError`."""
    last = messages[-1] if messages else None
    if last is None or last.role != "user":
        raise _refused("/messages", "must end with a message of the user: nothing else is new")
    if not _ID.fullmatch(last.id):
        raise _refused(f"/messages/{len(messages) - 1}/id", "must be 1 to 200 printable ASCII characters")
    text = _text(last.content)
    if text is None:
        raise _refused(f"/messages/{len(messages) - 1}/content", "has parts other than text")
    return Said(last.id, text)


def texts_of(messages: Sequence[Any]) -> list[tuple[str, str]]:
    """Return what the user of a client has said, with the client's ids."""
    read = [(each.id, _text(each.content)) for each in messages if each.role == "user"]
    return [(id, text) for id, text in read if text is not None]


def _text(content: Any) -> str | None:
    """Return the text of a message; None for one that holds anything else."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content) if all(part.type == "text" for part in content) else None


def answered(entries: "Sequence[ResumeEntry]") -> Answered:
    """Return what is decided. An interrupt that is cancelled is a call that is rejected.

    Raises `InvalidInputError`; `ConflictError` when the interrupts are not all of one review as it was.
    """
    found: list[tuple[str, int]] = []
    answers: list[Mapping[str, Any]] = []
    for place, entry in enumerate(entries):
        name = _INTERRUPT.fullmatch(entry.interrupt_id)
        if name is None:
            raise _refused(f"/resume/{place}/interruptId", "names no interrupt of this server")
        found.append((name[1], int(name[2])))
        payload = entry.payload if entry.status == "resolved" else {"type": DecisionType.REJECT.value}
        if not isinstance(payload, Mapping):
            raise _refused(f"/resume/{place}/payload", 'must be a decision, such as {"type": "approve"}')
        answers.append({**payload, "call": name[3]})
    if len(set(found)) != 1:
        raise ConflictError(
            "These interrupts are of different reviews or versions. Look once more, and decide."
        )
    return Answered(*found[0], tuple(answers))


def interrupt_id(review: Mapping[str, Any], call: str) -> str:
    """Return the id of the interrupt for one call of a review, as clients get it."""
    return f"{review['review_id']}@{review['version']}#{call}"


def _refused(place: str, why: str) -> InvalidInputError:
    return InvalidInputError("A run takes what a person says, or decides.", faults=[Fault(place, why)])
