"""Policies in files: `policy.toml`, read strictly, with the line and column of everything that is wrong."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from clearance.errors import Fault, PolicyError
from clearance.expression import Cel
from clearance.policy import DecisionType, Effect, Escalation, Policy, Risk, Rule, Threshold
from clearance.policy_checks import Tools, findings

MAX_TEXT = 1024 * 1024
RULE_KEYS: Mapping[str, str] = {
    "name": "what the rule is called where people read of it",
    "tool": "the name of a tool, or a glob such as `delete_*`; required",
    "when": "a condition in CEL; without one the rule matches every call of the tool",
    "effect": "`allow`, `hold` or `deny`; without it `hold`",
    "risk": "`low`, `medium`, `high` or `critical`; without it `medium`",
    "who": 'thresholds, such as `{approve = 2, reject = 1, from = "group:finance"}`',
    "decisions": "what people may answer: `approve`, `edit`, `reject`, `respond`, `revise`",
    "expire": "after which time the review ends as a rejection: `90s`, `30m`, `4h`, `2d`, `1w`, `1d12h`",
    "remind": 'after which time people are told again: `"30m"`, or several: `["30m", "2h"]`',
    "escalate": 'who may decide too, and from when on: `{after = "2h", to = "group:leads"}`',
    "reason": '`true` or `"required"`: a rejection needs a written reason',
    "self_approval": "`true`: who asked may decide; `false`: never; without it the workspace's mode counts",
    "summary": "a sentence for people, with names of arguments in braces: `Pay {amount} to {to}`",
    "secret": "arguments that nobody is shown: names, with dots towards what is inside them: `card.number`",
    "flags": 'arguments to point out, with the reason: `{amount = "more than usual"}`',
}
"""The keys of a `[[rule]]`, and what each of them means."""

Word = TypeVar("Word", bound=StrEnum)
WHO_KEYS = ("approve", "reject", "from")
_LONGEST = timedelta(days=36_525)
_GROUP = "group:"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME = re.compile(r"(?:[0-9]{1,9}[smhdw])+")
# Possessive: a long line that fits neither is looked at once.
_HEADER = re.compile(r"\s*+(\[\[?)([^\]]*+)\]")
_KEY = re.compile(r"""\s*+(?:"([^"\\]*+)"|'([^']*+)'|([A-Za-z0-9_-]++))[^=]*+=\s*""")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_policy(text: str, *, tools: Tools | None = None, groups: Iterable[str] | None = None) -> Policy:
    """Return the policy that a file says, for these tools and groups; None is: not known, not checked.

    Raises `PolicyError`, whose `faults` name each place that is wrong as `line:column`.
    """
    places = _Places(text)
    reader = _Reader(places)
    policy = reader.policy(_parsed(text))
    if policy is None or reader.faults:
        raise _refused(sorted(reader.faults, key=_by_place))
    wrong = [
        Fault(places.of(finding.rule, finding.key, offset=finding.offset), finding.message)
        for finding in findings(policy, tools, groups=groups)
    ]
    if wrong:
        raise _refused(sorted(wrong, key=_by_place))
    return policy


def _by_place(fault: Fault) -> tuple[int, ...]:
    return tuple(map(int, fault.pointer.split(":")))


def place(text: str, rule: int | None, key: str, *, offset: int | None = None) -> str:
    """Return where in a file a key of a rule stands, as `line:column`."""
    return _Places(text).of(rule, key, offset=offset)


def duration(text: str) -> timedelta | None:
    """Return the time that a text such as `90s`, `30m`, `4h`, `2d`, `1w` or `1d12h` says; None for others."""
    if not _TIME.fullmatch(text):
        return None
    seconds = sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(.)", text))
    return timedelta(seconds=seconds) if seconds <= _LONGEST.total_seconds() else None


def _refused(faults: Iterable[Fault]) -> PolicyError:
    return PolicyError("The policy file cannot be used.", faults=tuple(faults))


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > MAX_TEXT:
        raise _refused([Fault("1:1", f"is longer than {MAX_TEXT} characters")])
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = _AT.search(said)
        lines = text.splitlines() or [""]
        end = f"{len(lines)}:{len(lines[-1]) + 1}"
        at = end if found is None or found.group(1) is None else f"{found.group(1)}:{found.group(2)}"
        raise _refused([Fault(at, f"is no TOML: {_AT.sub('', said)}")]) from None
    except RecursionError:
        raise _refused([Fault("1:1", "is nested too deep")]) from None


