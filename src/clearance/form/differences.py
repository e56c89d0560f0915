"""Differences: what an edit changed, each part with its text before and after."""

from dataclasses import dataclass

from clearance.form.field import below
from clearance.form.source import Items, Members, Source, read_source, value
from clearance.toolcall import canonical


@dataclass(frozen=True)
class Difference:
    """A part that differs: its JSON pointer, and its JSON text; None where it is not there."""

    pointer: str
    before: str | None
    after: str | None


def differences(before: str, after: str) -> tuple[Difference, ...]:
    """Return what differs between two sets of arguments, as small as it can be told."""
    return tuple(_between(read_source(before), read_source(after), at=""))


def _between(old: Source, new: Source, *, at: str) -> list[Difference]:
    if canonical(value(old)) == canonical(value(new)):
        return []
    if isinstance(old, Members) and isinstance(new, Members):
        names = dict.fromkeys([*(each.name for each in old.members), *(each.name for each in new.members)])
        found: list[Difference] = []
        for name in names:
            was, now = old.get(name), new.get(name)
            place = below(at, name)
            found += _of(was.value if was else None, now.value if now else None, at=place)
        return found
    if isinstance(old, Items) and isinstance(new, Items) and len(old.items) == len(new.items):
        pairs = zip(old.items, new.items, strict=True)
        return [each for place, (was, now) in enumerate(pairs) for each in _of(was, now, at=f"{at}/{place}")]
    return [Difference(at, old.text, new.text)]


def _of(was: Source | None, now: Source | None, *, at: str) -> list[Difference]:
    if was is None or now is None:
        return [Difference(at, None if was is None else was.text, None if now is None else now.text)]
    return _between(was, now, at=at)
