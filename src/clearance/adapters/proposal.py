"""Proposals: a call as an agent elsewhere makes it, checked, and kept as what its run is about."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from clearance.adapters.plain import checked_id
from clearance.errors import InvalidInputError
from clearance.people import Person
from clearance.run import AGENT, Run, RunState
from clearance.schema import check_arguments, with_defaults
from clearance.toolcall import DEFAULT_TIMEOUT, Tool, ToolCall, canonical, parse_arguments

MAX_TIMEOUT = 24 * 3600.0
"""Seconds that an agent may have for one call."""
MAX_SCHEMA = 64 * 1024
"""Bytes of a schema that an agent may send."""
MESSAGE = 1
"""The call is the first and only one of its run."""


@dataclass(frozen=True)
class Proposal:
    """A call as an agent proposes it. `arguments` is JSON text; `schema` is the JSON Schema that they fit.

    `timeout` is in seconds: how long the agent may take from `take` to `report`.
    """

    key: str
    tool: str
    arguments: str
    schema: Mapping[str, Any]
    description: str = ""
    timeout: float = DEFAULT_TIMEOUT


def checked_tool(proposal: Proposal) -> Tool:
    """Return the tool of a proposal whose arguments fit its schema."""
    checked_id(proposal.key, what="The key of a call")
    checked_id(proposal.tool, what="The name of a tool")
    if not 0 < proposal.timeout <= MAX_TIMEOUT:
        raise InvalidInputError(f"timeout must be more than 0 and at most {MAX_TIMEOUT:g} seconds.")
    _check_schema(proposal.schema)
    check_arguments(proposal.tool, proposal.schema, proposal.arguments)
    return Tool(
        proposal.tool,
        proposal.schema,
        elsewhere,
        description=proposal.description,
        timeout=proposal.timeout,
    )


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that could keep this process busy: whoever may propose must not be able to stop it."""
    if len(canonical(dict(schema)).encode()) > MAX_SCHEMA:
        raise InvalidInputError(f"The schema is larger than {MAX_SCHEMA} bytes.")
    if _has_pattern(schema):
        raise InvalidInputError(
            "The schema uses `pattern`. Regular expressions from outside are not run here: leave it out, and "
            "check it where the call is carried out."
        )


def _has_pattern(part: Any) -> bool:
    """Whether a regular expression stands anywhere, in a value too: `$ref` makes a rule of any part."""
    match part:
        case dict():
            return any(
                (name == "pattern" and isinstance(value, str))
                or (name == "patternProperties" and isinstance(value, dict))
                or _has_pattern(value)
                for name, value in part.items()
            )
        case list():
            return any(map(_has_pattern, part))
        case _:
            return False


def run_of(proposal: Proposal, *, by: Person) -> Run:
    run_id = run_id_of(proposal.key, by=by.id)
    return Run(
        id=run_id,
        thread_id=run_id,
        program=f"{AGENT}{by.id}",
        state=RunState.RUNNING,
        requester=by.id,
        input=canonical(
            {
                "key": proposal.key,
                "tool": proposal.tool,
                "arguments": canonical(with_defaults(proposal.schema, parse_arguments(proposal.arguments))),
                "proposed": proposal.arguments,
                "schema": dict(proposal.schema),
                "timeout": proposal.timeout,
            }
        ),
        created_at=datetime.fromtimestamp(0, UTC),
    )


def run_id_of(key: str, *, by: str) -> str:
    """Return the id of the run that is this call: keys are an agent's own, ids are the workspace's."""
    return f"{quote(by, safe='')}:{quote(key, safe='')}"


def proposed(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.input or "{}")
    return found


def call_of(run: Run) -> ToolCall:
    said = proposed(run)
    return ToolCall(key=f"{run.id}/{MESSAGE}", tool=said["tool"], arguments=said["proposed"])


def elsewhere(_arguments: dict[str, Any], _key: str) -> object:
    """Stand in for what an agent runs elsewhere; it is never called."""
    raise LookupError("this call is carried out by its agent")
