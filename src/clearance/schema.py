"""Tool schemas: what fits one, which defaults it writes down, and its hash."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clearance.errors import Fault, InvalidArgumentsError
from clearance.toolcall import canonical, parse_arguments

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

# Messages of `jsonschema` quote the faulty value; these sentences name the rule alone, so that an argument
# never reaches a log line by way of an error.
_RULES = {
    "type": "must be {expected}",
    "enum": "must be one of {expected}",
    "const": "must be {expected}",
    "required": "is missing",
    "additionalProperties": "is not known to this tool",
    "minimum": "must be at least {expected}",
    "maximum": "must be at most {expected}",
    "exclusiveMinimum": "must be more than {expected}",
    "exclusiveMaximum": "must be less than {expected}",
    "multipleOf": "must be a multiple of {expected}",
    "minLength": "must have at least {expected} characters",
    "maxLength": "must have at most {expected} characters",
    "minItems": "must have at least {expected} items",
    "maxItems": "must have at most {expected} items",
    "uniqueItems": "must not repeat an item",
    "pattern": "must match {expected}",
    "format": "must be a valid {expected}",
    "anyOf": "fits none of the forms that are allowed here",
    "oneOf": "must fit exactly one of the forms that are allowed here",
}


MOST_STEPS = 300_000
"""How much may be looked at for one call: a schema can refer to itself so that there is no end to it."""


class EndlessError(Exception):
    """A schema that asks for more than `MOST_STEPS`."""


@dataclass
class _Steps:
    """What is left to look at."""

    left: int = MOST_STEPS

    def take(self, *parts: object) -> None:
        """Count one step, and as many more as the parts have members."""
        self.left -= 1 + sum(len(part) for part in parts if isinstance(part, Mapping | list))
        if self.left < 0:
            raise EndlessError


_steps: ContextVar[_Steps] = ContextVar("clearance_schema_steps")


def schema_hash(schema: Mapping[str, Any]) -> str:
    """Return the sha256 (hex) of a tool's schema in canonical JSON."""
    return hashlib.sha256(canonical(schema).encode()).hexdigest()


def with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value with the defaults that its schema writes down filled in.

    Leaving a default out or writing it are two spellings of one call: policy and fingerprint see the same.
    Parts are reached by `properties`, `items` and local `$ref`; a default is itself completed by the
    `properties` of its own part. `docs/canonical-json.md` has the rule for other languages.
    Raises `InvalidArgumentsError` for a schema that refers to itself so that there is no end to it.
    """
    try:
        return _completed(schema, value, root=schema, steps=_Steps())
    except EndlessError:
        raise InvalidArgumentsError(
            "The arguments cannot be read: the tool's schema asks for too much work."
        ) from None


def faults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return everything in the arguments that breaks the schema, each with its JSON pointer.

    Strict: a whole number is written without a fraction, so 10.0 is no integer here; texts are never read
    as numbers. Faults name places and rules, never values. Nothing is fetched that a schema refers to.
    Raises `InvalidArgumentsError` where the schema itself cannot be used: then nothing fits it.
    """
    _steps.set(_Steps())
    try:
        errors = list(_validator(canonical(schema)).iter_errors(arguments))
    except Exception as error:  # noqa: BLE001 - whatever a schema makes the library raise: nothing fits it
        # Not `from error`: such errors quote the arguments.
        raise InvalidArgumentsError(
            "The arguments cannot be checked: the tool's schema cannot be used for them "
            f"({type(error).__name__})."
        ) from None
    found = [fault for error in errors for fault in _read(error)]
    return tuple(sorted(set(found), key=lambda fault: (fault.pointer, fault.message)))


