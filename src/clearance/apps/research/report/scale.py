"""Round marks for the scale of a figure."""

from collections.abc import Sequence
from decimal import Decimal

_MOST = 6


def marks(largest: Decimal) -> Sequence[Decimal]:
    """Return round numbers from 0 up to `largest`, evenly apart, at most seven."""
    if largest <= 0:
        return (Decimal(0),)
    power = Decimal(1).scaleb(largest.adjusted() - 1)
    apart = next(power * step for step in (1, 2, 5, 10, 20, 50) if power * step * _MOST >= largest)
    return [(apart * number).normalize() + 0 for number in range(int(largest / apart) + 1)]