class _Places:
    """Where the keys of a file stand. The parser keeps no places, so they are looked up in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[tuple[int | None, str], tuple[int, int]] = {}
        rule, table, quoted = -1, "", ""
        for number, line in enumerate(text.split("\n"), start=1):
            if not quoted and (header := _HEADER.match(line)):
                table = header.group(2).strip()
                rule += header.group(1) == "[[" and table == "rule"
                key = "rule" if table == "rule" else table.removeprefix("rule.").partition(".")[0]
                self._note(rule, table, key, number, header.start(1) + 1)
            elif not quoted and (key_found := _KEY.match(line)):
                key = next(part for part in key_found.groups() if part is not None)
                self._note(rule, table, key, number, key_found.end() + 1)
            quoted = _still_quoted(line, quoted)

    def of(self, rule: int | None, key: str, *, offset: int | None = None) -> str:
        """Return the place of a key's value, or of its rule; within a text, of the character at `offset`."""
        found = self._found.get((rule, key)) or self._found.get((rule, "rule"))
        line, column = found or self._found.get((None, "rule")) or (1, 1)
        if offset is not None:
            line, column = self._inside(line, column, offset)
        return f"{line}:{column}"

    def _note(self, rule: int, table: str, key: str, line: int, column: int) -> None:
        owner = rule if table == "rule" or table.startswith("rule.") else None
        self._found.setdefault((owner, key), (line, column))

    def _inside(self, line: int, column: int, offset: int) -> tuple[int, int]:
        """Return the place of a character of a quoted text; of the text itself where it has escapes."""
        start = sum(len(each) + 1 for each in self._text.split("\n")[: line - 1]) + column - 1
        rest = self._text[start:]
        mark = next((mark for mark in ("'''", '"""', "'", '"') if rest.startswith(mark)), "")
        body = rest[len(mark) :]
        if len(mark) == 3 and body.startswith("\n"):
            # The first line break of a long text is not part of it.
            mark, body = mark + "\n", body[1:]
        if mark.startswith('"') and "\\" in body[:offset]:
            return line, column
        before = (mark + body[:offset]).split("\n")
        return line + len(before) - 1, len(before[-1]) + (column if len(before) == 1 else 1)


def _still_quoted(line: str, quoted: str) -> str:
    """Return the mark of the long text that is open behind a line."""
    for mark in re.findall(r"'''|\"\"\"", line):
        if not quoted:
            quoted = mark
        elif quoted == mark:
            quoted = ""
    return quoted


