"""Policy: the rules that say what a tool call needs, and what all of them together say about one call.

Rules never compete: every rule that matches adds its demand. The strongest effect, the highest risk and the
earliest deadline hold, all thresholds must be met, and only decisions that every rule allows are allowed.
"""

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from types import UnionType
from typing import Any

from clearance.errors import PolicyError
from clearance.expression import Cel, Origin
from clearance.redaction import named_in
from clearance.threshold import Escalation as Escalation
from clearance.threshold import Threshold as Threshold
from clearance.toolcall import canonical


class Effect(StrEnum):
    """What becomes of a call: it runs at once, it waits for people, or it never runs."""

    ALLOW = "allow"
    HOLD = "hold"
    DENY = "deny"


class Risk(StrEnum):
    """How much is at stake; people read it first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class DecisionType(StrEnum):
    """What a person may answer."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    RESPOND = "respond"
    REVISE = "revise"


DEFAULT_DECISIONS = (DecisionType.APPROVE, DecisionType.EDIT, DecisionType.REJECT)
_EFFECTS = tuple(Effect)
_RISKS = tuple(Risk)
_DECISIONS = tuple(DecisionType)


@dataclass(frozen=True)
class Predicate:
    """A Python condition on a call's arguments, known to the trail by name and version.

    `function` takes the arguments (with written defaults) and returns a bool. It must be pure. A process
    that has no predicate of this name and version treats the rule as matching with effect hold.
    """

    name: str
    version: str
    function: Callable[[dict[str, Any]], bool] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not (_all_are((self.name, self.version), str) and self.name and self.version):
            raise PolicyError("A condition has a name and a version, both text that is not empty.")


@dataclass(frozen=True)
class Rule:
    """One rule. `tool` is a name or a glob; without `when` it matches every call of the tool.

    `decisions` limits what people may answer; `expire` closes the review after that time, as a rejection;
    `remind` says after which times people are told again; `escalate` lets another group decide too, in place
    of the groups of `who`, from a time on; all of them in elapsed time since the question was asked;
    `reason` demands a written reason for a rejection; `flags` maps an argument to why it is pointed out;
    `self_approval` says whether who asked may decide; None leaves that to the workspace. `summary` is a
    sentence with names of arguments in braces; `secret` names arguments that nobody is shown, such as
    `card.number`. Words such as "hold" stand for their members. Raises `PolicyError` for what cannot be
    part of a rule.
    """

    tool: str
    effect: Effect = Effect.HOLD
    when: Predicate | Cel | None = None
    risk: Risk = Risk.MEDIUM
    who: tuple[Threshold, ...] = ()
    decisions: tuple[DecisionType, ...] | None = None
    expire: timedelta | None = None
    reason: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    self_approval: bool | None = None
    summary: str = ""
    remind: tuple[timedelta, ...] = ()
    escalate: Escalation | None = None
    secret: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = _ill_typed(self)
        if wrong:
            raise PolicyError(f"Rule {self.name or self.tool!r}: {wrong}.")
        object.__setattr__(self, "effect", Effect(self.effect))
        object.__setattr__(self, "risk", Risk(self.risk))
        object.__setattr__(self, "who", tuple(self.who))
        object.__setattr__(self, "secret", tuple(self.secret))
        object.__setattr__(self, "remind", tuple(sorted(set(self.remind))))
        if self.decisions is not None:
            object.__setattr__(self, "decisions", tuple(map(DecisionType, self.decisions)))

    def covers(self, tool: str) -> bool:
        """Whether the rule speaks of this tool."""
        return fnmatchcase(tool, self.tool)

    @property
    def label(self) -> str:
        """The rule's name, or what stands in for it."""
        return self.name or (f"{self.tool} when {self.when.name}" if self.when else self.tool)


