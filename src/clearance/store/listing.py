"""Lists: reviews that wait, reviews that have ended, and runs, a page at a time and by filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    exists,
    literal,
    or_,
    select,
    true,
    tuple_,
    union_all,
)

from clearance.policy import Risk
from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store.columns import Instant
from clearance.store.pages import Page, page
from clearance.store.tables import reviewed_calls, reviews, runs

_RISKS = tuple(Risk)
_OF_A_THREAD = 1000
"""The newest reviews or runs of one thread that its lists show."""


@dataclass(frozen=True)
class ReviewFilter:
    """Which reviews are wanted; None is: whatever it is. `tool` is one that a call of the review names."""

    risk: Risk | None = None
    program: str | None = None
    requester: str | None = None
    asked_by: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    tool: str | None = None


@dataclass(frozen=True)
class RunFilter:
    """Which runs are wanted; None is: whatever it is."""

    program: str | None = None
    requester: str | None = None
    asked_by: str | None = None
    thread_id: str | None = None


Waiting = tuple[int, datetime, str]
"""The place of a review that waits: its risk, when it was asked, its id."""
Dated = tuple[datetime, str]
"""The place of what is listed by time: the instant and the id."""


def waiting_reviews(
    tx: Connection, wanted: ReviewFilter, *, after: Waiting | None, limit: int
) -> Page[Waiting]:
    """Return reviews that wait: the highest risk first, then the one asked first."""
    source = _reviews_of(wanted)
    levels = range(len(_RISKS)) if wanted.risk is None else (_RISKS.index(wanted.risk),)
    fits = _review_fits(source, wanted).label("fits")

    def fetch(place: Waiting | None, size: int) -> Sequence[Row[Any]]:
        parts = []
        for level in levels:
            if place is not None and level > place[0]:
                continue
            part = select(source.c.id, source.c.risk, source.c.asked_at, fits).where(
                # In the statement itself: only then both databases see that their index fits.
                source.c.status == literal(ReviewStatus.PENDING.value, literal_execute=True),
                source.c.risk == level,
            )
            if place is not None and level == place[0]:
                part = part.where(tuple_(source.c.asked_at, source.c.id) > _bound(place[1:]))
            parts.append(part.order_by(source.c.asked_at, source.c.id).limit(size))
        return _merged(tx, parts, lambda c: (c.risk.desc(), c.asked_at, c.id), size=size)

    return page(fetch, lambda row: (row.risk, row.asked_at, row.id), after=after, limit=limit)


def ended_reviews(
    tx: Connection,
    wanted: ReviewFilter,
    *,
    statuses: Sequence[ReviewStatus],
    after: Dated | None,
    limit: int,
) -> Page[Dated]:
    """Return reviews that have ended in one of these ways, the one that ended last first."""
    source = _reviews_of(wanted)
    risk = true() if wanted.risk is None else source.c.risk == _RISKS.index(wanted.risk)
    ways = source.c.status.in_([status.value for status in statuses])
    fits = and_(_review_fits(source, wanted), risk, ways).label("fits")

    def fetch(place: Dated | None, size: int) -> Sequence[Row[Any]]:
        query = select(source.c.id, source.c.ended_at, fits).where(source.c.ended_at.is_not(None))
        if place is not None:
            query = query.where(tuple_(source.c.ended_at, source.c.id) < _bound(place))
        return tx.execute(query.order_by(source.c.ended_at.desc(), source.c.id.desc()).limit(size)).all()

    return page(fetch, lambda row: (row.ended_at, row.id), after=after, limit=limit)


def newest_runs(
    tx: Connection, wanted: RunFilter, *, states: Sequence[RunState], after: Dated | None, limit: int
) -> Page[Dated]:
    """Return the ids of runs in these states, the newest first; without states, in any."""
    source: FromClause = runs
    if wanted.thread_id is not None:
        source = _of_thread(runs, wanted.thread_id, runs.c.created_at)
    fits = _fits(source, program=wanted.program, requester=(wanted.requester, wanted.asked_by)).label("fits")

    def fetch(place: Dated | None, size: int) -> Sequence[Row[Any]]:
        parts = []
        for state in states or tuple(RunState):
            part = select(source.c.id, source.c.created_at, fits).where(source.c.state == state.value)
            if place is not None:
                instant, run_id = place
                part = part.where(
                    source.c.created_at <= instant,
                    or_(source.c.created_at < instant, source.c.id < run_id),
                )
            parts.append(part.order_by(source.c.created_at.desc(), source.c.id.desc()).limit(size))
        return _merged(tx, parts, lambda c: (c.created_at.desc(), c.id.desc()), size=size)

    return page(fetch, lambda row: (row.created_at, row.id), after=after, limit=limit)


def _reviews_of(wanted: ReviewFilter) -> FromClause:
    """Return where to look: the reviews of one thread or run, which are few, or all of them."""
    if wanted.run_id is not None:
        query = select(reviews).where(reviews.c.run_id == wanted.run_id)
        return query.order_by(reviews.c.message.desc()).limit(_OF_A_THREAD).subquery()
    if wanted.thread_id is not None:
        return _of_thread(reviews, wanted.thread_id, reviews.c.asked_at)
    return reviews


def _of_thread(table: Any, thread_id: str, newest: ColumnElement[Any]) -> FromClause:
    # The limit also keeps the databases from looking through the whole list instead.
    query = select(table).where(table.c.thread_id == thread_id)
    found: FromClause = query.order_by(newest.desc()).limit(_OF_A_THREAD).subquery()
    return found


def _review_fits(source: FromClause, wanted: ReviewFilter) -> ColumnElement[bool]:
    found = [_fits(source, program=None, requester=(wanted.requester, wanted.asked_by))]
    if wanted.thread_id is not None:
        found.append(source.c.thread_id == wanted.thread_id)
    if wanted.program is not None:
        found.append(exists().where(runs.c.id == source.c.run_id, runs.c.program == wanted.program))
    if wanted.tool is not None:
        named = or_(reviewed_calls.c.tool == wanted.tool, reviewed_calls.c.proposed_tool == wanted.tool)
        found.append(exists().where(reviewed_calls.c.review_id == source.c.id, named))
    return and_(true(), *found)


def _fits(
    source: FromClause, *, program: str | None, requester: tuple[str | None, ...]
) -> ColumnElement[bool]:
    found = [source.c.requester == each for each in requester if each is not None]
    if program is not None:
        found.append(source.c.program == program)
    return and_(true(), *found)


def _bound(place: Dated) -> ColumnElement[Any]:
    """Return a place as the databases compare it, with instants in the form in which they are kept."""
    instant, name = place
    return tuple_(literal(instant, Instant), literal(name))


def _merged(tx: Connection, parts: Sequence[Select[Any]], order: Any, *, size: int) -> Sequence[Row[Any]]:
    """Return the first rows of several sorted lists, taken together."""
    if not parts:
        return []
    whole = union_all(*(select(part.subquery()) for part in parts)).subquery()
    return tx.execute(select(whole).order_by(*order(whole.c)).limit(size)).all()