def check_arguments(tool: str, schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the parsed arguments of a call, or raise `InvalidArgumentsError` with every fault."""
    arguments = parse_arguments(text)
    found = faults(schema, arguments)
    if found:
        raise InvalidArgumentsError(f"The arguments do not fit {tool}.", faults=found)
    return arguments


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> "Validator":
    import json

    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import extend
    from referencing import Registry

    exact = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    rules = {**Draft202012Validator.VALIDATORS, "multipleOf": _multiple_of, "uniqueItems": _unique_items}
    strict = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {name: _counted(rule) for name, rule in rules.items()},
        type_checker=exact,
    )
    validator: Validator = strict(
        json.loads(schema_text), format_checker=FormatChecker(), registry=Registry()
    )
    return validator


def _counted(rule: "Callable[..., Iterator[ValidationError] | None]") -> Callable[..., Any]:
    """Return a rule of JSON Schema that counts how often it is asked, and of how much."""

    def counted(validator: Any, said: Any, value: Any, schema: Any) -> "Iterator[ValidationError]":
        _steps.get().take(said, value)
        yield from rule(validator, said, value, schema) or ()

    return counted


def _unique_items(validator: Any, wanted: Any, value: Any, _: object) -> "Iterator[ValidationError]":
    """Check `uniqueItems` in one pass; the library compares each item with each."""
    from jsonschema import ValidationError

    if wanted and validator.is_type(value, "array") and len({_same(item) for item in value}) < len(value):
        yield ValidationError("")


def _same(value: Any) -> object:
    """Return what is equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    match value:
        case bool() | None | str():
            return (type(value), value)
        case list():
            return (list, tuple(map(_same, value)))
        case dict():
            return (dict, frozenset((name, _same(item)) for name, item in value.items()))
        case _:
            return value


def _multiple_of(validator: Any, divisor: Any, value: Any, _: object) -> "Iterator[ValidationError]":
    """Check `multipleOf` on the numbers as they are written: 1.1 is a multiple of 0.1."""
    from jsonschema import ValidationError

    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(divisor)):
        yield ValidationError("")


def _completed(part: Any, value: Any, *, root: Mapping[str, Any] | None, steps: _Steps) -> Any:
    """Return the value with the defaults of its part; without `root` no reference and no item is followed.

    Inside a default nothing multiplies: a schema that refers to itself there would never end.
    """
    for each in _with_references(part, root, steps=steps):
        if isinstance(value, dict) and isinstance(each.get("properties"), Mapping):
            value = _object_completed(each["properties"], value, root=root, steps=steps)
        elif isinstance(value, list) and root is not None and "items" in each:
            value = [_completed(each["items"], item, root=root, steps=steps) for item in value]
    return value


def _object_completed(
    properties: Mapping[str, Any], value: dict[str, Any], *, root: Mapping[str, Any] | None, steps: _Steps
) -> dict[str, Any]:
    steps.take(properties, value)
    bound = dict(value)
    for name, part in properties.items():
        if name in bound:
            bound[name] = _completed(part, bound[name], root=root, steps=steps)
        elif isinstance(part, Mapping) and "default" in part:
            bound[name] = _completed(part, part["default"], root=None, steps=steps)
    return bound


def _with_references(part: Any, root: Mapping[str, Any] | None, *, steps: _Steps) -> list[Mapping[str, Any]]:
    """Return a part of a schema and what it refers to, within the schema, one after the other."""
    found: list[Mapping[str, Any]] = []
    while isinstance(part, Mapping) and part not in found:
        steps.take(found)
        found.append(part)
        reference = part.get("$ref")
        if root is None or not isinstance(reference, str) or not reference.startswith("#"):
            break
        part = root
        for name in reference[1:].split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            part = part.get(name) if isinstance(part, Mapping) else None
    return found


def _read(error: Any) -> list[Fault]:
    """Turn one finding of `jsonschema` into faults; a missing or unknown key is pointed at itself."""
    path = [str(part) for part in error.absolute_path]
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return [Fault(pointer([*path, name]), _RULES["required"]) for name in missing]
        case "additionalProperties":
            known = error.schema.get("properties", {})
            patterns = error.schema.get("patternProperties", {})
            unknown = [
                name
                for name in error.instance
                if name not in known and not any(re.search(pattern, name) for pattern in patterns)
            ]
            return [Fault(pointer([*path, name]), _RULES["additionalProperties"]) for name in unknown]
        case None:
            return [Fault(pointer(path), "is not allowed here")]
        case rule:
            sentence = _RULES.get(rule, f"breaks the rule {rule} of the schema")
            return [Fault(pointer(path), sentence.format(expected=_expected(error.validator_value)))]


def _expected(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(_expected(item) for item in value)
    return value if isinstance(value, str) else canonical(value)


def pointer(path: list[str]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
