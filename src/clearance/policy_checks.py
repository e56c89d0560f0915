"""What is wrong with a policy before any call: rules that could never do what they say, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from clearance.errors import PolicyError
from clearance.expression import Cel, read
from clearance.policy import Effect, Policy, Predicate, Rule, shared_decisions
from clearance.redaction import steps_of
from clearance.schema_paths import kinds, missing
from clearance.summary import fields, flaw

LONGEST_EXPIRE = timedelta(days=3653)
_EFFECTS = tuple(Effect)

Tools = Iterable[str] | Mapping[str, Mapping[str, Any]]
"""The tools that a policy is for: their names, or their schemas by name."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: in which rule (from 0; None: in all together), at which key of it, and what.

    `offset` is the character of the condition's text, where that is what is wrong.
    """

    rule: int | None
    key: str
    message: str
    offset: int | None = None


def check_policy(policy: Policy, tools: Tools) -> None:
    """Refuse rules that could never do what they say, given the tools.

    Raises `PolicyError` with every such rule: a name that matches no tool, a threshold below 1 or of a group
    without a name, decisions that leave nothing to decide, a time that is not positive or without end, one
    name and version for two conditions, a condition that is no CEL or takes too long, an argument that no
    schema allows.
    """
    wrong = [finding.message for finding in findings(policy, tools)]
    if wrong:
        raise PolicyError("The policy cannot be used: " + "; ".join(wrong) + ".")


def findings(policy: Policy, tools: Tools | None, *, groups: Iterable[str] | None = None) -> list[Finding]:
    """Return everything that is wrong with a policy for these tools and groups; None is: not known."""
    found: list[Finding] = []
    names = None if tools is None else sorted(set(tools))
    for place, rule in enumerate(policy.rules):
        if names is not None and not _tools_of(rule, names):
            message = f"rule {rule.label!r} names no known tool ({', '.join(names)})"
            found.append(Finding(place, "tool", message))
        found.extend(_impossible(place, rule))
        found.extend(_condition(place, rule))
        if groups is not None:
            found.extend(_unknown_groups(place, rule, groups=sorted(set(groups))))
        if isinstance(tools, Mapping):
            found.extend(_unknown_arguments(place, rule, tools))
    for name in names or ():
        limited = [
            place
            for place, rule in enumerate(policy.rules)
            if rule.covers(name) and rule.decisions is not None
        ]
        if limited and not shared_decisions([policy.rules[place] for place in limited]):
            message = f"the rules for {name} together allow no decision"
            found.append(Finding(limited[-1], "decisions", message))
    found.extend(_ambiguous_conditions(policy))
    return found


def warnings(
    policy: Policy, tools: Tools | None, *, members: Mapping[str, int] | None = None
) -> list[Finding]:
    """Return what a policy may not mean: rules without effect, quorums that nobody can reach.

    `members` says how many people each group has, and "" how many there are in all.
    """
    found: list[Finding] = []
    for place, rule in enumerate(policy.rules):
        if isinstance(rule.when, Cel) and not read(rule.when.text).names:
            found.append(Finding(place, "when", f"rule {rule.label!r} says the same of every call"))
        above = None if tools is None else _above(policy, rule, sorted(set(tools)))
        if above is not None:
            message = (
                f"rule {rule.label!r} allows nothing: rule {above.label!r} is stronger on every call of it"
            )
            found.append(Finding(place, "effect", message))
        for threshold in rule.who:
            people = None if members is None else members.get(threshold.group or "", 0)
            if people is not None and people < threshold.approve:
                who = "people" if threshold.group is None else f"people in group {threshold.group}"
                message = f"rule {rule.label!r} needs {threshold.approve} {who}, and there are {people}"
                found.append(Finding(place, "who", message))
    return found


def _above(policy: Policy, rule: Rule, names: Sequence[str]) -> Rule | None:
    """Return the rule without a condition that leaves nothing of what this one allows, if there is one."""
    if rule.effect is not Effect.ALLOW:
        return None
    mine = _tools_of(rule, names)
    for other in policy.rules:
        stronger = _EFFECTS.index(other.effect) > _EFFECTS.index(rule.effect) and other.when is None
        if mine and stronger and set(mine) <= set(_tools_of(other, names)):
            return other
    return None


def _tools_of(rule: Rule, names: Sequence[str]) -> list[str]:
    return [name for name in names if fnmatchcase(name, rule.tool)]


def _impossible(place: int, rule: Rule) -> Iterator[Finding]:
    said = f"rule {rule.label!r}"
    if rule.decisions is not None and not rule.decisions:
        yield Finding(place, "decisions", f"{said} allows no decision")
    if any(t.approve < 1 or t.reject < 1 for t in rule.who):
        yield Finding(place, "who", f"{said} has a threshold below 1")
    if any(t.group is not None and not t.group.strip() for t in rule.who):
        yield Finding(place, "who", f"{said} has a threshold of a group without a name")
    if (wrong := flaw(rule.summary)) is not None:
        yield Finding(place, "summary", f"{said}: {wrong}")
    yield from _impossible_times(place, rule)
    if rule.expire is not None and rule.expire <= timedelta(0):
        yield Finding(place, "expire", f"{said} expires before it is asked")
    if rule.expire is not None and rule.expire > LONGEST_EXPIRE:
        yield Finding(
            place, "expire", f"{said} expires after more than {LONGEST_EXPIRE.days} days: leave it out"
        )


def _impossible_times(place: int, rule: Rule) -> Iterator[Finding]:
    """Name reminders and escalations that could never come, or never end."""
    said = f"rule {rule.label!r}"
    times = [("remind", "reminds", after) for after in rule.remind]
    if rule.escalate is not None:
        times.append(("escalate", "escalates", rule.escalate.after))
        if not rule.escalate.to.strip():
            yield Finding(place, "escalate", f"{said} escalates to a group without a name")
    for key, does, after in times:
        if after <= timedelta(0):
            yield Finding(place, key, f"{said} {does} before it is asked")
        elif rule.expire is not None and after >= rule.expire:
            yield Finding(place, key, f"{said} {does} when it has expired already")
        elif after > LONGEST_EXPIRE:
            yield Finding(
                place, key, f"{said} {does} after more than {LONGEST_EXPIRE.days} days: leave it out"
            )


def _condition(place: int, rule: Rule) -> Iterator[Finding]:
    if isinstance(rule.when, Cel):
        # Loaded here: it brings a library that a policy without such conditions does not need.
        from clearance.cel import flaws

        for found in flaws(rule.when):
            message = f"the condition of rule {rule.label!r}: {found.message}"
            yield Finding(place, "when", message, offset=found.offset)


def _unknown_groups(place: int, rule: Rule, *, groups: Sequence[str]) -> Iterator[Finding]:
    named = [("who", threshold.group) for threshold in rule.who]
    named.append(("escalate", rule.escalate.to if rule.escalate else None))
    for key, group in named:
        if group is not None and group not in groups:
            known = f"there are {', '.join(groups)}" if groups else "nobody here is in a group"
            yield Finding(place, key, f"rule {rule.label!r} names the group {group!r}; {known}")


def _unknown_arguments(place: int, rule: Rule, schemas: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Name what a rule says of arguments that none of its tools could ever show."""
    found = [schema for name, schema in schemas.items() if fnmatchcase(name, rule.tool)]
    if not found:
        return
    for argument in sorted(rule.flags):
        if not any(_may_have(schema, argument) for schema in found):
            message = f"rule {rule.label!r} flags {argument!r}, which is no argument of its tools"
            yield Finding(place, "flags", message)
    for name in rule.secret:
        if (wrong := _leads_nowhere(name, found)) is not None:
            yield Finding(place, "secret", f"rule {rule.label!r} hides {wrong}")
    for argument in fields(rule.summary):
        if not any(_may_have(schema, argument) for schema in found):
            message = (
                f"the summary of rule {rule.label!r} names {argument!r}, which is no argument of its tools"
            )
            yield Finding(place, "summary", message)
    if isinstance(rule.when, Cel):
        yield from _unfit_comparisons(place, rule, rule.when, found)
    for argument, offset in read(rule.when.text).arguments if isinstance(rule.when, Cel) else ():
        if not any(_may_have(schema, argument) for schema in found):
            message = (
                f"the condition of rule {rule.label!r} reads {argument!r}, which is no argument of its tools"
            )
            yield Finding(place, "when", message, offset=offset)


