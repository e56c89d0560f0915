"""Trials: what a policy makes of one written call, rule by rule, without anything happening."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clearance.errors import InvalidInputError
from clearance.expression import Cel, Origin, read
from clearance.policy import Policy, Rule, Verdict, judge, rule_matches
from clearance.toolcall import parse_arguments

KEYS = ("tool", "args", "run", "person")
_RUN = ("id", "thread", "program")
_PERSON = ("id", "groups", "role", "kind")


@dataclass(frozen=True)
class WrittenCall:
    """A call as somebody wrote it down to try it."""

    tool: str
    arguments: Mapping[str, Any]
    origin: Origin | None


@dataclass(frozen=True)
class Tried:
    """What one rule says: whether it matches (None: its condition gave no answer) and what that reads."""

    rule: Rule
    matches: bool | None
    fault: str | None
    reads: Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """What the whole policy says, and each rule for the call's tool."""

    verdict: Verdict
    rules: tuple[Tried, ...]


def read_trial(text: str) -> WrittenCall:
    """Return the call that a JSON object says: `tool` and `args`, and, for conditions, `run` and `person`.

    Raises `InvalidInputError`.
    """
    value = parse_arguments(text)
    tool, arguments = value.get("tool"), value.get("args", {})
    unknown = sorted(value.keys() - set(KEYS))
    if unknown or not isinstance(tool, str) or not isinstance(arguments, dict):
        raise InvalidInputError(
            'A call is {"tool": "NAME", "args": {…}}, with "run" and "person" where asked.'
        )
    run, person = value.get("run"), value.get("person")
    if run is None and person is None:
        return WrittenCall(tool, arguments, None)
    return WrittenCall(
        tool, arguments, Origin(run=_part("run", run, _RUN), person=_part("person", person, _PERSON))
    )


def try_call(policy: Policy, call: WrittenCall) -> Trial:
    """Return what a policy says about a call, and what each of its rules for the tool says."""
    tried = []
    for rule in policy.rules:
        matches, fault = rule_matches(rule, call.tool, arguments=call.arguments, origin=call.origin)
        if matches or rule.covers(call.tool):
            reads = _read_by(rule, call.arguments)
            tried.append(Tried(rule, None if fault else matches, fault, reads))
    verdict = judge(policy, call.tool, arguments=call.arguments, origin=call.origin)
    return Trial(verdict, tuple(tried))


def _read_by(rule: Rule, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(rule.when, Cel):
        return {}
    names = {name for name, _ in read(rule.when.text).arguments}
    return {name: arguments[name] for name in sorted(names) if name in arguments}


def _part(name: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not value.keys() <= set(keys):
        raise InvalidInputError(f"'{name}' of a call is an object with some of {', '.join(keys)}.")
    return value
