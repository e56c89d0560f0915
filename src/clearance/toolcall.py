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
"""How many objects and arrays may stand inside one another."""
MAX_DIGITS = 4300
"""Digits of an integer; Python writes no more of them."""
DEFAULT_TIMEOUT = 60.0
_TOO_LARGE = 10**MAX_DIGITS


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
    exponent, so that 7 and 7.0 differ. Tuples are arrays. Raises `InvalidArgumentsError` for what JSON cannot
    carry exactly. `docs/canonical-json.md` has the rules and test vectors for other languages.
    """
    return _dump(value, sort_keys=True, exact=False)


def argument_text(arguments: object, *, limit: int = MAX_ARGUMENT_BYTES) -> str:
    """Return the JSON text that stands for parsed arguments from here on, in their own key order.

    Raises `InvalidArgumentsError` for anything that would be read back as another value or another type.
    """
    text = _dump(arguments, sort_keys=False, exact=True)
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
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except RecursionError:
        raise _refused(f"are nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise _refused(f"are not JSON (character {error.pos})") from None
    except ValueError:
        raise _refused("hold a number beyond bounds") from None
    if not isinstance(value, dict):
        raise _refused("must be a JSON object, such as {}")
    _check(value, left=MAX_DEPTH, exact=True)
    return value


def _dump(value: object, *, sort_keys: bool, exact: bool) -> str:
    try:
        # Before, not by, the encoder: it turns keys of other types into text, silently.
        _check(value, left=None, exact=exact)
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise _refused("are nested too deep") from None
    except ValueError:
        raise _refused("hold a number beyond bounds") from None


def _size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _refused("hold half of a surrogate pair, which is no character") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _refused("give a key twice")
    return value


def _no_constant(name: str) -> None:
    raise _refused(f"hold {name}, which is no JSON number")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise _refused(f"hold an integer of more than {MAX_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    """Return the float nearest to a number; one that is too large or too small for any is refused."""
    value = float(digits)
    significant = digits.lower().partition("e")[0].strip("-.0")
    if not math.isfinite(value) or (value == 0 and significant):
        raise _refused("hold a number beyond bounds")
    return value


def _check(value: object, *, left: int | None, exact: bool) -> None:
    """Refuse what JSON has no exact form for. `left` is how many levels of nesting may still come.

    With `exact`, what only resembles a JSON value is refused, too: a tuple, a subclass of text.
    """
    match value:
        case dict():
            deeper = _deeper(left)
            for name, item in value.items():
                if not isinstance(name, str):
                    raise _refused("hold a key that is no text")
                _check(name, left=deeper, exact=exact)
                _check(item, left=deeper, exact=exact)
        case list() | tuple() if isinstance(value, list) or not exact:
            deeper = _deeper(left)
            for item in value:
                _check(item, left=deeper, exact=exact)
        case str() if type(value) is str or not exact:
            _size(value)
        case None | bool():
            pass
        case float() if type(value) is float:
            if not math.isfinite(value):
                raise _refused("hold NaN or an infinity, which are no JSON numbers")
        case int() if type(value) is int:
            if abs(value) >= _TOO_LARGE:
                raise _refused(f"hold an integer of more than {MAX_DIGITS} digits")
        case _:
            raise _refused(f"hold a {type(value).__name__}, which JSON has no exact form for")


def _deeper(left: int | None) -> int | None:
    if left == 0:
        raise _refused(f"are nested deeper than {MAX_DEPTH} levels")
    return None if left is None else left - 1


def _refused(what: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"The arguments {what}.")