def _unfit_comparisons(
    place: int, rule: Rule, condition: Cel, schemas: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Name what is compared with a value of another kind than its tools say: that gives no answer, ever."""
    told = set()
    for compared in read(condition.text).comparisons:
        said = [kinds(schema, compared.path) for schema in schemas]
        known = set().union(*(each for each in said if each is not None))
        fits = compared.kind == "null" or compared.kind in known or None in said or not known
        if fits or compared in told:
            continue
        told.add(compared)
        name = ".".join("*" if step is None else str(step) for step in compared.path)
        kind = " or ".join("object or list" if each == "other" else each for each in sorted(known))
        message = (
            f"the condition of rule {rule.label!r} takes {name!r} for {compared.kind}; its tools say {kind}"
        )
        yield Finding(place, "when", message, offset=compared.offset)


def _leads_nowhere(name: str, schemas: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why no tool has what a name means, if none has."""
    steps = steps_of(name)
    having = [schema for schema in schemas if _may_have(schema, steps[0])]
    if not having:
        return f"{steps[0]!r}, which is no argument of its tools"
    misses = [missing(schema, steps) for schema in having]
    if any(miss is None for miss in misses):
        return None
    miss = max((each for each in misses if each is not None), key=lambda each: each.place)
    near = get_close_matches(steps[miss.place], miss.known)
    has = f"; it has {', '.join(near or miss.known)}" if miss.known else ""
    return f"{name!r}, but {'.'.join(steps[: miss.place])!r} has no {steps[miss.place]!r}{has}"


def _may_have(schema: Mapping[str, Any], argument: str) -> bool:
    closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
    return not closed or argument in schema.get("properties", {})


def _ambiguous_conditions(policy: Policy) -> Iterator[Finding]:
    """Name the conditions that a process which reads the policy could not tell from one another."""
    functions: dict[tuple[str, str], set[object]] = {}
    for rule in policy.rules:
        if isinstance(rule.when, Predicate):
            functions.setdefault((rule.when.name, rule.when.version), set()).add(rule.when.function)
    for (name, version), found in functions.items():
        if len(found) > 1:
            message = f"two conditions are called {name} (version {version}): give each its own name"
            yield Finding(None, "when", message)
