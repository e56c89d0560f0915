"""The cases as they stand in their file: one JSON object a line, with tags for values that JSON lacks.

    {"$repeat": [text, n]}    the text, n times
    {"$join": [parts]}        the parts, one after the other
    {"$py": kind, "v": text}  a Python value: Decimal, datetime, bytes (hex), float, set, lone_surrogate (hex)

`{"$raw": text}` stays: it is what a model sent as arguments, before anybody read it. A text `$name` inside a
`for_each` stands for the value of this round.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

Step = dict[str, Any]
HERE = Path(__file__).parent
FILE = HERE / "cases.jsonl"
OURS = HERE / "more_cases.jsonl"
FIXTURES = HERE / "cases_fixtures.json"
TOLD = "told"
"""The op of a step that stands in its file as a plain text."""

_VALUES: Mapping[str, Callable[[Any], object]] = {
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "bytes": bytes.fromhex,
    "float": float,
    "set": set,
    "lone_surrogate": lambda code: chr(int(code, 16)),
}


class CaseError(Exception):
    """A case is written in words that the interpreter does not know; the message names them."""


@dataclass(frozen=True)
class Case:
    """One case. `form` says which of several forms of it this is; most have one."""

    id: str
    title: str
    steps: list[Step]
    expected: list[Step]
    kind: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    form: str = ""

    @property
    def name(self) -> str:
        """The id, with the form where there are several."""
        return f"{self.id} ({self.form})" if self.form else self.id


@dataclass(frozen=True)
class Fixtures:
    """What the cases take for granted: tools with their schemas, people, and policies by name."""

    tools: Mapping[str, Mapping[str, Any]]
    principals: Mapping[str, Mapping[str, Any]]
    policies: Mapping[str, Mapping[str, Any]]


def load(file: Path = FILE) -> list[Case]:
    """Return the cases of a file, in its order. Raises `CaseError` for a line that is no case."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            found.append(_case(line, where=f"{file.name}:{number}"))
    return found


def load_fixtures(file: Path = FIXTURES) -> Fixtures:
    """Return the tools, people and policies that the cases name."""
    value = json.loads(file.read_text(encoding="utf-8"))
    return Fixtures(value["tools"], value["principals"], value["policies"])


def fixtures_beside(file: Path) -> Fixtures:
    """Return the fixtures that lie beside a file of cases, else those of this folder."""
    beside = file.parent / FIXTURES.name
    return load_fixtures(beside if beside.exists() else FIXTURES)


def forms(case: Case) -> Iterator[Case]:
    """Give every form of a case: one for each of its variants, and for each order of hooks that it lists."""
    variants = case.input.get("variants") or [{}]
    orders = [step["hook_order"] for step in case.steps if step.get("hook_order")] or [[None]]
    for (place, variant), order in product(enumerate(variants, start=1), orders[0]):
        steps = [_varied(step, variant) for step in case.steps]
        if order is not None:
            steps = [{**step, "hook_order": order} if step.get("hooks") else step for step in steps]
        named = [f"variant {place}"] if len(variants) > 1 else []
        named += [order] if order is not None else []
        yield replace(case, steps=steps, form=", ".join(named))


def expand(value: Any) -> Any:
    """Return the value with every tag replaced by what it stands for."""
    match value:
        case list():
            return [expand(item) for item in value]
        case {"$repeat": [text, times], **rest} if not rest:
            return expand(text) * times
        case {"$join": parts, **rest} if not rest:
            return "".join(map(expand, parts))
        case {"$py": kind, "v": given, **rest} if not rest:
            if kind not in _VALUES:
                raise CaseError(f"The tag $py knows no kind {kind!r}.")
            return _VALUES[kind](given)
        case dict():
            return {name: expand(item) for name, item in value.items()}
        case _:
            return value


def substituted(value: Any, names: Mapping[str, Any]) -> Any:
    """Return the value with every text `$name` replaced by what the name stands for in this round."""
    match value:
        case str() if value.startswith("$") and value[1:] in names:
            return names[value[1:]]
        case list():
            return [substituted(item, names) for item in value]
        case dict():
            return {name: substituted(item, names) for name, item in value.items()}
        case _:
            return value


def every_step(steps: Sequence[Step]) -> Iterator[Step]:
    """Give every step, those inside of others too."""
    for step in steps:
        yield step
        yield from every_step(step.get("steps", []))
        yield from every_step(step.get("do", []))


def _case(line: str, *, where: str) -> Case:
    try:
        value = json.loads(line)
        return Case(
            id=value["id"],
            title=value.get("title", ""),
            steps=[_read_step(step) for step in _list(value["steps"])],
            expected=[_read_check(check) for check in _list(value["expected"])],
            kind=value.get("kind", ""),
            input=value.get("input") or {},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CaseError(f"{where} is no case: {type(error).__name__} {error}") from None


def _read_step(step: Any) -> Step:
    """Return a step, and those inside of it; one in plain text is a step `told` by its text."""
    if isinstance(step, str):
        return {"op": TOLD, "text": step}
    if not isinstance(step, dict):
        raise TypeError(f"{step!r} is no step")
    inner = {
        name: [_read_step(each) for each in _list(step[name])] for name in ("steps", "do") if name in step
    }
    return {"op": "", **step, **inner}


def _read_check(check: Any) -> Step:
    """Return a check; one in plain text is a property."""
    if isinstance(check, str):
        return {"check": "property", "text": check}
    if not isinstance(check, dict):
        raise TypeError(f"{check!r} is no check")
    return check


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _varied(step: Step, variant: Mapping[str, Any]) -> Step:
    """Return a step with what a variant replaces in it: the ids of the calls that are proposed."""
    unknown = set(variant) - {"ids"}
    if unknown:
        raise CaseError(f"The interpreter knows no variant by {', '.join(sorted(unknown))}.")
    if "ids" not in variant or step.get("op") != "propose":
        return step
    calls = step["calls"]
    if len(calls) != len(variant["ids"]):
        raise CaseError("A variant has another number of ids than its step has calls.")
    return {
        **step,
        "calls": [{**call, "id": new} for call, new in zip(calls, variant["ids"], strict=True)],
    }
