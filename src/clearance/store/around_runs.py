"""What stands around runs in a list: what each waits for, how long it has waited, and who decided."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Connection, func, literal, select, type_coerce

from clearance.audit import Entry
from clearance.policy import Risk
from clearance.review import ReviewKind, ReviewStatus
from clearance.store import audit
from clearance.store.columns import Instant
from clearance.store.tables import decisions, entries, reviewed_calls, reviews, run_stages

_RISKS = tuple(Risk)


@dataclass(frozen=True)
class Stop:
    """A review that a run waits at. `tools` are those of its calls, in the order of their names."""

    review_id: str
    kind: ReviewKind
    risk: Risk
    asked_at: datetime
    tools: tuple[str, ...]


def stops(tx: Connection, run_ids: Collection[str]) -> dict[str, list[Stop]]:
    """Return the reviews that these runs wait at, the one asked first first."""
    found = tx.execute(
        select(reviews.c.id, reviews.c.run_id, reviews.c.kind, reviews.c.risk, reviews.c.asked_at)
        .where(reviews.c.run_id.in_(run_ids), reviews.c.status == ReviewStatus.PENDING.value)
        .order_by(reviews.c.asked_at, reviews.c.id)
    ).all()
    named = defaultdict(set)
    for row in tx.execute(
        select(reviewed_calls.c.review_id, reviewed_calls.c.tool)
        .where(reviewed_calls.c.review_id.in_([each.id for each in found]))
        .distinct()
    ):
        named[row.review_id].add(row.tool)
    of_runs = defaultdict(list)
    for each in found:
        stop = Stop(
            each.id, ReviewKind(each.kind), _RISKS[each.risk], each.asked_at, tuple(sorted(named[each.id]))
        )
        of_runs[each.run_id].append(stop)
    return dict(of_runs)


def waited(tx: Connection, run_ids: Collection[str], *, now: datetime) -> dict[str, timedelta]:
    """Return how long runs have waited for people, in all; what asked after an outcome stops no run."""
    until = func.coalesce(reviews.c.ended_at, literal(now, Instant))
    span = func.sum(type_coerce(until, BigInteger) - type_coerce(reviews.c.asked_at, BigInteger))
    query = (
        select(reviews.c.run_id, span.label("span"))
        .where(reviews.c.run_id.in_(run_ids), reviews.c.kind != ReviewKind.OUTCOME.value)
        .group_by(reviews.c.run_id)
    )
    return {row.run_id: timedelta(microseconds=int(row.span)) for row in tx.execute(query)}


def deciders(tx: Connection, run_ids: Collection[str]) -> dict[str, list[str]]:
    """Return who decided something of each run, in the order of their ids."""
    query = (
        select(reviews.c.run_id, decisions.c.person)
        .join(decisions, decisions.c.review_id == reviews.c.id)
        .where(reviews.c.run_id.in_(run_ids))
        .distinct()
        .order_by(decisions.c.person)
    )
    found = defaultdict(list)
    for row in tx.execute(query):
        found[row.run_id].append(row.person)
    return dict(found)


def with_stages(tx: Connection, run_ids: Collection[str]) -> set[str]:
    """Return those of the runs that go through stages: the runs of a pipeline."""
    query = select(run_stages.c.run_id).where(run_stages.c.run_id.in_(run_ids)).distinct()
    return set(tx.execute(query).scalars())


def entries_about(tx: Connection, subjects: Sequence[str], *, most: int) -> list[Entry]:
    """Return the first numbered entries about any of these, in order, `most` of them at most."""
    # By the number alone a database would look through the trail for the few that are wanted.
    numbered = select(entries.c.seq).where(entries.c.subject.in_(subjects), entries.c.seq > 0).subquery()
    first = select(numbered.c.seq).order_by(numbered.c.seq + 0).limit(most)
    wanted = list(tx.execute(first).scalars())
    return [] if not wanted else audit.of_numbers(tx, wanted)
