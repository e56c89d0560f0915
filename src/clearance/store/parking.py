"""Rows of the breaker: what agents proposed of late, and which of them are parked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, select

from clearance.store.runs import insert_ignoring, insert_new
from clearance.store.tables import parked_agents, proposals

_PARKED = select(parked_agents).where(parked_agents.c.agent == bindparam("agent"))
_FORGET = delete(proposals).where(proposals.c.agent == bindparam("of"), proposals.c.at <= bindparam("until"))
_COUNT = (
    select(proposals.c.digest, func.count().label("found"))
    .where(proposals.c.agent == bindparam("agent"))
    .group_by(proposals.c.digest)
)


@dataclass(frozen=True)
class Parked:
    """That an agent is parked: why, and since when."""

    agent: str
    reason: str
    at: datetime


def parked(tx: Connection, agent: str) -> Parked | None:
    """Return why an agent is parked; None: it is not."""
    row = tx.execute(_PARKED, {"agent": agent}).mappings().first()
    return None if row is None else Parked(**row)


def every(tx: Connection) -> list[Parked]:
    """Return every agent that is parked, the one parked first first."""
    rows = tx.execute(select(parked_agents).order_by(parked_agents.c.at, parked_agents.c.agent)).mappings()
    return [Parked(**row) for row in rows]


def park(tx: Connection, found: Parked) -> bool:
    """Park an agent; False when it is parked already."""
    values = {"agent": found.agent, "reason": found.reason, "at": found.at}
    return insert_new(tx, parked_agents.c.agent, values)


def release(tx: Connection, agent: str) -> bool:
    """Let an agent go on, as if it had proposed nothing yet; False when it is not parked."""
    tx.execute(delete(proposals).where(proposals.c.agent == agent))
    gone = delete(parked_agents).where(parked_agents.c.agent == agent).returning(parked_agents.c.agent)
    return tx.execute(gone).first() is not None


def forget(tx: Connection, *, until: datetime) -> None:
    """Remove what any agent proposed until then."""
    tx.execute(delete(proposals).where(proposals.c.at <= until))


def some(tx: Connection, *, until: datetime) -> bool:
    """Whether anything is left that was proposed until then."""
    return tx.execute(select(proposals.c.call).where(proposals.c.at <= until).limit(1)).first() is not None


def note(
    tx: Connection, agent: str, digests: Mapping[str, str], *, now: datetime, since: datetime
) -> dict[str, int]:
    """Note calls by their keys, and return how many of each digest the agent proposed after `since`."""
    tx.execute(_FORGET, {"of": agent, "until": since})
    rows = [{"call": key, "agent": agent, "digest": said, "at": now} for key, said in digests.items()]
    if rows:
        tx.execute(insert_ignoring(tx, proposals), rows)
    return {row.digest: row.found for row in tx.execute(_COUNT, {"agent": agent})}
