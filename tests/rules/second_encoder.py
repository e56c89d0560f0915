"""A second encoder of canonical JSON, written from `docs/canonical-json.md` alone: no library, no `repr`.

It is slow and plain on purpose. What it and the product write must be the same, byte for byte.
"""

from fractions import Fraction
from math import copysign, floor
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def encode(value: Any) -> str:
    """Return the canonical JSON of a value as parsing gives it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return "[" + ",".join(encode(item) for item in value) + "]"
    names = sorted(value, key=lambda name: [ord(character) for character in name])
    return "{" + ",".join(f"{_text(name)}:{encode(value[name])}" for name in names) + "}"


def _text(text: str) -> str:
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return "\\u00" + _two(ord(character), "0123456789abcdef") if ord(character) < 0x20 else character


def _two(number: int, digits: str) -> str:
    return digits[number // len(digits)] + digits[number % len(digits)]


def _integer(value: int) -> str:
    digits, rest = "", abs(value)
    while rest or not digits:
        digits, rest = "0123456789"[rest % 10] + digits, rest // 10
    return "-" + digits if value < 0 else digits


def _float(value: float) -> str:
    sign = "-" if copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value))
    if -4 <= exponent < 0:
        return sign + "0." + "0" * (-exponent - 1) + digits
    if 0 <= exponent < 16:
        digits = digits.ljust(exponent + 2, "0")
        return sign + digits[: exponent + 1] + "." + digits[exponent + 1 :]
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    size = _integer(abs(exponent)).rjust(2, "0")
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{size}"


def _shortest(value: float) -> tuple[str, int]:
    """Return the fewest digits that are read as this float, and the power of ten of the first of them.

    Among several so short it is the one nearest to the float.
    """
    exact = Fraction(value)
    power = _power(exact)
    for count in range(1, 18):
        unit = Fraction(10) ** (power - count + 1)
        below = floor(exact / unit)
        fitting = [whole for whole in (below, below + 1) if _nearest(whole * unit) == value]
        if fitting:
            best = min(fitting, key=lambda whole: (abs(whole * unit - exact), whole % 2))
            digits = _integer(best)
            return digits.rstrip("0"), power + len(digits) - count
    raise ValueError("17 digits tell every float from its neighbours")


def _nearest(number: Fraction) -> float:
    """Return the float nearest to a number; beyond the largest one there is none."""
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _power(exact: Fraction) -> int:
    """Return the power of ten of the first digit."""
    power = 0
    while exact >= Fraction(10) ** (power + 1):
        power += 1
    while exact < Fraction(10) ** power:
        power -= 1
    return power
