"""Rows of conversations: threads that people and agents write in, with their first message and newest run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, literal, or_, select, true, union_all

from clearance.run import AGENT, Run, RunState
from clearance.store import runs as run_rows
from clearance.store import secret_parts
from clearance.store.columns import Instant
from clearance.store.listing import Dated
from clearance.store.pages import Page, page
from clearance.store.runs import BELOW
from clearance.store.tables import runs, threads


@dataclass(frozen=True)
class Conversation:
    """A thread that has begun. `first` is what was said in it first, as it is shown: secrets are masked."""

    id: str
    program: str
    created_at: datetime
    first: str | None
    newest: Run


def list_conversations(
    tx: Connection,
    *,
    thread_id: str | None = None,
    asked_by: Collection[str] | None = None,
    program: str | None = None,
    without: Collection[str] = (),
    states: Collection[RunState] | None = None,
    limit: int,
    offset: int = 0,
) -> list[Conversation]:
    """Return conversations, those begun last first.

    `asked_by`: only threads in which these alone asked for anything. `states`: only those whose newest
    run is in one of them. `without` names programs that are none.
    """
    one = runs.alias()
    of_thread = select(one).where(one.c.thread_id == threads.c.id).correlate(threads).limit(1)
    newest = of_thread.with_only_columns(one.c.id).order_by(one.c.created_at.desc(), one.c.id)
    first = of_thread.with_only_columns(one.c.id).order_by(one.c.created_at, one.c.id)
    query = (
        select(threads.c.id, threads.c.program, threads.c.created_at, first.scalar_subquery(), runs.c.id)
        .select_from(threads)
        .join(runs, runs.c.id == newest.scalar_subquery())
        .where(_is_one(without))
        .order_by(threads.c.created_at.desc(), threads.c.id)
        .limit(limit)
        .offset(offset)
    )
    if thread_id is not None:
        query = query.where(threads.c.id == thread_id)
    if program is not None:
        query = query.where(threads.c.program == program)
    if states is not None:
        query = query.where(runs.c.state.in_([state.value for state in states]))
    if asked_by is not None:
        query = query.where(
            ~exists().where(one.c.thread_id == threads.c.id, one.c.requester.not_in(sorted(asked_by)))
        )
    rows = tx.execute(query).all()
    newest_runs = run_rows.by_id(tx, [row[4] for row in rows])
    return _conversations(tx, [(row, newest_runs[row[4]]) for row in rows])


def latest_conversations(
    tx: Connection,
    *,
    with_person: str | None,
    asked_by: Collection[str] | None = None,
    without: Collection[str] = (),
    after: Dated | None,
    limit: int,
) -> tuple[list[Conversation], Dated | None]:
    """Return conversations, the one that was written in last first, and the place of the next page.

    `with_person`: only those in which that one asked for anything. `asked_by` and `without` as in
    `list_conversations`.
    """
    found = _latest(tx, with_person=with_person, asked_by=asked_by, without=without, after=after, limit=limit)
    newest = run_rows.by_id(tx, found.ids)
    first = select(runs.c.id).where(runs.c.thread_id == threads.c.id).correlate(threads)
    begin = first.order_by(runs.c.created_at, runs.c.id).limit(1).scalar_subquery()
    query = select(threads.c.id, threads.c.program, threads.c.created_at, begin)
    wanted = [newest[each] for each in found.ids]
    rows = tx.execute(query.where(threads.c.id.in_([each.thread_id for each in wanted])))
    by_thread = {row[0]: row for row in rows}
    return _conversations(tx, [(by_thread[each.thread_id], each) for each in wanted]), found.after


def _conversations(tx: Connection, found: Sequence[tuple[Sequence[Any], Run]]) -> list[Conversation]:
    """Return conversations of rows (thread, program, when it began, its first run) and their newest runs."""
    begun = run_rows.by_id(tx, [row[3] for row, _ in found])
    said = {run.id: run.input for run in secret_parts.veiled(tx, list(begun.values()))}
    return [Conversation(row[0], row[1], row[2], said[row[3]], newest) for row, newest in found]


def _latest(
    tx: Connection,
    *,
    with_person: str | None,
    asked_by: Collection[str] | None,
    without: Collection[str],
    after: Dated | None,
    limit: int,
) -> Page[Dated]:
    """Return the newest runs of conversations: each stands for its thread."""
    one = runs.alias()
    same = one.c.thread_id == runs.c.thread_id
    later = or_(
        one.c.created_at > runs.c.created_at,
        and_(one.c.created_at == runs.c.created_at, one.c.id < runs.c.id),
    )
    theirs: ColumnElement[bool] = true()
    if with_person is not None:
        theirs = exists().where(same, one.c.requester == with_person)
    if asked_by is not None:
        theirs = and_(theirs, ~exists().where(same, one.c.requester.not_in(sorted(asked_by))))
    of_one = exists().where(threads.c.id == runs.c.thread_id, _is_one(without))
    fits = and_(~exists().where(same, later), theirs, of_one).label("fits")

    def fetch(place: Dated | None, size: int) -> Sequence[Row[Any]]:
        # One state after the other, because that is how the index has them.
        parts = [
            select(runs.c.id, runs.c.created_at, fits)
            .where(runs.c.state == state.value, _before(place))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(size)
            for state in RunState
        ]
        every = union_all(*(select(part.subquery()) for part in parts)).subquery()
        return tx.execute(
            select(every).order_by(every.c.created_at.desc(), every.c.id.desc()).limit(size)
        ).all()

    return page(fetch, lambda row: (row.created_at, row.id), after=after, limit=limit)


def _before(place: Dated | None) -> ColumnElement[bool]:
    if place is None:
        return true()
    instant = literal(place[0], Instant)
    return and_(runs.c.created_at <= instant, or_(runs.c.created_at < instant, runs.c.id < place[1]))


def _is_one(without: Collection[str]) -> ColumnElement[bool]:
    """Whether a thread is a conversation."""
    return and_(
        threads.c.caller_driven.is_(False),
        ~threads.c.program.startswith(AGENT, autoescape=True),
        ~threads.c.id.contains(BELOW, autoescape=True),
        threads.c.program.not_in(list(without)),
    )
