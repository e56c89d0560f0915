"""Health: what is wrong with a workspace, or waits for somebody, and what to do about each."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection

from clearance.outcome import CallState
from clearance.review import ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store import audit, callbacks, calls, deliveries, people, reviews, runs
from clearance.store.database import Database

SLOW = timedelta(minutes=1)
"""A thread that wants a segment for longer than this is stuck, or has no worker."""
SHOWN = 20
_ANSWERED = "It was answered that it did not happen; a worker runs it again: clearance worker"


class Level(StrEnum):
    """`fault`: it does not work as it must; `attention`: somebody has to look; `good`."""

    GOOD = "good"
    ATTENTION = "attention"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, what was found, and what to do where it is not good."""

    level: Level
    what: str
    advice: str = ""


def check_up(database: Database, *, key: Path, anyone_works: bool) -> list[Finding]:
    """Look at a workspace; the worst come first. Raises `StoreError` when the database cannot be read.

    `anyone_works` says whether a living process advances its threads.
    """
    with database.read() as tx:
        found = [finding for look in _LOOKS for finding in look(tx, database)]
        found += _threads(tx, database, anyone_works=anyone_works)
    found += _key(key)
    order = (Level.FAULT, Level.ATTENTION, Level.GOOD)
    return sorted(found, key=lambda finding: order.index(finding.level))


def _threads(tx: Connection, database: Database, *, anyone_works: bool) -> Iterator[Finding]:
    late = database.now(tx) - SLOW
    states = (RunState.QUEUED,) if anyone_works else (RunState.QUEUED, RunState.RUNNING)
    stuck = [(run, since) for run, since in runs.wanting(tx, states=states) if since < late]
    for run, since in stuck[:SHOWN]:
        yield Finding(
            Level.FAULT,
            f"run {run.id} waits for a worker since {since:%Y-%m-%d %H:%M} UTC",
            f"Start a worker that knows the program {run.program}: clearance worker",
        )
    if len(stuck) > SHOWN:
        yield Finding(Level.FAULT, f"{len(stuck) - SHOWN} more runs wait for a worker", "clearance runs")
    if not stuck:
        yield Finding(Level.GOOD, "no run waits for a worker")


def _uncertain(tx: Connection, _: Database) -> Iterator[Finding]:
    rows = calls.in_state(tx, CallState.UNCERTAIN, limit=SHOWN)
    for row in rows:
        asked = reviews.of_call(tx, row.key, kind=ReviewKind.OUTCOME)
        waiting = [review.id for review in asked if review.status is ReviewStatus.PENDING]
        advice = f"Find out, then answer: clearance show {waiting[-1]}" if waiting else _ANSWERED
        yield Finding(
            Level.ATTENTION,
            f"call {row.key} ({row.tool}) is uncertain: it may or may not have happened",
            advice,
        )
    if not rows:
        yield Finding(Level.GOOD, "no call is uncertain")


def _started(tx: Connection, database: Database) -> Iterator[Finding]:
    now = database.now(tx)
    for row in calls.in_state(tx, CallState.STARTED, limit=SHOWN):
        if row.due_at is not None and row.due_at < now:
            yield Finding(
                Level.ATTENTION,
                f"call {row.key} ({row.tool}) was started and has passed its time limit",
                "A worker calls it uncertain when it takes up the thread: clearance worker",
            )


def _reviews(tx: Connection, database: Database) -> Iterator[Finding]:
    waiting = reviews.waiting_count(tx)
    if waiting:
        wait = "1 review waits" if waiting == 1 else f"{waiting} reviews wait"
        yield Finding(Level.GOOD, f"{wait} for people: clearance inbox")
    overdue = reviews.due(tx, now=database.now(tx) - SLOW, limit=SHOWN)
    if overdue:
        more = "" if len(overdue) == 1 else f" (and {len(overdue) - 1} more)"
        yield Finding(
            Level.FAULT,
            f"review {overdue[0][0]}{more} has passed its deadline and was not closed; nothing of it can run",
            "Start a worker: clearance worker",
        )


def _trail(tx: Connection, database: Database) -> Iterator[Finding]:
    standing = audit.standing(tx)
    if standing.waiting and standing.sealed_at is not None and database.now(tx) - standing.sealed_at > SLOW:
        yield Finding(
            Level.ATTENTION,
            f"entries of the trail are not sealed since {standing.sealed_at:%Y-%m-%d %H:%M} UTC",
            "A worker seals them: clearance worker",
        )
        return
    yield Finding(Level.GOOD, f"the trail has {standing.last_seq} entries, sealed to {standing.sealed_to}")


def _callbacks(tx: Connection, _: Database) -> Iterator[Finding]:
    for callback in callbacks.given_up(tx, limit=SHOWN):
        yield Finding(
            Level.ATTENTION,
            f"the webhook of {callback.run_id} did not arrive in {callback.tries} tries: {callback.error}",
            "The call itself is untouched; its agent can ask how it stands.",
        )


def _notices(tx: Connection, _: Database) -> Iterator[Finding]:
    count = deliveries.undelivered(tx)
    if count:
        messages = "1 message" if count == 1 else f"{count} messages"
        yield Finding(
            Level.ATTENTION,
            f"{messages} to people could not be sent, however often they were tried",
            "See why: clearance channels deliveries --undelivered",
        )


def _people(tx: Connection, _: Database) -> Iterator[Finding]:
    yield Finding(Level.GOOD, f"people: {people.mode(tx)} mode")


def _key(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(Level.GOOD, "the notary's key is made when a worker first starts")
    elif stat.S_IMODE(path.stat().st_mode) & 0o077:
        # What everybody may read is refused when the workspace is opened.
        what = f"members of its group may read the notary's key {path}"
        yield Finding(Level.ATTENTION, what, f"Run: chmod 600 {path}")
    else:
        yield Finding(Level.GOOD, "the notary's key is there, and readable by its owner only")


_LOOKS: tuple[Callable[[Connection, Database], Iterator[Finding]], ...] = (
    _uncertain,
    _started,
    _reviews,
    _trail,
    _callbacks,
    _notices,
    _people,
)