@dataclass
class _Reader:
    """Makes values of what the parser gave, and notes everything that is wrong on the way."""

    places: _Places

    def __post_init__(self) -> None:
        self.faults: list[Fault] = []

    def policy(self, value: Mapping[str, Any]) -> Policy | None:
        """Return the policy, as far as it could be read."""
        for key in value.keys() - {"default", "rule"}:
            self._wrong(None, key, f"there is no key {key!r} here; a policy has default and [[rule]]")
        default = self._word(None, "default", value.get("default", Effect.HOLD.value), kind=Effect)
        rules = value.get("rule", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            self._wrong(None, "rule", "each rule is a table of its own: [[rule]]")
            return None
        made = [self._rule(number, rule) for number, rule in enumerate(rules)]
        if self.faults or default is None:
            return None
        return Policy(rules=tuple(rule for rule in made if rule is not None), default=default)

    def _rule(self, number: int, value: Mapping[str, Any]) -> Rule | None:
        for key in [key for key in value if key not in RULE_KEYS]:
            known = ", ".join(RULE_KEYS)
            self._wrong(number, key, f"a rule has no key {key!r}; it has {known}")
        if "tool" not in value:
            self._wrong(number, "rule", 'a rule names its tool, or a glob: tool = "*"')
        before = len(self.faults)
        given: dict[str, Any] = {}
        for key, read in self._readers().items():
            if key in value:
                given[key] = read(number, key, value[key])
        if len(self.faults) > before or "tool" not in given:
            return None
        try:
            return Rule(**given)
        except PolicyError as error:
            self._wrong(number, "rule", str(error))
            return None

    def _readers(self) -> Mapping[str, Callable[[int, str, Any], Any]]:
        return {
            "name": self._text,
            "tool": self._text,
            "when": lambda number, key, value: Cel(self._text(number, key, value)),
            "effect": lambda number, key, value: self._word(number, key, value, kind=Effect),
            "risk": lambda number, key, value: self._word(number, key, value, kind=Risk),
            "who": self._who,
            "decisions": self._decisions,
            "expire": self._time,
            "remind": self._remind,
            "escalate": self._escalate,
            "reason": lambda number, key, value: value == "required" or self._bool(number, key, value),
            "self_approval": self._bool,
            "flags": self._flags,
            "secret": self._names,
            "summary": self._text,
        }

    def _wrong(self, number: int | None, key: str, message: str) -> None:
        self.faults.append(Fault(self.places.of(number, key), message))

    def _text(self, number: int, key: str, value: object) -> str:
        if isinstance(value, str) and value.strip():
            return value
        self._wrong(number, key, f"{key} is text that is not empty")
        return ""

    def _bool(self, number: int, key: str, value: object) -> bool:
        if isinstance(value, bool):
            return value
        more = ', or "required"' if key == "reason" else ""
        self._wrong(number, key, f"{key} is true or false{more}")
        return False

    def _word(self, number: int | None, key: str, value: object, *, kind: type[Word]) -> Word | None:
        if isinstance(value, str) and value in tuple(kind):
            return kind(value)
        self._wrong(number, key, f"{key} is one of {', '.join(kind)}")
        return None

    def _decisions(self, number: int, key: str, value: object) -> tuple[DecisionType, ...]:
        if isinstance(value, list) and all(
            isinstance(item, str) and item in tuple(DecisionType) for item in value
        ):
            return tuple(DecisionType(item) for item in value)
        self._wrong(number, key, f"decisions is a list of some of {', '.join(DecisionType)}")
        return ()

    def _time(self, number: int, key: str, value: object) -> timedelta | None:
        found = duration(value) if isinstance(value, str) else None
        if found is not None:
            return found
        self._wrong(number, key, f"{key} is a time such as 90s, 30m, 4h, 2d, 1w or 1d12h")
        return None

    def _names(self, number: int, key: str, value: object) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(item, str) and item.strip("/.") for item in value):
            return tuple(value)
        self._wrong(number, key, f'{key} is a list of names of arguments: ["password", "card.number"]')
        return ()

    def _remind(self, number: int, key: str, value: object) -> tuple[timedelta, ...]:
        items = value if isinstance(value, list) else [value]
        found = [self._time(number, key, item) for item in items]
        return tuple(item for item in found if item is not None)

    def _escalate(self, number: int, key: str, value: object) -> Escalation | None:
        if not isinstance(value, dict) or value.keys() != {"after", "to"}:
            self._wrong(number, key, f'escalate is {{after = "2h", to = "{_GROUP}NAME"}}')
            return None
        after, to = self._time(number, key, value["after"]), self._group(number, key, value["to"], "to")
        return None if after is None or to is None else Escalation(after, to)

    def _group(self, number: int, key: str, value: object, word: str) -> str | None:
        if isinstance(value, str) and value.removeprefix(_GROUP).strip() not in ("", value):
            return value.removeprefix(_GROUP)
        self._wrong(number, key, f'{word} names a group: "{_GROUP}NAME"')
        return None

    def _flags(self, number: int, key: str, value: object) -> Mapping[str, str]:
        if isinstance(value, dict) and all(isinstance(why, str) for why in value.values()):
            return value
        self._wrong(number, key, 'flags name arguments, each with a reason: {amount = "large"}')
        return {}

    def _who(self, number: int, key: str, value: object) -> tuple[Threshold, ...]:
        items = value if isinstance(value, list) else [value]
        return tuple(found for item in items if (found := self._threshold(number, key, item)) is not None)

    def _threshold(self, number: int, key: str, value: object) -> Threshold | None:
        if not isinstance(value, dict) or not value.keys() <= set(WHO_KEYS):
            self._wrong(number, key, 'who is a list of {approve = 1, reject = 1, from = "group:NAME"}')
            return None
        counts = {name: value.get(name, 1) for name in ("approve", "reject")}
        for name, count in counts.items():
            if type(count) is not int or count < 1:
                self._wrong(number, key, f"{name} counts people: a whole number from 1")
                return None
        if "from" not in value:
            return Threshold(**counts)
        group = self._group(number, key, value["from"], "from")
        return None if group is None else Threshold(**counts, group=group)
