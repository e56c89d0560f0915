"""Paths into a tool's schema: what it says of a part of the arguments, before there are any.

A schema says what may be there in many ways, and often nothing. Wherever it leaves a part open, or says it
in a way that is not looked into here, the answer is that it is not known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clearance.redaction import referred

_ALSO = ("then", "else")
_KINDS = {"string": "text", "integer": "number", "number": "number", "boolean": "bool", "null": "null"}
_DEEPEST = 16
"""How many lists in lists are looked into."""
_COMPOSED = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas")


@dataclass(frozen=True)
class Missing:
    """A step that leads nowhere: its place among the steps, and the names that there are in its place."""

    place: int
    known: tuple[str, ...]


def missing(schema: Mapping[str, Any], steps: Sequence[str]) -> Missing | None:
    """Return the first step, behind that to an argument, that no value which fits has; None: there is none.

    A list is walked as a policy's names are: a number means one item, everything else each of them. Names
    that a part lists are all that it has, unless it says that it takes others.
    """
    parts: list[Any] = [schema]
    for place, step in enumerate(steps):
        forms = _forms(schema, parts)
        inner = _inside(schema, forms, step, each=True)
        if inner is None:
            return None
        if not inner:
            return Missing(place, tuple(sorted(_names(schema, forms)))) if place else None
        parts = inner
    return None


def kinds(schema: Mapping[str, Any], path: Sequence[str | int | None]) -> frozenset[str] | None:
    """Return the kinds of value that may stand at a path (None: each item of a list); None: not known.

    They are text, number, bool, null, and other for objects and lists; none where nothing may stand there.
    """
    parts: list[Any] = [schema]
    for step in path:
        inner = _inside(schema, _forms(schema, parts), step, each=False)
        if inner is None:
            return None
        parts = inner
    found: set[str] = set()
    for part in parts:
        said = _kinds_of(schema, part)
        if said is None:
            return None
        found |= said
    return frozenset(found)


@dataclass(frozen=True)
class _Form:
    """One of the parts by which a schema speaks of a value. `alone`: nothing else bounds the value there."""

    part: Mapping[str, Any]
    alone: bool


def _forms(root: Mapping[str, Any], parts: Sequence[Any]) -> list[_Form]:
    """Return everything that is said of a value of any of these parts; what is no object leaves all open."""
    found: list[_Form] = []
    for part in parts:
        found += _composed(root, part, alone=True, passed=set())
    return found


def _composed(root: Mapping[str, Any], part: Any, *, alone: bool, passed: set[int]) -> Iterator[_Form]:
    if part is False or id(part) in passed:
        return
    if not isinstance(part, Mapping):
        yield _Form({}, alone)
        return
    passed.add(id(part))
    yield _Form(part, alone and not any(name in part for name in _COMPOSED))
    for name in ("$ref", "$dynamicRef"):
        if isinstance(part.get(name), str):
            yield from _composed(root, referred(root, part[name]), alone=alone, passed=passed)
    for name in ("anyOf", "oneOf"):
        for each in part[name] if isinstance(part.get(name), list) else ():
            yield from _composed(root, each, alone=alone and "properties" not in part, passed=passed)
    dependent = part.get("dependentSchemas")
    also = [part[name] for name in _ALSO if name in part]
    also += part["allOf"] if isinstance(part.get("allOf"), list) else []
    also += dependent.values() if isinstance(dependent, Mapping) else []
    for each in also:
        yield from _composed(root, each, alone=False, passed=passed)


def _inside(
    root: Mapping[str, Any],
    forms: Sequence[_Form],
    step: str | int | None,
    *,
    each: bool,
    deep: int = _DEEPEST,
) -> list[Any] | None:
    """Return the parts that a step leads to; None where it is not known what is there.

    `each` says that a name in a list is that of a part of each item.
    """
    found: list[Any] = []
    says, is_open = _is_single(forms), deep == 0
    for form in forms if deep else ():
        inner = _member(form, step) if isinstance(step, str) else []
        says, is_open = says or _says_members(form.part), is_open or inner is None
        found += inner or []
        if not _may_be(form, "array") or (isinstance(step, str) and not each):
            continue
        inner = items = _items(form, step)
        if items and isinstance(step, str) and not step.isdecimal():
            inner = _inside(root, _forms(root, items), step, each=each, deep=deep - 1)
        says, is_open = says or bool(items), is_open or inner is None
        found += inner or []
    if found or is_open or not says:
        return found or None
    return []


def _is_single(forms: Sequence[_Form]) -> bool:
    """Whether all that is said of a value is that it is neither an object nor a list."""
    types = {each for form in forms for each in _types(form.part)}
    return bool(types) and types.isdisjoint(("object", "array"))


def _says_members(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("properties"), Mapping) or part.get("additionalProperties") is False


def _member(form: _Form, name: str) -> list[Any] | None:
    """Return the part for a name in an object; None where the object may have others than it lists."""
    part = form.part
    properties = part.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return [properties[name]]
    more = [part.get(key) for key in ("additionalProperties", "unevaluatedProperties")]
    given = [each for each in more if each not in (None, False)]
    if part.get("patternProperties") or any(not isinstance(each, Mapping) for each in given):
        return None
    if given or _says_members(part) or not _may_be(form, "object"):
        return given
    return None if form.alone else []


def _items(form: _Form, step: str | int | None) -> list[Any] | None:
    """Return the parts for the items of a list, or for one of them; None where they may be anything."""
    part = form.part
    first = part.get("prefixItems")
    first = first if isinstance(first, list) else []
    rest = [part[name] for name in ("items", "unevaluatedItems") if part.get(name) not in (None, True)]
    number = int(step) if step is not None and str(step).isdecimal() else None
    if number is not None and number < len(first):
        return [first[number]]
    chosen = rest if number is not None else [*first, *rest]
    chosen = [each for each in chosen if each is not False]
    return chosen or ([] if rest or not form.alone or not _is_list(part) else None)


def _is_list(part: Mapping[str, Any]) -> bool:
    """Whether a part allows for a list by name; one that names no type is taken for what its parts say."""
    return "array" in _types(part)


def _may_be(form: _Form, kind: str) -> bool:
    types = _types(form.part)
    return not types or kind in types


def _types(part: Mapping[str, Any]) -> list[str]:
    said = part.get("type")
    return [said] if isinstance(said, str) else list(said) if isinstance(said, list) else []


def _names(root: Mapping[str, Any], forms: Sequence[_Form]) -> set[str]:
    """Return the names that are listed for a value, or for the items of a list."""
    found: set[str] = set()
    waiting, passed = list(forms), set()
    while waiting:
        form = waiting.pop()
        if id(form.part) in passed:
            continue
        passed.add(id(form.part))
        properties = form.part.get("properties")
        found |= set(properties) if isinstance(properties, Mapping) else set()
        waiting += _forms(root, _items(form, None) or [])
    return found


def _kinds_of(root: Mapping[str, Any], part: Any) -> set[str] | None:
    """Return the kinds that the forms of a part allow for; None where one of them allows for any."""
    found: set[str] = set()
    for form in _forms(root, [part]):
        types = _types(form.part)
        if types:
            found |= {_KINDS.get(each, "other") for each in types}
        elif "const" in form.part or "enum" in form.part or form.alone:
            return None
    return found or None
