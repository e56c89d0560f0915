"""Tool schemas: what fits one, which defaults it writes down, and its hash."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clearance.errors import Fault, InvalidArgumentsError
from clearance.toolcall import canonical, parse_arguments

if TYPE_CHECKING:
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


def schema_hash(schema: Mapping[str, Any]) -> str:
    """Return the sha256 (hex) of a tool's schema in canonical JSON."""
    return hashlib.sha256(canonical(schema).encode()).hexdigest()


def with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value with the defaults that its schema writes down filled in.

    Leaving a default out or writing it are two spellings of one call: policy and fingerprint see the same.
    """
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    bound = dict(value)
    for name, part in properties.items():
        if not isinstance(part, Mapping):
            continue
        if name in bound:
            bound[name] = with_defaults(part, bound[name])
        elif "default" in part:
            bound[name] = part["default"]
    return bound


def faults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return everything in the arguments that breaks the schema, each with its JSON pointer.

    Strict: a whole number is written without a fraction, so 10.0 is no integer here; texts are never read
    as numbers. Faults name places and rules, never values.
    """
    found = [
        fault for error in _validator(canonical(schema)).iter_errors(arguments) for fault in _read(error)
    ]
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

    exact = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = extend(Draft202012Validator, type_checker=exact)  # type: ignore[no-untyped-call]
    validator: Validator = strict(json.loads(schema_text), format_checker=FormatChecker())
    return validator


def _read(error: Any) -> list[Fault]:
    """Turn one finding of `jsonschema` into faults; a missing or unknown key is pointed at itself."""
    path = [str(part) for part in error.absolute_path]
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return [Fault(_pointer([*path, name]), _RULES["required"]) for name in missing]
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = [name for name in error.instance if name not in known]
            return [Fault(_pointer([*path, name]), _RULES["additionalProperties"]) for name in unknown]
        case rule:
            sentence = _RULES.get(rule, f"breaks the rule {rule} of the schema")
            return [Fault(_pointer(path), sentence.format(expected=_expected(error.validator_value)))]


def _expected(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(str(item) for item in value)
    return str(value)


def _pointer(path: list[str]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
