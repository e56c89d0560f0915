"""Conditions that the cases put into words, made into what a policy of ours takes: functions on arguments.

A condition says when people are asked. Whatever it cannot read it answers by raising: then the call is held.
"""

import re
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.journeys.cases.loading import CaseError

Condition = Callable[[dict[str, Any]], Any]

_RECIPIENTS = ("to", "cc", "bcc")
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)")
_NAMED = re.compile(r"[A-Za-z0-9 .'-]*<([^<>]*)>")


def condition(said: object, *, folder: Path) -> Condition:
    """Return the function that a `when` means. `folder` keeps what it must remember from call to call."""
    match said:
        case str():
            return _from_text(said, folder=folder)
        case Mapping():
            return _from_table(said)
    raise CaseError(f"The interpreter knows no condition {said!r}.")


def negated(found: Condition) -> Condition:
    """Return the condition of an `unless`: people are asked where it does not hold."""

    def unless(arguments: dict[str, Any]) -> bool:
        return not found(arguments)

    return unless


def rule_function(said: str) -> Condition:
    """Return a rule function that misbehaves in the way that is described."""
    match re.sub(r"\s+", " ", said.strip()):
        case "returns None":
            return lambda _: None
        case "returns a coroutine that is not awaited":

            async def later(_: dict[str, Any]) -> bool:
                return False

            return later
        case "sleeps longer than its limit":

            def slow(_: dict[str, Any]) -> bool:
                time.sleep(30)
                return False

            return slow
    if found := re.fullmatch(r"returns (?:'([^']*)'|(-?\d+(?:\.\d+)?)|(\[\]|\{\}))", said):
        text, number, _ = found.groups()
        value: object = text if text is not None else _number(number) if number else []
        return lambda _: value
    if found := re.fullmatch(r"raises (\w+)(?:\((.*)\))?", said):
        return _raising(found[1])
    raise CaseError(f"The interpreter knows no rule function that {said!r}.")


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _raising(name: str) -> Condition:
    import builtins

    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise CaseError(f"There is no error {name!r} to raise.")

    def failing(_: dict[str, Any]) -> bool:
        raise kind("the rule function is broken")

    return failing


def _from_text(said: str, *, folder: Path) -> Condition:
    if found := re.fullmatch(r"(\w+) contains '([^']*)'", said):
        name, part = found.groups()
        return lambda arguments: part in arguments[name]
    if found := re.fullmatch(r"any recipient outside ([\w.-]+)", said):
        own = found[1]
        return lambda arguments: any(domain != own for domain in _domains(arguments))
    if found := re.fullmatch(r"whole (\w+) is one of: ([^;]*)(?:; (.*))?", said):
        return _whole(*found.groups())
    if said == "answers yes the first time, no afterwards":
        return _once(folder)
    raise CaseError(f"The interpreter knows no condition {said!r}.")


def _from_table(said: Mapping[str, Any]) -> Condition:
    if set(said) == {"recipient_in"}:
        listed = [str(item).lower() for item in said["recipient_in"]]
        return lambda arguments: all(domain in listed for domain in _domains(arguments))
    raise CaseError(f"The interpreter knows no condition by {', '.join(sorted(said))}.")


def _whole(name: str, forms: str, words: str | None) -> Condition:
    """Return whether all of an argument is one of some texts, in which `<word>` stands for a pattern."""
    patterns = dict(re.findall(r"(\w+) = ([^;]+)", words or ""))
    allowed = []
    for form in forms.split(", "):
        parts = re.split(r"<(\w+)>", form)
        unknown = [part for part in parts[1::2] if part not in patterns]
        if unknown:
            raise CaseError(f"The condition does not say what <{unknown[0]}> is.")
        allowed.append(
            "".join(patterns[part] if odd else re.escape(part) for part, odd in _alternating(parts))
        )
    return lambda arguments: any(re.fullmatch(pattern, arguments[name]) for pattern in allowed)


def _alternating(parts: list[str]) -> list[tuple[str, bool]]:
    return [(part, place % 2 == 1) for place, part in enumerate(parts)]


def _once(folder: Path) -> Condition:
    def first_time(_: dict[str, Any]) -> bool:
        try:
            (folder / "asked-once").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    return first_time


def _domains(arguments: Mapping[str, Any]) -> list[str]:
    """Return the domain of every recipient; raise for one that could be read in two ways, or for none."""
    found = []
    for name in _RECIPIENTS:
        given = arguments.get(name, [])
        for text in given if isinstance(given, list) else [given]:
            found.append(_domain(text))
    if not found:
        raise ValueError("there is no recipient")
    return found


def _domain(text: str) -> str:
    named = _NAMED.fullmatch(text)
    address = _ADDRESS.fullmatch(named[1] if named else text)
    if address is None:
        raise ValueError("this is not one plain address")
    return unicodedata.normalize("NFKC", address[1]).lower()
