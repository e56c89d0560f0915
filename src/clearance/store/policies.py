"""Rows of policies and of the tools that they speak about, one active policy a program."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from clearance.audit import AuditKind
from clearance.policy import Policy, Predicate
from clearance.policy_json import policy_from_json
from clearance.schema import schema_hash
from clearance.store.runs import insert_ignoring, insert_new
from clearance.store.tables import entries, policies, schemas, tools
from clearance.toolcall import Tool

# Made once: see `store.runs`.
_ACTIVE_VERSION = (
    select(policies.c.version)
    .where(policies.c.program == bindparam("of"))
    .order_by(policies.c.number.desc())
    .limit(1)
)
_DESCRIPTIONS = select(tools.c.name, tools.c.description).where(tools.c.program == bindparam("of"))
_SCHEMA = select(schemas.c.schema).where(schemas.c.hash == bindparam("of"))


class Source(StrEnum):
    """Who made a policy the active one: the program's own code, or a person with a file."""

    CODE = "code"
    APPLIED = "applied"


@dataclass(frozen=True)
class Activation:
    """One line of a program's history of policies. `text` is the file's, of one that was applied."""

    number: int
    version: str
    source: Source
    active_since: datetime
    policy: Mapping[str, Any]
    text: str | None


def activate(
    tx: Connection,
    program: str,
    policy: Policy,
    *,
    now: datetime,
    source: Source = Source.CODE,
    text: str | None = None,
) -> bool:
    """Make a policy the program's active one; False when it is already."""
    _one_at_a_time(tx)
    last = latest(tx, program)
    if last is not None and (last.version, last.source) == (policy.version, source):
        return False
    number = tx.execute(
        select(func.coalesce(func.max(policies.c.number), 0)).where(policies.c.program == program)
    ).scalar_one()
    tx.execute(
        insert(policies).values(
            program=program,
            number=number + 1,
            version=policy.version,
            policy=policy.to_json(),
            active_since=now,
            source=source.value,
            text=text,
        )
    )
    return True


def history(tx: Connection, program: str, *, limit: int | None = None) -> list[Activation]:
    """Return which policies were active in a program, the newest first."""
    query = select(policies).where(policies.c.program == program).order_by(policies.c.number.desc())
    return [
        Activation(row.number, row.version, Source(row.source), row.active_since, row.policy, row.text)
        for row in tx.execute(query.limit(limit))
    ]


def activated_by(tx: Connection, program: str) -> dict[datetime, str]:
    """Return who made the policies of a program the active ones, by the instants at which they did."""
    query = select(entries.c.time, entries.c.actor).where(
        entries.c.kind == AuditKind.POLICY_ACTIVATED.value, entries.c.subject == program
    )
    return {row.time: row.actor for row in tx.execute(query)}


def latest(tx: Connection, program: str, *, source: Source | None = None) -> Activation | None:
    """Return the active policy of a program, or the last one that came from this source."""
    if source is None:
        return next(iter(history(tx, program, limit=1)), None)
    return next((found for found in history(tx, program) if found.source is source), None)


def programs(tx: Connection) -> list[str]:
    """Return the names of the programs that have a policy here."""
    return list(tx.execute(select(policies.c.program).distinct().order_by(policies.c.program)).scalars())


def active_version(tx: Connection, program: str) -> str | None:
    """Return the version of the program's active policy."""
    version: str | None = tx.execute(_ACTIVE_VERSION, {"of": program}).scalar()
    return version


def active(tx: Connection, program: str, *, known: Iterable[Policy] = ()) -> Policy:
    """Return the program's active policy, with the conditions that `known` policies bring.

    Without an active policy everything is held.
    """
    version = active_version(tx, program)
    if version is None:
        return Policy()
    found = {policy.version: policy for policy in known}
    if version in found:
        return found[version]
    value = tx.execute(
        select(policies.c.policy).where(policies.c.program == program, policies.c.version == version).limit(1)
    ).scalar_one()
    return policy_from_json(value, predicates=_predicates(found.values()))


def register_tools(tx: Connection, program: str, offered: Iterable[Tool]) -> None:
    """Note which tools a program offers, so that other processes can check an edit."""
    _one_at_a_time(tx)
    offered = list(offered)
    for tool in offered:
        keep_schema(tx, dict(tool.schema))
    names = [tool.name for tool in offered]
    rows = {
        (row.name, row.schema_hash, row.description, row.read_only)
        for row in tx.execute(select(tools).where(tools.c.program == program))
    }
    wanted = {(t.name, schema_hash(t.schema), t.description, t.read_only) for t in offered}
    if rows == wanted:
        return
    tx.execute(delete(tools).where(tools.c.program == program))
    if names:
        columns = ("name", "schema_hash", "description", "read_only")
        values = [{"program": program, **dict(zip(columns, item, strict=True))} for item in sorted(wanted)]
        tx.execute(insert(tools), values)


def offer(tx: Connection, program: str, tool: Tool) -> None:
    """Note that a program offers this tool too, in place of one of the same name."""
    values = {
        "schema_hash": keep_schema(tx, dict(tool.schema)),
        "description": tool.description,
        "read_only": tool.read_only,
    }
    known = (tools.c.program == program, tools.c.name == tool.name)
    if tx.execute(update(tools).where(*known).values(values).returning(tools.c.name)).first() is None:
        tx.execute(insert_ignoring(tx, tools).values(program=program, name=tool.name, **values))


def keep_schema(tx: Connection, schema: dict[str, Any]) -> str:
    """Keep a tool's schema under its hash, and return the hash."""
    found = schema_hash(schema)
    if tx.execute(_SCHEMA, {"of": found}).first() is None:
        insert_new(tx, schemas.c.hash, {"hash": found, "schema": schema})
    return found


def schema(tx: Connection, found: str) -> dict[str, Any]:
    """Return the schema that has this hash."""
    value: dict[str, Any] = tx.execute(_SCHEMA, {"of": found}).scalar_one()
    return value


def tool_schema(tx: Connection, program: str, name: str) -> dict[str, Any] | None:
    """Return the schema of a program's tool as it is offered now; None when it offers no such tool."""
    query = (
        select(schemas.c.schema)
        .join(tools, tools.c.schema_hash == schemas.c.hash)
        .where(tools.c.program == program, tools.c.name == name)
    )
    value: dict[str, Any] | None = tx.execute(query).scalar()
    return value


def offered(tx: Connection, program: str) -> dict[str, dict[str, Any]]:
    """Return the schemas of the tools that a program offers, by name."""
    query = (
        select(tools.c.name, schemas.c.schema)
        .join(schemas, tools.c.schema_hash == schemas.c.hash)
        .where(tools.c.program == program)
    )
    return {row.name: row.schema for row in tx.execute(query)}


def tool_names(tx: Connection, program: str) -> list[str]:
    """Return the names of the tools that a program offers."""
    return list(
        tx.execute(select(tools.c.name).where(tools.c.program == program).order_by(tools.c.name)).scalars()
    )


def tool_descriptions(tx: Connection, program: str) -> dict[str, str]:
    """Return what the makers of a program's tools say about them, by name."""
    return {row.name: row.description for row in tx.execute(_DESCRIPTIONS, {"of": program})}


def _predicates(found: Iterable[Policy]) -> list[Predicate]:
    return [rule.when for policy in found for rule in policy.rules if isinstance(rule.when, Predicate)]


def _one_at_a_time(tx: Connection) -> None:
    """Have processes that start at the same moment write what they bring one after the other."""
    if tx.dialect.name == "postgresql":
        tx.execute(text("SELECT pg_advisory_xact_lock(7255442)"))
