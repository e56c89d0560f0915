"""Redaction: which parts of a call's arguments are secret, and the same arguments with masks in their place.

A part is secret where the tool's schema says `"x-secret": true`, or where a rule of the policy names it. What
is executed, and what the fingerprint covers, are the arguments themselves; masks are for whoever reads them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from clearance.errors import Fault, InvalidArgumentsError
from clearance.schema import pointer
from clearance.toolcall import argument_text, parse_arguments

SECRET = "x-secret"
_MOST = 50_000
"""How many parts of a schema are looked at for one call; beyond that all of the call is secret."""
_MASK = re.compile(r"•••• \(secret, [^()]*\)")
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_SAME = ("allOf", "anyOf", "oneOf")
_ALSO = ("if", "then", "else", "not")
_SHORTEST = 4
"""Texts below this length stand in other texts by chance, and are not looked for there."""
_ABSENT = object()

Path = tuple[str, ...]


def secrets_in(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the JSON pointers of those parts of the arguments that the schema calls secret.

    It does where any form that it allows for a part does: in doubt a part is secret. What a schema says
    behind a reference that leads out of it counts as secret too, once the schema has secrets at all.
    """
    if not speaks_of_secrets(schema):
        return frozenset()
    look = _Look(schema)
    look.at(schema, arguments, ())
    if look.left < 0 or () in look.found:
        return frozenset(pointer([name]) for name in arguments)
    return frozenset(pointer(list(path)) for path in look.found)


