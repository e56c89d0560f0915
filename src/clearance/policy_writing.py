"""Policies written as files: what a program's code brought, as the text that a person goes on from."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta

from clearance.policy import Effect, Policy, Predicate, Rule, Threshold

_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_policy(policy: Policy) -> str:
    """Return the text of a policy file that says the same as a policy.

    A condition in Python cannot stand in a file: its rule is written without it, at least as strict, and with
    a comment that says so. Times are in whole seconds, rounded up.
    """
    parts = [f"default = {_quoted(policy.default)}\n", *map(_rule, policy.rules)]
    return "\n".join(parts)


def time_text(span: timedelta) -> str:
    """Return a time as a policy file has it: `1d12h`; `0s` for none."""
    left = -(-span // timedelta(seconds=1))
    said = ""
    for unit, size in _UNITS:
        # A week is easily read only alone.
        count = left // size if unit != "w" or left % size == 0 else 0
        left -= count * size
        said += f"{count}{unit}" if count else ""
    return said or "0s"


def _rule(rule: Rule) -> str:
    lines = ["[[rule]]", *(f"{key} = {value}" for key, value in _values(rule))]
    if isinstance(rule.when, Predicate):
        what = f"{rule.when.name} (version {rule.when.version})".splitlines()[0]
        lines.insert(1, f"# The code's condition {what} cannot stand in a file: this is for every such call.")
    return "\n".join(lines) + "\n"


def _values(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.name:
        yield "name", _quoted(rule.name)
    yield "tool", _quoted(rule.tool)
    effect = rule.effect
    if isinstance(rule.when, Predicate):
        effect = Effect.HOLD if effect is Effect.ALLOW else effect
    elif rule.when is not None:
        yield "when", _quoted(rule.when.text)
    yield "effect", _quoted(effect)
    yield "risk", _quoted(rule.risk)
    if rule.who:
        yield "who", _listed(map(_threshold, rule.who))
    if rule.decisions is not None:
        yield "decisions", _listed(map(_quoted, rule.decisions))
    if rule.expire is not None:
        yield "expire", _quoted(time_text(rule.expire))
    if rule.remind:
        yield "remind", _listed(_quoted(time_text(each)) for each in rule.remind)
    if rule.escalate is not None:
        to = {"after": time_text(rule.escalate.after), "to": f"group:{rule.escalate.to}"}
        yield "escalate", _table({name: _quoted(text) for name, text in to.items()})
    if rule.reason:
        yield "reason", "true"
    if rule.self_approval is not None:
        yield "self_approval", str(rule.self_approval).lower()
    if rule.summary:
        yield "summary", _quoted(rule.summary)
    if rule.secret:
        yield "secret", _listed(map(_quoted, rule.secret))
    if rule.flags:
        yield "flags", _table({name: _quoted(why) for name, why in rule.flags.items()})


def _threshold(threshold: Threshold) -> str:
    counts = {"approve": str(threshold.approve), "reject": str(threshold.reject)}
    group = {} if threshold.group is None else {"from": _quoted(f"group:{threshold.group}")}
    return _table({**counts, **group})


def _table(values: Mapping[str, str]) -> str:
    pairs = (f"{name if _BARE.fullmatch(name) else _quoted(name)} = {text}" for name, text in values.items())
    return "{" + ", ".join(pairs) + "}"


def _listed(values: Iterator[str]) -> str:
    return "[" + ", ".join(values) + "]"


def _quoted(text: str) -> str:
    """Return a text as TOML has it: as it is where that can be, for what is quoted inside stays readable."""
    if text.isprintable() and "'" not in text and ('"' in text or "\\" in text):
        return f"'{text}'"
    # What JSON escapes, TOML escapes in the same way; it escapes one character more.
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
