"""Summaries: one sentence about a call, made from a rule's template and the call's arguments.

A template names arguments in braces, `Pay {amount} to {account}`, and nothing else: it is no format string.
Values are put in as JSON, so that a text stands in quotes and cannot pretend to be part of the sentence.
"""

import re
from collections.abc import Mapping
from typing import Any

from clearance.toolcall import canonical, parse_arguments

MAX_TEMPLATE = 300
MAX_VALUE = 80
MAX_CALL = 160
_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def flaw(template: str) -> str | None:
    """Return what is wrong with a template, or None."""
    if len(template) > MAX_TEMPLATE:
        return f"a summary has at most {MAX_TEMPLATE} characters"
    if set("{}") & set(_FIELD.sub("", template)):
        return "a summary has braces only round names of arguments: Pay {amount} to {account}"
    return None


def fields(template: str) -> list[str]:
    """Return the arguments that a template names."""
    return _FIELD.findall(template)


def summary(template: str, arguments: Mapping[str, Any]) -> str:
    """Return the sentence; an argument that is not there is a dash, a long value ends in dots."""

    def value(found: re.Match[str]) -> str:
        if found.group(1) not in arguments:
            return "–"
        return _shortened(canonical(arguments[found.group(1)]))

    return _FIELD.sub(value, template)


def call_in_short(tool: str, arguments: str) -> str:
    """Return a call that no rule has a sentence for: its tool and its arguments, in short.

    `arguments` is JSON text; what is long ends in dots.
    """
    given = parse_arguments(arguments).items()
    said = ", ".join(f"{name} {_shortened(canonical(value))}" for name, value in given)
    return f"Run {tool}" + (f": {_shortened(said, most=MAX_CALL)}" if said else "")


def _shortened(text: str, *, most: int = MAX_VALUE) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
