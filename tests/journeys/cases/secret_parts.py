"""Secrets as the cases name them: fields by name, at any depth, and texts by a pattern.

A field is secret by the schema of its tool. A text that a pattern fits makes all of its argument secret, by a
rule with a condition: ours masks parts of arguments, and not parts of texts.
"""

import copy
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from clearance.policy import Effect, Policy, Predicate, Rule
from tests.journeys.cases.loading import CaseError

_FIELD, _PATTERN = "field:", "pattern:"
_OPEN = "anything"
_SAYS = ("type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref")


def check_secrets(said: Iterable[str]) -> None:
    """Raise `CaseError` for a secret that is named in another way."""
    for each in said:
        if not each.startswith((_FIELD, _PATTERN)):
            raise CaseError(f"The interpreter knows no secret {each!r}.")


def with_secret_fields(schema: Mapping[str, Any], said: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a tool, in which fields of these names are secret wherever they may stand."""
    names = [each.removeprefix(_FIELD) for each in said if each.startswith(_FIELD)]
    made = copy.deepcopy(dict(schema))
    if not names:
        return made
    _mark(made, names)
    here = {"$ref": f"#/$defs/{_OPEN}"}
    secret = {name: {"x-secret": True} for name in names}
    made["$defs"] = {
        **made.get("$defs", {}),
        _OPEN: {"properties": secret, "additionalProperties": here, "items": here},
    }
    return made


def hiding(policy: Policy, tools: Mapping[str, Mapping[str, Any]], said: Iterable[str]) -> Policy:
    """Return the policy with a rule for each argument in which a text may stand that a pattern fits."""
    patterns = [each.removeprefix(_PATTERN) for each in said if each.startswith(_PATTERN)]
    rules = [
        Rule(tool, effect=Effect.ALLOW, when=_holds(name, pattern), secret=(name,))
        for pattern in patterns
        for tool, about in tools.items()
        # Where no rule matches, the default must go on to count.
        if any(rule.covers(tool) for rule in policy.rules)
        for name in about["schema"].get("properties", {})
    ]
    return Policy((*policy.rules, *rules), default=policy.default)


def _mark(part: Any, names: list[str]) -> None:
    if not isinstance(part, dict):
        return
    if not any(word in part for word in _SAYS):
        part["$ref"] = f"#/$defs/{_OPEN}"
    for name, inner in part.get("properties", {}).items():
        if name in names:
            inner["x-secret"] = True
        _mark(inner, names)
    for inner in (part.get("items"), *part.get("anyOf", []), *part.get("oneOf", []), *part.get("allOf", [])):
        _mark(inner, names)


def _holds(name: str, pattern: str) -> Predicate:
    fits = re.compile(pattern)

    def holds(arguments: dict[str, Any]) -> bool:
        return name in arguments and fits.search(json.dumps(arguments[name])) is not None

    return Predicate(name=f"{name} holds {pattern}", version="1", function=holds)
