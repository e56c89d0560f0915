"""Rows of policies and of the tools that they speak about, one active policy a program."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text

from clearance.policy import Policy, Predicate, policy_from_json
from clearance.schema import schema_hash
from clearance.store.runs import insert_ignoring
from clearance.store.tables import policies, schemas, tools
from clearance.toolcall import Tool


def activate(tx: Connection, program: str, policy: Policy, *, now: datetime) -> bool:
    """Make a policy the program's active one; False when it is already."""
    _one_at_a_time(tx)
    if active_version(tx, program) == policy.version:
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
        )
    )
    return True


def active_version(tx: Connection, program: str) -> str | None:
    """Return the version of the program's active policy."""
    version: str | None = tx.execute(
        select(policies.c.version)
        .where(policies.c.program == program)
        .order_by(policies.c.number.desc())
        .limit(1)
    ).scalar()
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


def keep_schema(tx: Connection, schema: dict[str, Any]) -> str:
    """Keep a tool's schema under its hash, and return the hash."""
    found = schema_hash(schema)
    tx.execute(insert_ignoring(tx, schemas).values(hash=found, schema=schema))
    return found


def schema(tx: Connection, found: str) -> dict[str, Any]:
    """Return the schema that has this hash."""
    value: dict[str, Any] = tx.execute(select(schemas.c.schema).where(schemas.c.hash == found)).scalar_one()
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


def tool_names(tx: Connection, program: str) -> list[str]:
    """Return the names of the tools that a program offers."""
    return list(
        tx.execute(select(tools.c.name).where(tools.c.program == program).order_by(tools.c.name)).scalars()
    )


def tool_descriptions(tx: Connection, program: str) -> dict[str, str]:
    """Return what the makers of a program's tools say about them, by name."""
    query = select(tools.c.name, tools.c.description).where(tools.c.program == program)
    return {row.name: row.description for row in tx.execute(query)}


def _predicates(found: Iterable[Policy]) -> list[Predicate]:
    return [rule.when for policy in found for rule in policy.rules if rule.when is not None]


def _one_at_a_time(tx: Connection) -> None:
    """Have processes that start at the same moment write what they bring one after the other."""
    if tx.dialect.name == "postgresql":
        tx.execute(text("SELECT pg_advisory_xact_lock(7255442)"))
