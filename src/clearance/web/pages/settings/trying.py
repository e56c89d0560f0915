"""What the page of policies shows of a policy, and of a text that becomes one."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from clearance.expression import Cel
from clearance.policy import Policy, Predicate, Rule, Threshold
from clearance.policy_writing import time_text
from clearance.simulation import Simulation

AROUND = 60
"""Characters of a line that are shown on each side of a place in it."""


@dataclass(frozen=True)
class Placed:
    """Something that is said about a place of a text, and what stands there."""

    line: int
    column: int
    message: str
    before: str
    at: str
    after: str


@dataclass(frozen=True)
class Changed:
    """A line of a comparison: `+` is new, `-` is gone, ` ` stays, `…` stands for lines that stay."""

    sign: str
    text: str


@dataclass(frozen=True)
class Draft:
    """A text that somebody tries, and what was found of it. `seen` marks the comparison that was shown."""

    text: str
    policy: Policy | None = None
    faults: tuple[Placed, ...] = ()
    warnings: tuple[Placed, ...] = ()
    found: Simulation | None = None
    difference: tuple[Changed, ...] = ()
    seen: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleRow:
    """A rule as a row of the table: who is needed, when what happens, and what is pointed out, in words."""

    rule: Rule
    condition: str
    who: tuple[str, ...]
    times: tuple[str, ...]
    more: tuple[str, ...]


def rows(policy: Policy) -> list[RuleRow]:
    """Return the rules of a policy for a table."""
    return [
        RuleRow(
            rule, _condition(rule), tuple(map(_needed, rule.who)), tuple(_times(rule)), tuple(_more(rule))
        )
        for rule in policy.rules
    ]


def placed(text: str, pointer: str, message: str) -> Placed:
    """Return what is said about `line:column` of a text, with what stands there."""
    line, column = (int(part) for part in pointer.split(":"))
    found = dict(enumerate(text.split("\n"), start=1)).get(line, "")
    at = column - 1
    return Placed(
        line,
        column,
        message,
        found[max(at - AROUND, 0) : at],
        found[at : at + 1],
        found[column : at + AROUND],
    )


def changed_lines(before: str, after: str) -> tuple[Changed, ...]:
    """Return how one text becomes the other, with a few lines around each change."""
    told = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    found = [Changed("…", "") if each[:1] == "@" else Changed(each[:1], each[1:]) for each in list(told)[2:]]
    return tuple(found)


def _condition(rule: Rule) -> str:
    match rule.when:
        case None:
            return ""
        case Cel(text):
            return text
        case Predicate(name):
            return f"{name}, in the program's code"


def _needed(threshold: Threshold) -> str:
    whom = "who may decide" if threshold.group is None else f"of {threshold.group}"
    said = f"{threshold.approve} {whom}"
    return said if threshold.reject == 1 else f"{said}; {threshold.reject} to reject"


def _times(rule: Rule) -> list[str]:
    said = [f"told again after {time_text(each)}" for each in rule.remind]
    if rule.escalate is not None:
        said.append(f"after {time_text(rule.escalate.after)} {rule.escalate.to} too")
    if rule.expire is not None:
        said.append(f"rejected after {time_text(rule.expire)}")
    return said


def _more(rule: Rule) -> list[str]:
    said = [f"{name}: {why}" for name, why in rule.flags.items()]
    if rule.decisions is not None:
        said.append(f"people may {', '.join(rule.decisions)}")
    if rule.reason:
        said.append("a rejection needs a reason")
    if rule.self_approval is not None:
        said.append("who asked may decide" if rule.self_approval else "who asked never decides")
    if rule.secret:
        said.append(f"secret: {', '.join(rule.secret)}")
    return said
