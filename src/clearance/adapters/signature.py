"""The signature of a plain function as a tool's schema, and the arguments of one call of it as exact JSON."""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
)

from clearance.errors import InvalidArgumentsError
from clearance.schema import check_arguments, with_defaults
from clearance.toolcall import argument_text

_UNNAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)
_LEAVES = (str, int, float, bool, None, types.NoneType, Any, object, list, dict, Sequence, Mapping)


@dataclass(frozen=True)
class Signature:
    """What a function takes: its own signature, and the JSON Schema of its arguments as one object."""

    tool: str
    parameters: inspect.Signature
    schema: Mapping[str, Any]

    def text(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return the arguments of a call as JSON text, defaults written out.

        Raises TypeError for a call that the function does not take, as Python does, and
        `InvalidArgumentsError` for values that are no JSON values or do not fit the schema.
        """
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        text = argument_text(bound.arguments)
        check_arguments(self.tool, self.schema, text)
        return text

    def complete(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments that may leave out defaults, as people's edits do, with every default."""
        found: dict[str, Any] = with_defaults(self.schema, arguments)
        return found


def read_signature(function: Callable[..., Any], *, tool: str) -> Signature:
    """Return what a function takes. Raises TypeError where JSON cannot stand for it.

    Every argument needs a name and a type that JSON has: text, numbers, bool, None, lists, dicts with text
    as keys, `Literal`, `TypedDict`, and unions and `Annotated` forms of them. The same holds for the type
    that is returned; what has no annotation may be any JSON value.
    """
    from pydantic import TypeAdapter
    from typing_extensions import get_type_hints

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{tool} is a generator; a call that is cleared gives one result.")
    parameters = inspect.signature(function)
    for parameter in parameters.parameters.values():
        _check_parameter(tool, parameter)
    for name, annotation in get_type_hints(function, include_extras=True).items():
        if not _is_json(annotation):
            what = "its result" if name == "return" else f"'{name}'"
            raise TypeError(
                f"{tool}: {what} has a type that JSON does not have. What people clear, and what is kept, is "
                "JSON: take and return text, numbers, bool, None, lists and dicts."
            )
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, function))
    return Signature(tool, parameters, adapter.json_schema())


def _check_parameter(tool: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in _UNNAMED:
        raise TypeError(f"{tool}: people review arguments by name, and '{parameter}' has none.")
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise TypeError(f"{tool} is a method, and '{parameter.name}' is no JSON value. Gate a function.")
    if parameter.default is not parameter.empty:
        try:
            argument_text({parameter.name: parameter.default})
        except InvalidArgumentsError as error:
            raise TypeError(f"{tool}: the default of '{parameter.name}' is no JSON value.") from error


def _is_json(annotation: Any) -> bool:
    """Whether values of a type are JSON values, that come out of JSON as they went in."""
    from typing_extensions import ReadOnly

    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, Required, NotRequired, ReadOnly):
        return _is_json(parts[0])
    if origin in (Union, types.UnionType, list, Sequence):
        return all(_is_json(part) for part in parts)
    if origin in (dict, Mapping):
        return parts[0] is str and _is_json(parts[1])
    if origin is Literal:
        return not any(isinstance(part, bytes | Enum) for part in parts)
    return _is_plain(annotation)


def _is_plain(annotation: Any) -> bool:
    """Whether a type without parameters is JSON's: a leaf, a name for one, or a `TypedDict` of them."""
    from typing_extensions import get_type_hints, is_typeddict

    # A type that names itself refers to itself by text; the rest of it is looked at anyway.
    if any(annotation is leaf for leaf in _LEAVES) or isinstance(annotation, str | ForwardRef):
        return True
    if is_typeddict(annotation):
        return all(_is_json(part) for part in get_type_hints(annotation, include_extras=True).values())
    named = getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)
    return named is not None and _is_json(named)
