"""Lists: reviews that wait, reviews that have ended, and runs, a page at a time and by filters."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Text,
    and_,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
    union_all,
)

from clearance.policy import Risk
from clearance.review import Review, ReviewStatus
from clearance.run import RunState
from clearance.store.columns import Instant
from clearance.store.pages import LOOK_AT, SEARCHED, Page, page
from clearance.store.reviews import by_id
from clearance.store.tables import decisions, reviewed_calls, reviews, runs

_RISKS = tuple(Risk)
_OF_A_THREAD = 1000
"""The newest reviews or runs of one thread that its lists show."""


@dataclass(frozen=True)
class ReviewFilter:
    """Which reviews are wanted; None is: whatever it is. `tool` is one that a call of the review names.

    `agent` is who asked or the program that it was asked in; each of `words` is in the id, who asked, or a
    call's tool, arguments, rules or summaries; `undecided_by` is a person who has said nothing yet.
    `asked_by` are those whose requests may be seen.
    """

    risk: Risk | None = None
    program: str | None = None
    requester: str | None = None
    asked_by: Collection[str] | None = None
    thread_id: str | None = None
    run_id: str | None = None
    tool: str | None = None
    agent: str | None = None
    words: tuple[str, ...] = ()
    undecided_by: str | None = None


@dataclass(frozen=True)
class RunFilter:
    """Which runs are wanted; None is: whatever it is."""

    program: str | None = None
    requester: str | None = None
    asked_by: Collection[str] | None = None
    thread_id: str | None = None


Waiting = tuple[int, datetime | None, datetime, str]
"""The place of a review that waits: its risk, its deadline, when it was asked, its id."""
Dated = tuple[datetime, str]
"""The place of what is listed by time: the instant and the id."""


def waiting_reviews(
    tx: Connection, wanted: ReviewFilter, *, after: Waiting | None, limit: int
) -> Page[Waiting]:
    """Return reviews that wait: the highest risk first, then the earliest deadline, then the one asked first.

    Without a deadline a review stands behind those of its risk that have one.
    """
    source = _reviews_of(wanted)
    levels = range(len(_RISKS)) if wanted.risk is None else (_RISKS.index(wanted.risk),)
    fits = _review_fits(source, wanted, sqlite=tx.dialect.name == "sqlite")
    narrowed = replace(wanted, risk=None) != ReviewFilter()
    listed = select(source.c.id, source.c.risk, source.c.deadline, source.c.asked_at).where(
        # In the statement itself: only then both databases see that their index fits.
        source.c.status == literal(ReviewStatus.PENDING.value, literal_execute=True)
    )

    def fetch(place: Waiting | None, size: int) -> Sequence[Row[Any]]:
        parts = [
            part.limit(size)
            for level in levels
            if place is None or level <= place[0]
            for part in _level(listed.where(source.c.risk == level), source, place, level=level)
        ]
        if not parts:
            return []
        first = _first_of(parts, _most_urgent_first, size=size).subquery()
        # Whether a row fits is asked of those that are looked at, not of all that might come first.
        asked = select(fits).select_from(source).where(source.c.id == first.c.id).scalar_subquery()
        query = select(first, (asked if narrowed else true()).label("fits"))
        return tx.execute(query.order_by(*_most_urgent_first(first.c))).all()

    def place_of(row: Row[Any]) -> Waiting:
        return row.risk, row.deadline, row.asked_at, row.id

    return page(fetch, place_of, after=after, limit=limit, look_at=_look_at(wanted))


def inbox(tx: Connection, *, limit: int = 50) -> list[Review]:
    """Return the reviews that wait, in the order of `waiting_reviews`."""
    return by_id(tx, waiting_reviews(tx, ReviewFilter(), after=None, limit=limit).ids)


def _level(
    listed: Select[Any], source: FromClause, place: Waiting | None, *, level: int
) -> list[Select[Any]]:
    """Return the lists of one risk, each in the order of its index: those with a deadline, those without."""
    due, asked = source.c.deadline, (source.c.asked_at, source.c.id)
    dated, dateless = listed.where(due.is_not(None)), listed.where(due.is_(None))
    # By the deadline too where there is none: only so PostgreSQL sees that its index is in this order.
    parts = [part.order_by(due, *asked) for part in (dated, dateless)]
    if place is None or level < place[0]:
        return parts
    _, deadline, asked_at, review_id = place
    if deadline is None:
        return [parts[1].where(tuple_(*asked) > _bound((asked_at, review_id)))]
    bound = tuple_(literal(deadline, Instant), literal(asked_at, Instant), literal(review_id))
    return [parts[0].where(tuple_(due, *asked) > bound), parts[1]]


def _most_urgent_first(columns: Any) -> tuple[Any, ...]:
    return columns.risk.desc(), columns.deadline.is_(None), columns.deadline, columns.asked_at, columns.id


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
    sqlite = tx.dialect.name == "sqlite"
    fits = and_(_review_fits(source, wanted, sqlite=sqlite), risk, ways).label("fits")

    def fetch(place: Dated | None, size: int) -> Sequence[Row[Any]]:
        query = select(source.c.id, source.c.ended_at, fits).where(source.c.ended_at.is_not(None))
        if place is not None:
            query = query.where(tuple_(source.c.ended_at, source.c.id) < _bound(place))
        return tx.execute(query.order_by(source.c.ended_at.desc(), source.c.id.desc()).limit(size)).all()

    look_at = _look_at(wanted)
    return page(fetch, lambda row: (row.ended_at, row.id), after=after, limit=limit, look_at=look_at)


def newest_runs(
    tx: Connection, wanted: RunFilter, *, states: Sequence[RunState], after: Dated | None, limit: int
) -> Page[Dated]:
    """Return the ids of runs in these states, the newest first; without states, in any."""
    source: FromClause = runs
    if wanted.thread_id is not None:
        source = _of_thread(runs, wanted.thread_id, runs.c.created_at)
    fits = _fits(source, program=wanted.program, requester=wanted.requester, asked_by=wanted.asked_by).label(
        "fits"
    )

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
        newest = _first_of(parts, lambda c: (c.created_at.desc(), c.id.desc()), size=size)
        return tx.execute(newest).all()

    return page(fetch, lambda row: (row.created_at, row.id), after=after, limit=limit)


def _look_at(wanted: ReviewFilter) -> int:
    return SEARCHED if wanted.words else LOOK_AT


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


def _review_fits(source: FromClause, wanted: ReviewFilter, *, sqlite: bool) -> ColumnElement[bool]:
    found = [_fits(source, program=None, requester=wanted.requester, asked_by=wanted.asked_by)]
    if wanted.thread_id is not None:
        found.append(source.c.thread_id == wanted.thread_id)
    if wanted.program is not None:
        found.append(_in_program(source, wanted.program))
    if wanted.agent is not None:
        found.append(or_(source.c.requester == wanted.agent, _in_program(source, wanted.agent)))
    if wanted.tool is not None:
        named = or_(reviewed_calls.c.tool == wanted.tool, reviewed_calls.c.proposed_tool == wanted.tool)
        found.append(exists().where(reviewed_calls.c.review_id == source.c.id, named))
    found += [_has_word(source, word, sqlite=sqlite) for word in wanted.words]
    if wanted.undecided_by is not None:
        found.append(~_decided_by(source, wanted.undecided_by))
    return and_(true(), *found)


def _in_program(source: FromClause, program: str) -> ColumnElement[bool]:
    return exists().where(runs.c.id == source.c.run_id, runs.c.program == program)


def _has_word(source: FromClause, word: str, *, sqlite: bool) -> ColumnElement[bool]:
    """Whether the word stands in what may be shown of a review; whether this person sees it is not asked."""
    columns, keys = reviewed_calls.c, ("rules", "summaries")
    verdict = type_coerce(columns.verdict, Text)
    told = (
        [func.json_extract(verdict, f"$.{key}") for key in keys]
        if sqlite
        else [cast(cast(verdict, JSON)[key], Text) for key in keys]
    )
    places = (columns.tool, columns.proposed_tool, columns.arguments, *told)
    in_a_call = or_(*(place.icontains(word, autoescape=True) for place in places))
    return or_(
        source.c.id.icontains(word, autoescape=True),
        source.c.requester.icontains(word, autoescape=True),
        exists().where(columns.review_id == source.c.id, in_a_call),
    )


def _decided_by(source: FromClause, person: str) -> ColumnElement[bool]:
    """Whether the person has said something to a call of the review as it now stands."""
    said = (decisions.c.review_id == source.c.id, decisions.c.person == person)
    as_it_stands = (
        reviewed_calls.c.review_id == source.c.id,
        reviewed_calls.c.key == decisions.c.key,
        reviewed_calls.c.revision == decisions.c.revision,
    )
    return exists().where(*said, *as_it_stands)


def _fits(
    source: FromClause, *, program: str | None, requester: str | None, asked_by: Collection[str] | None
) -> ColumnElement[bool]:
    found = [] if requester is None else [source.c.requester == requester]
    if asked_by is not None:
        found.append(source.c.requester.in_(sorted(asked_by)))
    if program is not None:
        found.append(source.c.program == program)
    return and_(true(), *found)


def _bound(place: Dated) -> ColumnElement[Any]:
    """Return a place as the databases compare it, with instants in the form in which they are kept."""
    instant, name = place
    return tuple_(literal(instant, Instant), literal(name))


def _first_of(parts: Sequence[Select[Any]], order: Any, *, size: int) -> Select[Any]:
    """Return the first rows of several sorted lists, taken together."""
    whole = union_all(*(select(part.subquery()) for part in parts)).subquery()
    return select(whole).order_by(*order(whole.c)).limit(size)
