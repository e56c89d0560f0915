"""Maps along a sequence: open reading frames, exons, protein domains."""

from typing import Any

from markupsafe import Markup

from clearance.apps.research.report.facts import Book, Way
from clearance.apps.research.report.figures.svg import (
    LEFT,
    PLOT,
    Scale,
    box,
    fact,
    framed,
    legend,
    line,
    scale,
    tag,
    words,
)

_LANE, _BAR = 20.0, 13.0
_MOST_ORFS = 60


def orf_map(book: Book, folder: str) -> Markup | None:
    """Return the open reading frames of both strands, one lane for each frame."""
    found = book.file(f"{folder}/orfs.json")
    if not found["orfs"].value:
        return None
    along = scale(book, f"{folder}/orfs.json", "/sequence/length")
    lanes = [(strand, frame) for strand in "+-" for frame in (1, 2, 3)]
    parts = [
        words("+ strand", LEFT - 8, 20 + 1.5 * _LANE, anchor="end"),
        words("− strand", LEFT - 8, 30 + 4.5 * _LANE, anchor="end"),
        legend((("fill-a", "complete"), ("fill-part", "runs off the end")), 190),
    ]
    places = {lane: 12 + at * _LANE + (10 if at > 2 else 0) for at, lane in enumerate(lanes)}
    parts += [line(LEFT, y + _BAR / 2, LEFT + PLOT, y + _BAR / 2, class_="lane") for y in places.values()]
    for at, orf in enumerate(found["orfs"].value[:_MOST_ORFS]):
        y = places[orf["strand"], orf["frame"]]
        parts.append(_arrow(along, orf, y))
        x, width = along.span(orf["start"], orf["end"])
        if width > 60 and at < 6:
            size = found["orfs"][at]["length_aa"].fact()
            shade = "label on-a" if orf["complete"] else "label"
            parts.append(fact(size, x + width / 2, y + _BAR - 3, class_=shade, anchor="middle"))
    parts.append(along.axis(12 + 6 * _LANE + 14, unit="bases"))
    described = (
        "Arrows point the way each frame is read; inside, where there is room, its length in amino acids"
    )
    return framed(_id(folder), "Open reading frames", f"{described}.", height=200, parts=parts)


def _arrow(along: Scale, orf: dict[str, Any], y: float) -> Markup:
    x, width = along.span(orf["start"], orf["end"])
    head = min(8.0, width)
    left, right, middle = x, x + width, y + _BAR / 2
    if orf["strand"] == "+":
        corners = [(left, y), (right - head, y), (right, middle), (right - head, y + _BAR), (left, y + _BAR)]
    else:
        corners = [(right, y), (left + head, y), (left, middle), (left + head, y + _BAR), (right, y + _BAR)]
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in corners)
    return tag("polygon", points=points, class_="fill-a" if orf["complete"] else "fill-part")


def exon_map(book: Book, folder: str) -> Markup | None:
    """Return the exons of a transcript on its chromosome; None where only its ends are known."""
    found = book.file(f"{folder}/exon-map.json")
    exons, cds = found["exons"].value, found["cds"].value
    if not exons:
        return None
    along = scale(book, f"{folder}/exon-map.json", "/span", first=found["start"].value)
    parts = [line(LEFT, 34, LEFT + PLOT, 34, class_="axis")]
    for exon in exons:
        x, width = along.span(exon["start"], exon["end"])
        parts.append(box(x, 27, width, 14, class_="fill-part"))
        start = max(exon["start"], cds["start"]) if cds else 1
        end = min(exon["end"], cds["end"]) if cds else 0
        if start <= end:
            x, width = along.span(start, end)
            parts.append(box(x, 20, width, 28, class_="fill-a"))
    parts += [
        words(f"{found['strand'].value} strand".replace("-", "−"), LEFT - 8, 38, anchor="end"),
        along.axis(62, unit="bases"),
        legend((("fill-a", "coding"), ("fill-part", "not coding")), 106),
    ]
    described = "Boxes are exons, in the direction of the chromosome; the scale counts from the first base"
    return framed(_id(folder), "Exons", f"{described}.", height=116, parts=parts)


def domain_map(book: Book, folder: str) -> Markup | None:
    """Return a protein with its domains."""
    found = book.file(f"{folder}/domains.json")
    if not found["domains"].value:
        return None
    along = scale(book, f"{folder}/domains.json", "/sequence/length")
    parts = [
        words("protein", LEFT - 8, 39, anchor="end"),
        box(LEFT, 30, PLOT, 10, class_="fill-lane", round=5),
    ]
    for domain in found["domains"]:
        x, width = along.span(domain["start"].value, domain["end"].value)
        middle = x + width / 2
        places = book.fact(Way.RANGE, domain["start"].source, domain["end"].source)
        parts += [
            box(x, 22, width, 26, class_="fill-a", round=6),
            fact(places, middle, 14, anchor="middle"),
        ]
        if width > 60:
            parts.append(
                fact(found["model"]["name"].fact(), middle, 39, class_="label on-a", anchor="middle")
            )
    parts.append(along.axis(60, unit="residues"))
    described = "Each box is the envelope of a match; the part that is aligned stands in the table"
    return framed(_id(folder), "Domains", f"{described}.", height=84, parts=parts)


def _id(folder: str) -> str:
    return folder.replace("/", "-")
