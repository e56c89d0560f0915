"""Who sees which entries of the trail: those about what somebody asked for, and those about one run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, exists, or_, select

from clearance.store.tables import calls, entries, reviews, runs


@dataclass(frozen=True)
class Wanted:
    """Entries of these families (`review`, `run`), and all about these runs; with neither, every entry."""

    families: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()


def of_viewer(wanted: Wanted, *, asked_by: Collection[str] | None) -> Sequence[ColumnElement[bool]]:
    """Return the conditions for what is wanted, and for what these asked for; None: everybody."""
    found = []
    parts = [_family(each) for each in wanted.families] + [_of_run(each) for each in wanted.run_ids]
    if parts:
        found.append(or_(*parts))
    if asked_by is not None:
        found.append(_asked_by(asked_by))
    return found


def by_actor(actor: str) -> ColumnElement[bool]:
    """Return the condition for the entries about what somebody did."""
    return entries.c.actor == actor


def _family(name: str) -> ColumnElement[bool]:
    return entries.c.kind.startswith(f"{name}:")


def _of_run(run_id: str) -> ColumnElement[bool]:
    return or_(
        and_(_family("run"), entries.c.subject == run_id),
        and_(
            _family("review"), entries.c.subject.in_(select(reviews.c.id).where(reviews.c.run_id == run_id))
        ),
        and_(_of_calls(), entries.c.subject.in_(select(calls.c.key).where(calls.c.run_id == run_id))),
    )


def _asked_by(people: Collection[str]) -> ColumnElement[bool]:
    names = sorted(people)
    # By the primary key of each entry's subject: a look costs the same however much somebody has asked for.
    own_run = exists().where(runs.c.id == entries.c.subject, runs.c.requester.in_(names))
    own_review = exists().where(reviews.c.id == entries.c.subject, reviews.c.requester.in_(names))
    own_call = exists().where(
        calls.c.key == entries.c.subject, runs.c.id == calls.c.run_id, runs.c.requester.in_(names)
    )
    return or_(
        and_(_family("run"), own_run), and_(_family("review"), own_review), and_(_of_calls(), own_call)
    )


def _of_calls() -> ColumnElement[bool]:
    return or_(_family("call"), _family("clearance"))
