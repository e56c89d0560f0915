"""Evaluating conditions in CEL: a bool, or the reason why there is none.

The interpreter is the extension of `common-expression-language`. It knows integers of 64 bits, holds the
interpreter's lock while it works, and cannot be stopped: what it is given is bounded, here and in
`expression`.
"""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from clearance import unambiguous
from clearance.expression import CHECKED, VARIABLES, Cel, Comparison, Flaw, Origin, Path, read
from clearance.toolcall import MAX_DEPTH

MAX_WORK = 2**28
"""Characters of an expression, times those of the arguments, times the items of the longest list it walks."""

_LONGEST_INTEGER = 63
_EXTENSION = "cel.cel"
_PLACE = re.compile(r"<input>:(\d+):(\d+)")
_REASONS: Mapping[type[BaseException], str] = {
    KeyError: "a field that it reads is missing",
    IndexError: "an item that it reads is missing",
    TypeError: "it combines values of kinds that do not fit",
    OverflowError: "a number is too large",
    ZeroDivisionError: "it divides by zero",
}


class UnansweredError(Exception):
    """The condition gave no answer; the message says why and shows no value."""


def answer(condition: Cel, tool: str, *, arguments: Mapping[str, Any], origin: Origin | None) -> bool:
    """Return what a condition says of a call. Raises `UnansweredError` for anything but true and false."""
    reading = read(condition.text)
    if reading.flaws:
        raise UnansweredError("it is no condition that can be evaluated")
    size, longest = _measure(arguments)
    items = max(longest, condition.text.count(",")) if reading.loops else 1
    if len(condition.text) * size * items > MAX_WORK:
        raise UnansweredError("the arguments are too large for it")
    for path in reading.walked:
        if not all(isinstance(value, list | tuple) for value in _at(arguments, path)):
            raise UnansweredError("a loop goes through what is no list")
    for comparison in reading.comparisons:
        nullable = Comparison(comparison.path, "null") in reading.comparisons
        _check_kind(arguments, comparison, nullable=nullable)
    variables: dict[str, Any] = {"args": dict(arguments), "tool": tool}
    if origin is not None:
        variables |= {"run": dict(origin.run), "person": dict(origin.person)}
    if missing := [name for name in VARIABLES if name in reading.names and name not in variables]:
        raise UnansweredError(f"{' and '.join(missing)} is not known here")
    return _evaluated(condition.text, variables)


def flaws(condition: Cel) -> tuple[Flaw, ...]:
    """Return everything that is wrong with a condition, before any call."""
    reading = read(condition.text)
    if reading.flaws:
        return reading.flaws
    try:
        _compiled(condition.text)
    except UnansweredError as error:
        return (Flaw(_offset(condition.text, str(error)), "is not CEL from here on"),)
    for pattern, offset in reading.patterns:
        try:
            _compiled(f"''.matches({pattern})").execute({})
        except BaseException as error:  # noqa: BLE001 - a panic of the extension is no Exception
            _let_through(error)
            return (Flaw(offset, "is no pattern, or one that is too large"),)
    return ()


def _evaluated(text: str, variables: dict[str, Any]) -> bool:
    refused: list[str] = []
    context = _LIBRARY.Context(variables=variables, functions=_functions(refused))
    try:
        found: object = _compiled(text).execute(context)
    except UnansweredError:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the extension is no Exception
        _let_through(error)
        # The library's message may hold a value, and so may the name of a missing key.
        why = next((said for kind, said in _REASONS.items() if isinstance(error, kind)), "it failed")
        raise UnansweredError(refused[0] if refused else why) from None
    if refused:
        raise UnansweredError(refused[0])
    if not isinstance(found, bool):
        raise UnansweredError("it gives no bool")
    return found


def _functions(refused: list[str]) -> dict[str, Callable[..., Any]]:
    """Return our own functions. What they refuse is noted: the library would write the error to its log.

    So a refusal counts even where the rest of the expression would give an answer without it.
    """

    def checked(name: str) -> Callable[..., Any]:
        function: Callable[[object], Any] = getattr(unambiguous, name)

        def call(*given: object) -> Any:
            try:
                (value,) = given
                return function(value)
            except ValueError as error:
                known = isinstance(error, unambiguous.AmbiguousError)
                refused.append(str(error) if known else f"{name}() takes one value")
                return ""

        return call

    return {name: checked(name) for name in CHECKED}


def _measure(value: object, *, left: int = MAX_DEPTH) -> tuple[int, int]:
    """Return how many characters a value has, about, and how many items its longest list has."""
    match value:
        case Mapping() | list() | tuple() if left == 0:
            raise UnansweredError("the arguments are nested too deep")
        case Mapping():
            inner = [_measure(item, left=left - 1) for item in value.values()]
            size = sum(len(str(key)) + 1 for key in value) + sum(size for size, _ in inner)
            return size + 1, max([len(value), *(longest for _, longest in inner)])
        case list() | tuple():
            inner = [_measure(item, left=left - 1) for item in value]
            return sum(size for size, _ in inner) + 1, max([len(value), *(longest for _, longest in inner)])
        case str():
            return len(value) + 1, 1
        case bool() | None:
            return 1, 1
        case int() if value.bit_length() <= _LONGEST_INTEGER:
            return 20, 1
        case int():
            raise UnansweredError("an integer does not fit into 64 bits")
        case float() if math.isfinite(value):
            return 20, 1
        case _:
            raise UnansweredError("an argument is no JSON value")


def _check_kind(arguments: Mapping[str, Any], comparison: Comparison, *, nullable: bool) -> None:
    """Refuse to compare text with a number and the like, which CEL answers with "not equal"."""
    for value in _at(arguments, comparison.path):
        kinds = {str: "text", bool: "bool", int: "number", float: "number", type(None): "null"}
        kind = kinds.get(type(value), "other")
        if comparison.kind != "null" and kind != comparison.kind and not (nullable and kind == "null"):
            raise UnansweredError(f"an argument is no {comparison.kind}, and is compared with one")


def _at(value: object, path: Path) -> Iterator[object]:
    """Give what stands at a path; nothing where there is nothing."""
    if not path:
        yield value
        return
    step, *rest = path
    inner: Iterable[object] = ()
    match step, value:
        case None, list() | tuple():
            inner = value
        case str(), Mapping() if step in value:
            inner = (value[step],)
        case int(), list() | tuple() if step < len(value):
            inner = (value[step],)
    for each in inner:
        yield from _at(each, tuple(rest))


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    try:
        return _LIBRARY.compile(text)
    except BaseException as error:  # noqa: BLE001 - a panic of the extension is no Exception
        _let_through(error)
        raise UnansweredError(str(error)) from None


def _offset(text: str, message: str) -> int:
    """Return the character that the parser's message names, as `<input>:LINE:COLUMN`."""
    found = _PLACE.search(message)
    if found is None:
        return 0
    lines = text.split("\n")[: int(found.group(1)) - 1]
    return min(sum(len(each) + 1 for each in lines) + max(int(found.group(2)) - 1, 0), len(text))


def _let_through(error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error


def _load() -> ModuleType:
    """Load the extension alone: its package brings a terminal program with it, which takes a second.

    It stands where the package would look for it, since a process can load it only once.
    """
    if _EXTENSION in sys.modules:
        return sys.modules[_EXTENSION]
    package = find_spec("cel")
    places = None if package is None else package.submodule_search_locations
    spec = None if places is None else PathFinder.find_spec(_EXTENSION, list(places))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("Conditions in CEL need the package common-expression-language.")
    module = sys.modules[_EXTENSION] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_LIBRARY = _load()
