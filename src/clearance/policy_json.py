"""Policies as plain values: read back what `Policy.to_json` wrote."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from clearance.expression import Cel
from clearance.policy import (
    DecisionType,
    Effect,
    Escalation,
    Policy,
    Predicate,
    Risk,
    Rule,
    Threshold,
)


def policy_from_json(value: Mapping[str, Any], *, predicates: Iterable[Predicate] = ()) -> Policy:
    """Return the policy that `to_json` wrote; conditions that this process lacks stay without function."""
    known = {(item.name, item.version): item for item in predicates}
    rules = tuple(_rule_from_json(rule, known=known) for rule in value["rules"])
    return Policy(rules=rules, default=Effect(value["default"]))


def _condition(
    value: Mapping[str, str] | None, *, known: Mapping[tuple[str, str], Predicate]
) -> Predicate | Cel | None:
    if value is None:
        return None
    if "cel" in value:
        return Cel(value["cel"])
    name, version = value["name"], value["version"]
    return known.get((name, version), Predicate(name=name, version=version))


def _rule_from_json(value: Mapping[str, Any], *, known: Mapping[tuple[str, str], Predicate]) -> Rule:
    decisions = value["decisions"]
    return Rule(
        tool=value["tool"],
        effect=Effect(value["effect"]),
        when=_condition(value["when"], known=known),
        risk=Risk(value["risk"]),
        who=tuple(Threshold(**threshold) for threshold in value["who"]),
        decisions=None if decisions is None else tuple(DecisionType(item) for item in decisions),
        expire=None if value["expire"] is None else timedelta(seconds=value["expire"]),
        reason=value["reason"],
        flags=value["flags"],
        name=value["name"],
        self_approval=value.get("self_approval"),
        summary=value.get("summary", ""),
        secret=tuple(value.get("secret", ())),
        remind=tuple(timedelta(seconds=each) for each in value.get("remind", ())),
        escalate=escalation_from_json(value["escalate"]) if "escalate" in value else None,
    )


def escalation_from_json(value: Mapping[str, Any]) -> Escalation:
    """Return the escalation that `escalation_to_json` wrote."""
    return Escalation(after=timedelta(seconds=value["after"]), to=value["to"])
