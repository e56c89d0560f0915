"""Counts of what is open: read by indexes of the open rows alone, whatever has ended."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, literal, select

from clearance.outcome import CallState
from clearance.policy import Risk
from clearance.review import ReviewStatus
from clearance.run import RunState
from clearance.store.tables import calls, reviews, runs

_RISKS = tuple(Risk)
_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
# In the statements themselves: only then both databases see that their partial indexes fit.
_PENDING = literal(ReviewStatus.PENDING.value, literal_execute=True)
_UNCERTAIN = literal(CallState.UNCERTAIN.value, literal_execute=True)


@dataclass(frozen=True)
class Counts:
    """How much is open, each kind with its zeros."""

    reviews_waiting: tuple[tuple[str, int], ...]
    runs_open: tuple[tuple[str, int], ...]
    calls_uncertain: int


def counts(tx: Connection) -> Counts:
    """Return how much is open now."""
    waiting = (
        select(reviews.c.risk, func.count()).where(reviews.c.status == _PENDING).group_by(reviews.c.risk)
    )
    by_risk = {row[0]: row[1] for row in tx.execute(waiting)}
    states = [state.value for state in _STATES]
    open_runs = select(runs.c.state, func.count()).where(runs.c.state.in_(states)).group_by(runs.c.state)
    by_state = {row[0]: row[1] for row in tx.execute(open_runs)}
    uncertain = select(func.count()).select_from(calls).where(calls.c.state == _UNCERTAIN)
    return Counts(
        reviews_waiting=tuple((risk.value, by_risk.get(place, 0)) for place, risk in enumerate(_RISKS)),
        runs_open=tuple((state, by_state.get(state, 0)) for state in states),
        calls_uncertain=tx.execute(uncertain).scalar_one(),
    )
