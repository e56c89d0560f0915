"""Tool calls: what an agent wants to do, and its arguments as exact JSON.

Arguments are JSON text from the moment they enter. The text is parsed strictly once (an object, no NaN, no
repeated keys, no lone surrogates, bounded) and what was parsed is what is shown, cleared and executed.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clearance.errors import InvalidArgumentsError

MAX_ARGUMENT_BYTES = 256 * 1024
MAX_DEPTH = 64
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True)
class Tool:
    """A tool as the core sees it.

    `run` takes the arguments and the idempotency key and returns the result; it may raise. `verify`, where
    a tool offers it, takes the same and says whether the effect of an earlier start is there: the result,
    or None when it did not happen. `timeout` is in seconds. `schema` is a JSON Schema (2020-12) of an object.
    """

    name: str
    schema: Mapping[str, Any]
    run: Callable[[dict[str, Any], str], object] = field(compare=False)
    description: str = ""
    read_only: bool = False
    idempotent: bool = False
    parallel: bool = True
    timeout: float = DEFAULT_TIMEOUT
    verify: Callable[[dict[str, Any], str], object | None] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ToolCall:
    """One proposed call. `key` is the product's own name for it; `tool_call_id` only answers the model."""

    key: str
    tool: str
    arguments: str
    tool_call_id: str = ""


def canonical(value: object) -> str:
    """Return the canonical JSON of a value: keys sorted by code point, no white space, exact integers.

    Floats are written with the fewest digits that give the same float back, always with a point or an
    exponent, so that 7 and 7.0 differ. Raises `InvalidArgumentsError` for what JSON cannot carry exactly.
    `docs/canonical-json.md` has the rules and test vectors for other languages.
    """
    return _dump(value, sort_keys=True)


def argument_text(arguments: object, *, limit: int = MAX_ARGUMENT_BYTES) -> str:
    """Return the JSON text that stands for parsed arguments from here on, in their own key order."""
    text = _dump(arguments, sort_keys=False)
    parse_arguments(text, limit=limit)
    return text


def parse_arguments(text: str, *, limit: int = MAX_ARGUMENT_BYTES) -> dict[str, Any]:
    """Return the object that `text` is, read strictly.

    Raises `InvalidArgumentsError` for anything but one JSON object of at most `limit` bytes: broken or
    trailing text, NaN and infinities, a key given twice, a lone surrogate, numbers or nesting beyond bounds.
    """
    if _size(text) > limit:
        raise _refused(f"are larger than the {limit} bytes that a call may have")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise _refused(f"are nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise _refused(f"are not JSON (character {error.pos})") from None
    except ValueError as error:
        raise _refused(str(error)) from None
    if not isinstance(value, dict):
        raise _refused("must be a JSON object, such as {}")
    _check(value, depth=0)
    return value


def _dump(value: object, *, sort_keys: bool) -> str:
    try:
        text = json.dumps(
            value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        text.encode()
    except UnicodeEncodeError:
        raise _refused("hold half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise _refused(f"are nested deeper than {MAX_DEPTH} levels") from None
    except TypeError:
        raise _refused("hold a value that JSON has no form for") from None
    except ValueError:
        raise _refused("hold NaN, an infinity or a number beyond bounds") from None
    return text


def _size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _refused("hold half of a surrogate pair, which is no character") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("give a key twice")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"hold {name}, which is no JSON number")


def _check(value: object, *, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _refused(f"are nested deeper than {MAX_DEPTH} levels")
    match value:
        case dict():
            for name, item in value.items():
                _check(name, depth=depth)
                _check(item, depth=depth + 1)
        case list():
            for item in value:
                _check(item, depth=depth + 1)
        case str():
            _size(value)
        case float() if not math.isfinite(value):
            raise _refused("hold a number beyond bounds")
        case _:
            pass


def _refused(what: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"The arguments {what}.")