def named_in(names: Iterable[str], arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the JSON pointers of those parts of the arguments that a policy names.

    A name is that of an argument, with dots towards what is inside it (`card.number`), or a JSON pointer
    (`/card/number`). In a list it means that part of each item.
    """
    return frozenset(
        pointer(list(path)) for name in names for path in _named(arguments, steps_of(name), path=())
    )


def masked(text: str, pointers: Collection[str]) -> str:
    """Return the JSON text of arguments with a mask in place of each of these parts.

    Everything else is byte for byte as it was. What is not there is not masked, and nothing is added.
    """
    if not pointers:
        return text
    done, at = [], 0
    for start, end in _spans(text, frozenset(pointers)):
        done += [text[at:start], json.dumps(mask(json.loads(text[start:end])), ensure_ascii=False)]
        at = end
    return "".join([*done, text[at:]])


def mask(value: Any) -> str:
    """Return what is shown in place of a secret: what sort it is of, and how long a text is."""
    match value:
        case str():
            what = f"{len(value)} character{'' if len(value) == 1 else 's'}"
        case bool():
            what = "true or false"
        case int() | float():
            what = "a number"
        case list():
            what = "a list"
        case None:
            what = "nothing"
        case _:
            what = "an object"
    return f"•••• (secret, {what})"


def unmasked(text: str, *, before: str, pointers: Collection[str]) -> str:
    """Return the arguments of an edit with the secrets that it left as they were shown.

    `before` are the arguments that were shown, masked at `pointers`. A mask that stands where it was shown is
    the secret; inside a list it is so only while the list is as it was. Raises `InvalidArgumentsError` for a
    mask anywhere else: which value was meant cannot be told.
    """
    if _MASK.search(text) is None and "\\u2022" not in text.lower():
        return text
    sent = parse_arguments(text)
    faults: list[Fault] = []
    shown = parse_arguments(masked(before, pointers))
    kept = _restored(sent, shown, parse_arguments(before), path=(), faults=faults)
    if faults:
        raise InvalidArgumentsError("A mask is no value.", faults=faults)
    return text if kept == sent else argument_text(kept)


def scrubbed(text: str, secrets: Collection[str]) -> str:
    """Return a text with a mask wherever one of these secret texts stands in it, word for word."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, mask(secret))
    return text


def scrubbed_json(text: str, secrets: Collection[str]) -> str:
    """As `scrubbed`, of JSON text: a secret text stands there as JSON writes it."""
    for secret in sorted(secrets, key=len, reverse=True):
        for written in (json.dumps(secret, ensure_ascii=False), json.dumps(secret)):
            text = text.replace(written[1:-1], mask(secret))
    return text


def secret_texts(text: str, pointers: Collection[str]) -> frozenset[str]:
    """Return the texts in secret parts of arguments that are long enough for `scrubbed` to find them."""
    found: set[str] = set()
    for start, end in _spans(text, frozenset(pointers)) if pointers else ():
        found.update(_texts(json.loads(text[start:end])))
    return frozenset(each for each in found if len(each) >= _SHORTEST)


class _Look:
    """One look through a schema and the arguments side by side. `found` are the paths that are secret."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.found: set[Path] = set()
        self.left = _MOST
        self._root = root
        self._seen: set[tuple[int, Path]] = set()

    def at(self, part: Any, value: Any, path: Path) -> None:
        """Look at a part of the schema that the value at this path has to fit."""
        self.left -= 1
        if not isinstance(part, Mapping) or self.left < 0 or (id(part), path) in self._seen:
            return
        self._seen.add((id(part), path))
        if part.get(SECRET) is True:
            self.found.add(path)
        for name in ("$ref", "$dynamicRef"):
            if isinstance(part.get(name), str):
                self._follow(part[name], value, path)
        inside = [part[name] for name in _ALSO if name in part]
        inside += [each for name in _SAME if isinstance(part.get(name), list) for each in part[name]]
        dependent = part.get("dependentSchemas")
        inside += dependent.values() if isinstance(dependent, Mapping) else ()
        for each in inside:
            self.at(each, value, path)
        if isinstance(value, Mapping):
            self._members(part, value, path)
        elif isinstance(value, list):
            self._items(part, value, path)

    def _members(self, part: Mapping[str, Any], value: Mapping[str, Any], path: Path) -> None:
        properties, patterns = part.get("properties"), part.get("patternProperties")
        for name, item in value.items():
            if isinstance(properties, Mapping) and name in properties:
                self.at(properties[name], item, (*path, name))
            # Whichever pattern it fits: a secret too many is better than one too few.
            for each in patterns.values() if isinstance(patterns, Mapping) else ():
                self.at(each, item, (*path, name))
            if not (isinstance(properties, Mapping) and name in properties):
                self.at(part.get("additionalProperties"), item, (*path, name))
                self.at(part.get("unevaluatedProperties"), item, (*path, name))

    def _items(self, part: Mapping[str, Any], value: list[Any], path: Path) -> None:
        first = part.get("prefixItems")
        first = first if isinstance(first, list) else []
        for number, item in enumerate(value):
            here = (*path, str(number))
            if number < len(first):
                self.at(first[number], item, here)
            for name in ("items", "contains", "unevaluatedItems"):
                self.at(part.get(name), item, here)

    def _follow(self, reference: str, value: Any, path: Path) -> None:
        part = referred(self._root, reference)
        if part is None:
            self.found.add(path)
        else:
            self.at(part, value, path)


def referred(root: Mapping[str, Any], reference: str) -> Any:
    """Return the part of a schema that a reference inside it names; None where there is none."""
    if reference != "#" and not reference.startswith("#/"):
        anchors = (part for part in _parts(root) if reference in (_hash(part, "$anchor"), _hash(part)))
        return next(anchors, None)
    part: Any = root
    for name in reference[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping) and name in part:
            part = part[name]
        elif isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part


def _hash(part: Mapping[str, Any], name: str = "$dynamicAnchor") -> str:
    return f"#{part.get(name)}"


def speaks_of_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether a schema calls anything secret."""
    return any(part.get(SECRET) is True for part in _parts(schema))


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a schema."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def steps_of(name: str) -> list[str]:
    """Return the steps into the arguments that a name in a policy stands for."""
    if name.startswith("/"):
        return [step.replace("~1", "/").replace("~0", "~") for step in name[1:].split("/")]
    return name.split(".")


def _named(value: Any, steps: list[str], *, path: Path) -> Iterator[Path]:
    if not steps:
        yield path
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _named(value[steps[0]], steps[1:], path=(*path, steps[0]))
    elif isinstance(value, list):
        chosen = steps[0].isdecimal() and int(steps[0]) < len(value)
        for number, item in enumerate(value):
            if chosen and number == int(steps[0]):
                yield from _named(item, steps[1:], path=(*path, str(number)))
            elif not chosen:
                yield from _named(item, steps, path=(*path, str(number)))


def _spans(text: str, wanted: frozenset[str]) -> list[tuple[int, int]]:
    """Return where in a JSON text the values at these pointers stand, in order, none inside another."""
    found: list[tuple[int, int]] = []
    _walk(text, _SPACE.match(text, 0).end(), "", wanted=wanted, found=found)  # type: ignore[union-attr]
    return found


def _walk(text: str, at: int, here: str, *, wanted: frozenset[str], found: list[tuple[int, int]]) -> int:
    """Go through the value that begins at a place, and return where it ends."""
    if here in wanted:
        _, end = _DECODER.raw_decode(text, at)
        found.append((at, end))
        return end
    if text[at] not in "{[":
        return _DECODER.raw_decode(text, at)[1]
    is_object, number, at = text[at] == "{", 0, _after_space(text, at + 1)
    while text[at] not in "}]":
        name = str(number)
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        at = _walk(text, at, here + pointer([name]), wanted=wanted, found=found)
        at, number = _after_space(text, at), number + 1
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return at + 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _restored(sent: Any, shown: Any, original: Any, *, path: Path, faults: list[Fault]) -> Any:
    """Return what was sent with the secrets in place of their masks, and note the masks of none."""
    match sent:
        case str():
            if _MASK.search(sent) is None:
                return sent
            if sent == shown:
                return original
            faults.append(Fault(pointer(list(path)), _REFUSED))
            return sent
        case dict():
            old = (shown, original) if isinstance(shown, dict) and isinstance(original, dict) else ({}, {})
            return {
                name: _restored(
                    item,
                    old[0].get(name, _ABSENT),
                    old[1].get(name, _ABSENT),
                    path=(*path, name),
                    faults=faults,
                )
                for name, item in sent.items()
            }
        case list():
            if json.dumps(sent) == json.dumps(shown, default=str):
                return original
            return [
                _restored(item, _ABSENT, _ABSENT, path=(*path, str(number)), faults=faults)
                for number, item in enumerate(sent)
            ]
        case _:
            return sent


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


_REFUSED = "is the mask of a secret, not a value; write the value, or leave what was shown where it was"
