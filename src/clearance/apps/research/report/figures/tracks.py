"""Tracks: one value along a sequence."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from clearance.apps.research.report.facts import Book, Fact, Node, Way
from clearance.apps.research.report.figures.svg import (
    LEFT,
    PLOT,
    Scale,
    fact,
    framed,
    line,
    scale,
    tag,
    words,
)

_TOP, _TALL = 18.0, 110.0


@dataclass(frozen=True)
class _Point:
    """A value at a place; `said` is the value as a fact."""

    at: float
    value: float
    node: Node


def conservation_track(book: Book, folder: str) -> Markup | None:
    """Return the conservation along an alignment, by windows."""
    file = f"{folder}/conservation.json"
    found = book.file(file)
    points = _points(found["windows"], ("start", "end"), "bits")
    along = scale(book, file, "/columns")
    described = "Bits in windows of the alignment: higher is more alike in all sequences"
    return _track(
        folder, "Conservation", described, points, along, mean=found["mean_bits"].fact(), unit="columns"
    )


def gc_track(book: Book, folder: str) -> Markup | None:
    """Return the GC content along a sequence, by windows."""
    file = f"{folder}/gc-profile.json"
    found = book.file(file)
    points = _points(found["points"], ("start", "end"), "gc")
    along = scale(book, file, "/sequence/length")
    mean = found["gc"].fact(Way.PERCENT)
    described = "Share of G and C in windows of the sequence"
    return _track(folder, "GC content", described, points, along, mean=mean, unit="bases", way=Way.PERCENT)


def hydropathy_track(book: Book, folder: str) -> Markup | None:
    """Return the hydropathy along a protein, by windows."""
    file = f"{folder}/protein-properties.json"
    found = book.file(file)
    points = _points(found["hydropathy"]["points"], ("position", "position"), "value")
    along = scale(book, file, "/sequence/length")
    described = "Kyte and Doolittle, in windows: above the mean is less fond of water"
    return _track(folder, "Hydropathy", described, points, along, mean=found["gravy"].fact(), unit="residues")


def _points(items: Node, ends: tuple[str, str], name: str) -> list[_Point]:
    points = []
    for at, item in enumerate(items.value):
        if item[name] is not None:
            middle = (float(item[ends[0]]) + float(item[ends[1]])) / 2
            points.append(_Point(middle, float(item[name]), Node(items.book, items[at][name].source, item)))
    return points


def _track(
    folder: str,
    title: str,
    described: str,
    points: Sequence[_Point],
    along: Scale,
    *,
    mean: Fact,
    unit: str,
    way: Way = Way.PLAIN,
) -> Markup | None:
    """Return a line over the mean; the highest and the lowest value stand at its side."""
    if len(points) < 2:
        return None
    highest = max(points, key=lambda point: point.value)
    lowest = min(points, key=lambda point: point.value)
    room = (highest.value - lowest.value) or 1.0

    def y(value: float) -> float:
        return _TOP + _TALL * (highest.value - value) / room

    # A track has as many points as it has pixels at most: more cannot be seen.
    every = max(1, len(points) // int(PLOT))
    drawn = points[::every]
    path = " ".join(f"{along.x(point.at):.1f},{y(point.value):.1f}" for point in drawn)
    first, last = along.x(drawn[0].at), along.x(drawn[-1].at)
    base = f"{last:.1f},{_TOP + _TALL:.1f} {first:.1f},{_TOP + _TALL:.1f}"
    middle = y(sum(point.value for point in points) / len(points))
    parts = [
        tag("polygon", points=f"{path} {base}", class_="under"),
        tag("polyline", points=path, class_="track"),
        line(LEFT, middle, LEFT + PLOT, middle, class_="mean"),
        fact(highest.node.fact(way), LEFT - 8, _TOP + 6, anchor="end"),
        fact(lowest.node.fact(way), LEFT - 8, _TOP + _TALL, anchor="end"),
        words("dashed: mean", LEFT + PLOT - 76, 12),
        fact(mean, LEFT + PLOT - 82, 12, anchor="end"),
        along.axis(_TOP + _TALL + 8, unit=unit),
    ]
    return framed(
        folder.replace("/", "-"),
        title,
        f"{described}. The highest and the lowest window stand at the left.",
        height=_TOP + _TALL + 34,
        parts=parts,
    )