@dataclass(frozen=True)
class Policy:
    """A set of rules and what holds where none matches."""

    rules: tuple[Rule, ...] = ()
    default: Effect = Effect.HOLD

    def __post_init__(self) -> None:
        if self.default not in _EFFECTS:
            raise PolicyError(f"The default {self.default!r} is none of {', '.join(_EFFECTS)}.")
        object.__setattr__(self, "default", Effect(self.default))
        object.__setattr__(self, "rules", tuple(self.rules))

    @property
    def version(self) -> str:
        """The first 16 hex digits of the sha256 of the rules in canonical JSON."""
        return hashlib.sha256(canonical(self.to_json()).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return the policy as plain values; predicates as their name and version."""
        return {
            "default": self.default.value,
            "rules": [_rule_to_json(rule) for rule in self.rules],
        }


@dataclass(frozen=True)
class Verdict:
    """What the whole policy says about one call, as it is stored with the review."""

    effect: Effect
    risk: Risk
    decisions: tuple[DecisionType, ...]
    who: tuple[Threshold, ...]
    rules: tuple[str, ...]
    policy: str
    expire: timedelta | None = None
    reason: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    self_approval: bool | None = None
    summaries: tuple[str, ...] = ()
    remind: tuple[timedelta, ...] = ()
    escalate: tuple[Escalation, ...] = ()
    secret: tuple[str, ...] = ()

    def hiding(self, pointers: Iterable[str]) -> "Verdict":
        """Return the verdict with these parts of the arguments secret too, as JSON pointers."""
        return replace(self, secret=tuple(sorted({*self.secret, *pointers})))


def own_request(verdicts: Iterable[Verdict]) -> bool | None:
    """Whether the rules let people decide what they asked for; None where some do not say."""
    said = {verdict.self_approval for verdict in verdicts}
    if False in said:
        return False
    return True if said == {True} else None


def predicate(version: str) -> Callable[[Callable[[dict[str, Any]], bool]], Predicate]:
    """Make a function on the arguments a rule's `when`; raise `version` when its meaning changes."""

    def make(function: Callable[[dict[str, Any]], bool]) -> Predicate:
        return Predicate(name=function.__name__, version=version, function=function)

    return make


def requiring_approval(tools: Iterable[str]) -> Policy:
    """Return the policy that holds these tools and lets the others run at once."""
    return Policy(rules=tuple(Rule(tool=name) for name in sorted(set(tools))), default=Effect.ALLOW)


def judge(
    policy: Policy, tool: str, *, arguments: Mapping[str, Any], origin: Origin | None = None
) -> Verdict:
    """Return what the policy says about a call of `tool` with these arguments (defaults written out).

    `origin` says where the call comes from, for conditions that ask. Never raises: a condition that fails, is
    unknown here or gives no bool counts as a hold, and the verdict says so in `faults`.
    """
    matching: list[Rule] = []
    faults: list[str] = []
    for rule in policy.rules:
        matches, fault = rule_matches(rule, tool, arguments=arguments, origin=origin)
        if fault is not None:
            faults.append(fault)
            # In doubt the rule demands what it always does, and people are asked.
            matching.append(replace(rule, effect=Effect.HOLD))
        elif matches:
            matching.append(rule)
    names = {name for rule in matching for name in rule.secret}
    return _add_up(policy, matching, faults=tuple(faults)).hiding(named_in(names, arguments))


def rule_matches(
    rule: Rule, tool: str, *, arguments: Mapping[str, Any], origin: Origin | None = None
) -> tuple[bool, str | None]:
    """Return whether a rule matches a call, and why its condition gave no answer, where it gave none."""
    if not rule.covers(tool):
        return False, None
    if rule.when is None:
        return True, None
    if isinstance(rule.when, Cel):
        # Loaded here: it brings a library that a policy without such conditions does not need.
        from clearance.cel import UnansweredError, answer

        try:
            return answer(rule.when, tool, arguments=arguments, origin=origin), None
        except UnansweredError as error:
            return True, f"the condition of rule {rule.label!r} gave no answer: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it raises means: ask a person
            return True, f"the condition of rule {rule.label!r} raised {type(error).__name__}"
    label = f"condition {rule.when.name} (version {rule.when.version})"
    if rule.when.function is None:
        return True, f"{label} is not known to this process"
    try:
        # A copy: a condition that changes its argument must not change the call.
        found: object = rule.when.function(copy.deepcopy(dict(arguments)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises means: ask a person
        return True, f"{label} raised {type(error).__name__}"
    if not isinstance(found, bool):
        if inspect.iscoroutine(found):
            found.close()
        return True, f"{label} gave {type(found).__name__} instead of a bool"
    return found, None


def _add_up(policy: Policy, rules: Sequence[Rule], *, faults: tuple[str, ...]) -> Verdict:
    effects = [rule.effect for rule in rules] or [policy.default]
    times = [rule.expire for rule in rules if rule.expire is not None]
    reasons: dict[str, set[str]] = {}
    for rule in rules:
        for argument, why in rule.flags.items():
            reasons.setdefault(argument, set()).add(why)
    return Verdict(
        effect=max(effects, key=_EFFECTS.index),
        risk=max((rule.risk for rule in rules), key=_RISKS.index, default=Risk.MEDIUM),
        # Where the rules leave nothing in common, a person can still say no.
        decisions=shared_decisions(rules) or (DecisionType.REJECT,),
        who=_thresholds(rules),
        rules=tuple(sorted(rule.label for rule in rules)),
        policy=policy.version,
        expire=min(times, default=None),
        reason=any(rule.reason for rule in rules),
        flags={argument: "; ".join(sorted(whys)) for argument, whys in sorted(reasons.items())},
        faults=tuple(sorted(faults)),
        self_approval=_self_approval(rules),
        summaries=tuple(sorted({rule.summary for rule in rules} - {""})),
        remind=tuple(sorted({after for rule in rules for after in rule.remind})),
        escalate=tuple(sorted({rule.escalate for rule in rules if rule.escalate})),
    )


def _self_approval(rules: Sequence[Rule]) -> bool | None:
    said = {rule.self_approval for rule in rules} - {None}
    return None if not said else False not in said


def shared_decisions(rules: Sequence[Rule]) -> tuple[DecisionType, ...]:
    """Return the decisions that all of these rules allow."""
    sets = [set(rule.decisions) for rule in rules if rule.decisions is not None]
    shared = set.intersection(*sets) if sets else set(DEFAULT_DECISIONS)
    return tuple(item for item in _DECISIONS if item in shared)


def _thresholds(rules: Sequence[Rule]) -> tuple[Threshold, ...]:
    """Return what is demanded: a rule that does not escalate demands its own group's people for ever."""
    named = {threshold.escalating(rule.escalate) for rule in rules for threshold in rule.who}
    return tuple(sorted(named, key=Threshold.order)) or (Threshold(),)


def _ill_typed(rule: Rule) -> str | None:
    """Say what in a rule is of no kind that it can be; typing alone does not keep a caller from it."""
    given: object = () if rule.decisions is None else rule.decisions
    flags: object = rule.flags
    faults = {
        "'tool' is the name of a tool, or a glob": not _all_are((rule.tool,), str),
        "'name' is text": not _all_are((rule.name,), str),
        f"'effect' is one of {', '.join(_EFFECTS)}": rule.effect not in _EFFECTS,
        f"'risk' is one of {', '.join(_RISKS)}": rule.risk not in _RISKS,
        "'when' is made by predicate(version=…), or is Cel(…)": not _all_are(
            (rule.when,), Predicate | Cel | None
        )
        or (isinstance(rule.when, Cel) and not isinstance(rule.when.text, str)),
        "'who' is a tuple of thresholds": not _all_are(rule.who, Threshold),
        "'escalate' is an Escalation(…), which stands in the rule and in no threshold": not _all_are(
            (rule.escalate,), Escalation | None
        )
        or (_all_are(rule.who, Threshold) and any(threshold.also for threshold in rule.who)),
        "'remind' is a tuple of timedeltas": not _all_are(rule.remind, timedelta),
        f"'decisions' is a tuple of some of {', '.join(_DECISIONS)}": not _all_are(given, str)
        or any(item not in _DECISIONS for item in rule.decisions or ()),
        "'expire' is a timedelta, such as timedelta(hours=1)": not _all_are((rule.expire,), timedelta | None),
        "'reason' is True or False": not _all_are((rule.reason,), bool),
        "'summary' is text": not _all_are((rule.summary,), str),
        "'secret' is a tuple of names of arguments": not _all_are(rule.secret, str),
        "'self_approval' is True, False or None": not _all_are((rule.self_approval,), bool | None),
        "'flags' map names of arguments to text": not isinstance(flags, Mapping)
        or not _all_are((*flags.keys(), *flags.values()), str),
    }
    return next((said for said, wrong in faults.items() if wrong), None)


def _all_are(items: object, kind: type | UnionType) -> bool:
    return isinstance(items, list | tuple) and all(isinstance(item, kind) for item in items)


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    return {
        "tool": rule.tool,
        "effect": rule.effect.value,
        "when": None if rule.when is None else _condition_to_json(rule.when),
        "risk": rule.risk.value,
        "who": [{"approve": t.approve, "reject": t.reject, "group": t.group} for t in rule.who],
        "decisions": None if rule.decisions is None else [item.value for item in rule.decisions],
        "expire": None if rule.expire is None else rule.expire.total_seconds(),
        "reason": rule.reason,
        "flags": dict(rule.flags),
        "name": rule.name,
        # Only where it is said, so that the versions of older policies stay what they are.
        **({} if rule.self_approval is None else {"self_approval": rule.self_approval}),
        **({"summary": rule.summary} if rule.summary else {}),
        **({"secret": list(rule.secret)} if rule.secret else {}),
        **({"remind": [each.total_seconds() for each in rule.remind]} if rule.remind else {}),
        **({} if rule.escalate is None else {"escalate": rule.escalate.to_json()}),
    }


def _condition_to_json(condition: Predicate | Cel) -> dict[str, str]:
    if isinstance(condition, Cel):
        return {"cel": condition.text}
    return {"name": condition.name, "version": condition.version}
