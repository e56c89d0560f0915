"""The fingerprint: what binds a clearance to one call with exactly these arguments."""

import hashlib
from collections.abc import Mapping
from typing import Any

from clearance.schema import schema_hash, with_defaults
from clearance.toolcall import ToolCall, canonical, parse_arguments


def fingerprint(call: ToolCall, *, run: str, schema: Mapping[str, Any], salt: str) -> str:
    """Return the sha256 (hex) that a clearance is bound to.

    It covers the run, the call's key, the tool and its schema, the arguments with written defaults, and a
    random salt (hex) that is kept with the arguments, so that it cannot be guessed back to them.
    """
    arguments = with_defaults(schema, parse_arguments(call.arguments))
    bound = {
        "run": run,
        "call": call.key,
        "tool": call.tool,
        "schema": schema_hash(schema),
        "arguments": arguments,
        "salt": salt,
    }
    return hashlib.sha256(canonical(bound).encode()).hexdigest()
