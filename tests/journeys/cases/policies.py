"""The policies of the cases, made into ours.

Theirs: the first rule that names a tool counts, and an `override` stands in front of the rules that it makes
stricter or otherwise. Ours: all rules that match add up. So what theirs says of one tool becomes one rule of
ours, or two where it has a condition. Words that are none of ours are handed on as they are: whether they are
refused is the product's answer, not the interpreter's.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from clearance.errors import PolicyError
from clearance.policy import Effect, Policy, Predicate, Rule, Threshold
from tests.journeys.cases.loading import CaseError, Fixtures
from tests.journeys.cases.rule_texts import Condition, condition, negated, rule_function

Said = Mapping[str, Any]

_EFFECTS = {"approval": Effect.HOLD, "none": Effect.ALLOW, "never": Effect.DENY, "refuse": Effect.DENY}
_READ_HERE = frozenset(
    {"tools", "require", "roles", "quorum", "distinct_persons", "requester_may_approve", "allowed",
     "deadline_s", "warn_s", "on_timeout", "when", "unless", "else", "function"}
)  # fmt: skip


def read_policy(said: str | Said, fixtures: Fixtures, *, override: Iterable[Said], folder: Path) -> Policy:
    """Return our policy for one of theirs, by name or written out. Raises what the product raises."""
    spec = resolved(said, fixtures)
    front: dict[str, Said] = {}
    for rule in override:
        for tool in _tools(rule):
            front[tool] = {**rule, **front.get(tool, {})}
    by_tool: dict[str, Said] = {}
    for rule in spec.get("rules", []):
        for tool in _tools(rule):
            by_tool.setdefault(tool, rule)
    rules: list[Rule] = []
    for tool in {**by_tool, **front}:
        rules += _rules(tool, {**by_tool.get(tool, {}), **front.get(tool, {})}, folder=folder)
    unknown: Any = spec.get("unknown_tool", "approval")
    return Policy(rules=tuple(rules), default=_EFFECTS.get(unknown, unknown))


def _tools(rule: Said) -> list[str]:
    """Return the tools that a rule is about; one that is about none is refused as a policy file's is."""
    if not isinstance(rule.get("tools"), list):
        raise PolicyError(f"A rule names its tools; this one says {', '.join(map(repr, rule))}.")
    return list(rule["tools"])


def resolved(said: str | Said, fixtures: Fixtures) -> Said:
    """Return a policy written out: a name looked up, what it extends taken in."""
    if isinstance(said, str):
        if said not in fixtures.policies:
            raise CaseError(f"There is no policy {said!r}.")
        said = fixtures.policies[said]
    if "extends" not in said:
        return said
    base = resolved(said["extends"], fixtures)
    changed = [
        {**rule, **said.get("override", {})} if rule.get("require") == "approval" else rule
        for rule in base["rules"]
    ]
    return {**base, "rules": changed}


def groups_of(said: Iterable[str]) -> str:
    """Return the one group of ours that stands for several roles of theirs."""
    return "-or-".join(sorted(said))


def groups_in(policy: Policy) -> set[str]:
    """Return the groups that decide something under a policy."""
    return {who.group for rule in policy.rules for who in rule.who if who.group is not None}


def _rules(tool: str, said: Said, *, folder: Path) -> list[Rule]:
    effect: Any = _EFFECTS.get(said.get("require", "approval"), said.get("require"))
    more: dict[str, Any] = {name: value for name, value in said.items() if name not in _READ_HERE}
    if said.get("on_timeout", "reject") != "reject":
        more["on_timeout"] = said["on_timeout"]
    if said.get("requester_may_approve", False) is not False:
        more["self_approval"] = said["requester_may_approve"]
    if "allowed" in said:
        more["decisions"] = tuple(said["allowed"])
    if "deadline_s" in said:
        more["expire"] = _time(said["deadline_s"])
    if "warn_s" in said:
        more["remind"] = (_before(said.get("deadline_s"), said["warn_s"]),)
    if "roles" in said or "quorum" in said:
        group = groups_of(said["roles"]) if "roles" in said else None
        more["who"] = (Threshold(approve=said.get("quorum", 1), group=group),)
    when = _condition(said, folder=folder)
    if when is None:
        return [Rule(tool=tool, effect=effect, **more)]
    otherwise: Any = _EFFECTS.get(said.get("else", "none"), said.get("else"))
    return [Rule(tool=tool, effect=otherwise), Rule(tool=tool, effect=effect, when=when, **more)]


def _condition(said: Said, *, folder: Path) -> Predicate | None:
    found: Condition | None = None
    if "when" in said:
        found = condition(said["when"], folder=folder)
    elif "unless" in said:
        found = negated(condition(said["unless"], folder=folder))
    elif "function" in said:
        found = rule_function(said["function"])
    if found is None:
        return None
    named = next(f"{word} {said[word]}" for word in ("when", "unless", "function") if word in said)
    return Predicate(name=named, version="1", function=found)


def _before(deadline: object, warning: object) -> object:
    """Return after which time people are told again: theirs is so long before the deadline."""
    numbers = isinstance(deadline, int | float) and isinstance(warning, int | float)
    return timedelta(seconds=deadline - warning) if numbers else warning  # type: ignore[operator]


def _time(given: object) -> object:
    return timedelta(seconds=given) if isinstance(given, int | float) and given is not True else given
