"""Pages: a part of a long list, from where the last one ended, at a cost that does not grow with the list.

A page goes on after a place, which is what the list is sorted by, so that rows that come meanwhile neither
repeat nor hide others. Where a filter fits few rows, a page ends after having looked at so many that it may
hold fewer than it could, or none, and still says where to go on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import Row

LOOK_AT = 2000
"""Rows that one page looks at, at most."""
SEARCHED = 500
"""Rows that one page looks for words in, at most: reading their texts costs more than all else."""
_CHUNK = 500

Place = TypeVar("Place")


@dataclass(frozen=True)
class Page(Generic[Place]):
    """Ids in the order of the list. `after` is where the next page begins; None at the list's end.

    `looked_at` is how many rows were looked at for them.
    """

    ids: list[str]
    after: Place | None
    looked_at: int = 0


Fetch = Callable[[Place | None, int], Sequence[Row[tuple[object, ...]]]]
"""Returns so many rows that come after a place, in order, each with `id`, and `fits` by the filter."""


def page(
    fetch: Fetch[Place],
    place_of: Callable[[Row[tuple[object, ...]]], Place],
    *,
    after: Place | None,
    limit: int,
    look_at: int = LOOK_AT,
) -> Page[Place]:
    """Return the next `limit` rows that fit."""
    ids: list[str] = []
    size, looked_at = limit + 1, 0
    while True:
        rows = fetch(after, size)
        for row in rows:
            if row.fits and len(ids) == limit:
                return Page(ids, after, looked_at)
            if row.fits:
                ids.append(row.id)
            after = place_of(row)
            looked_at += 1
        if len(rows) < size:
            return Page(ids, None, looked_at)
        if looked_at >= look_at:
            return Page(ids, after, looked_at)
        size = min(_CHUNK, look_at - looked_at)
