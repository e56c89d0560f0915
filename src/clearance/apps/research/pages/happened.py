"""What happened to a run: who did what and when, from the trail, with the comments that people made."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from clearance.audit import AuditKind, Entry
from clearance.review import Review
from clearance.store import audit, calls, people, reviews
from clearance.store.trailing import Wanted, of_viewer
from clearance.web.pages.telling import decided

MOST = 500
"""Entries that a page reads of a run."""
_WORDS: Mapping[str, str] = {
    AuditKind.RUN_QUEUED: "began the run",
    AuditKind.RUN_RESUMED: "went on with the run",
    AuditKind.RUN_WAITING: "let the run wait",
    AuditKind.RUN_DONE: "ended the run: it is done",
    AuditKind.RUN_FAILED: "ended the run: it failed",
    AuditKind.RUN_CANCELLED: "cancelled the run",
    AuditKind.REVIEW_ASKED: "asked people",
    AuditKind.REVIEW_DECIDED: "decided",
    AuditKind.REVIEW_SETTLED: "settled it",
    AuditKind.REVIEW_EXPIRED: "let the question expire",
    AuditKind.REVIEW_WITHDRAWN: "withdrew the question",
    AuditKind.CLEARANCE_MINTED: "cleared",
    AuditKind.CLEARANCE_USED: "used the clearance of",
    AuditKind.CLEARANCE_VOIDED: "took back the clearance of",
    AuditKind.CALL_HELD: "held",
    AuditKind.CALL_STARTED: "started",
    AuditKind.CALL_EXECUTED: "carried out",
    AuditKind.CALL_FAILED: "failed at",
    AuditKind.CALL_REJECTED: "did not clear",
    AuditKind.CALL_BLOCKED: "blocked",
    AuditKind.CALL_UNCERTAIN: "lost sight of",
}


@dataclass(frozen=True)
class Happening:
    """One thing that happened, or several of a kind by the same one. `said` is a person's comment."""

    at: datetime
    who: str
    is_person: bool
    words: str
    about: tuple[str, ...]
    said: str = ""


def happenings(tx: Connection, run_id: str) -> list[Happening]:
    """Return what happened to a run, in order, the first `MOST` entries of it."""
    wanted = of_viewer(Wanted(run_ids=(run_id,)), asked_by=None)
    entries = audit.read_after(tx, 0, limit=MOST, where=wanted)
    asked = {review.id: review for review in reviews.of_thread(tx, run_id)}
    tools = {row.key: row.tool for row in calls.of_run(tx, run_id)}
    known = people.by_id(tx, sorted({entry.actor for entry in entries}))
    names = {each: person.name for each, person in known.items()}
    grouped = itertools.groupby(entries, key=lambda entry: (entry.kind, entry.actor, _question(entry)))
    return [_happening(list(group), names=names, tools=tools, asked=asked) for _, group in grouped]


def _happening(
    entries: Sequence[Entry],
    *,
    names: Mapping[str, str],
    tools: Mapping[str, str],
    asked: Mapping[str, Review],
) -> Happening:
    first = entries[0]
    review = asked.get(first.subject)
    # A question and a call may have the same id.
    about: Iterable[str] = () if _question(first) else (tools.get(each.subject, "") for each in entries)
    words = _WORDS.get(first.kind, first.kind)
    if first.kind == AuditKind.REVIEW_DECIDED:
        words = decided(first) or words
    return Happening(
        at=first.time,
        who=names.get(first.actor, first.actor),
        is_person=first.actor in names,
        words=words,
        about=tuple(filter(None, about)),
        said="" if review is None or first.kind != AuditKind.REVIEW_DECIDED else _comment(review, first),
    )


def _question(entry: Entry) -> str:
    """Return what keeps entries apart: each question to people is one of its own."""
    return entry.subject if entry.kind.startswith("review:") else ""


def _comment(review: Review, entry: Entry) -> str:
    """Return what the person wrote with the decision that this entry tells of."""
    said = [item for call in review.calls for item in call.decisions if item.by == entry.actor]
    at = [item for item in said if abs((item.at - entry.time).total_seconds()) < 1]
    return next((item.message for item in at or said if item.message), "")
