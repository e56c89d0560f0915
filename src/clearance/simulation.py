"""Simulation: what a policy would have said about the calls that are stored, beside what holds today."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from clearance.expression import Origin
from clearance.policy import Effect, Policy, Verdict, judge
from clearance.schema import with_defaults
from clearance.store import policies
from clearance.store.origins import origin
from clearance.store.tables import calls, runs
from clearance.toolcall import parse_arguments


@dataclass(frozen=True)
class Counts:
    """What one policy says about the stored calls: how many it would treat how, and how many each rule names.

    `faults` counts the calls for which a condition gave no answer here, and which are held for that.
    """

    calls: int
    effects: dict[Effect, int]
    rules: dict[str, int]
    faults: int


@dataclass(frozen=True)
class Change:
    """How many calls of a tool would be treated in another way."""

    tool: str
    today: Effect
    then: Effect
    calls: int


@dataclass(frozen=True)
class Simulation:
    """The same calls under today's policy and under another one, and where the two differ."""

    today: Counts
    then: Counts
    changes: tuple[Change, ...]


def simulate(tx: Connection, program: str, *, today: Policy, then: Policy, since: datetime) -> Simulation:
    """Judge a program's calls of runs that began at `since` or later, as they stand, by both policies.

    People and their groups are those of now. Nothing is changed.
    """
    pairs: list[tuple[str, Verdict, Verdict]] = []
    schemas = policies.offered(tx, program)
    query = (
        select(calls.c.tool, calls.c.arguments, calls.c.run_id)
        .join(runs, runs.c.id == calls.c.run_id)
        .where(runs.c.program == program, runs.c.created_at >= since, runs.c.redacted_at.is_(None))
        .order_by(runs.c.created_at, calls.c.key)
    )
    origins: dict[tuple[str, str], Origin | None] = {}

    def verdict(policy: Policy, tool: str, arguments: str, run_id: str) -> Verdict:
        key = (policy.version, run_id)
        if key not in origins:
            origins[key] = origin(tx, policy, run_id=run_id)
        given = with_defaults(schemas.get(tool, {}), parse_arguments(arguments))
        return judge(policy, tool, arguments=given, origin=origins[key])

    for row in tx.execute(query).all():
        found = (verdict(policy, row.tool, row.arguments, row.run_id) for policy in (today, then))
        pairs.append((row.tool, *found))
    return Simulation(
        today=_counts(before for _, before, _ in pairs),
        then=_counts(after for _, _, after in pairs),
        changes=tuple(_changes(pairs)),
    )


def _counts(verdicts: Iterable[Verdict]) -> Counts:
    found = list(verdicts)
    effects = Counter(verdict.effect for verdict in found)
    rules = Counter(rule for verdict in found for rule in set(verdict.rules))
    return Counts(
        calls=len(found),
        effects={effect: effects[effect] for effect in Effect},
        rules=dict(sorted(rules.items())),
        faults=sum(bool(verdict.faults) for verdict in found),
    )


def _changes(pairs: Iterable[tuple[str, Verdict, Verdict]]) -> Iterator[Change]:
    differing = Counter(
        (tool, before.effect, after.effect) for tool, before, after in pairs if before.effect != after.effect
    )
    for (tool, before, after), count in sorted(differing.items()):
        yield Change(tool, before, after, count)
