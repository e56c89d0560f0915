"""Codon usage as bars, by amino acid."""

from itertools import groupby

from markupsafe import Markup

from clearance.apps.research.report.facts import Book
from clearance.apps.research.report.figures.svg import LEFT, PLOT, box, fact, framed, legend, line, tag, words

_TOP, _TALL = 14.0, 110.0
_GAP = 4.0


def codon_bars(book: Book, folder: str) -> Markup | None:
    """Return how often each codon is used per thousand, side by side with its synonyms."""
    usage = book.file(f"{folder}/codon-usage.json")["usage"]
    rows = usage.value
    highest = max(range(len(rows)), key=lambda at: rows[at]["per_thousand"], default=None)
    if highest is None or not rows[highest]["per_thousand"]:
        return None
    groups = [(letter, list(group)) for letter, group in groupby(rows, key=lambda row: row["amino_acid"])]
    wide = (PLOT - _GAP * (len(groups) - 1)) / len(rows)
    top = float(rows[highest]["per_thousand"])
    floor = _TOP + _TALL
    parts = [
        line(LEFT, _TOP, LEFT + PLOT, _TOP, class_="lane"),
        line(LEFT, floor, LEFT + PLOT, floor, class_="axis"),
        fact(usage[highest]["per_thousand"].fact(), LEFT - 8, _TOP + 5, anchor="end"),
        words("per thousand", LEFT - 8, _TOP + 20, anchor="end"),
        words("codon", LEFT - 8, floor + 22, anchor="end"),
        words("amino acid", LEFT - 8, floor + 50, anchor="end"),
    ]
    x = LEFT
    for letter, group in groups:
        for row in group:
            tall = _TALL * float(row["per_thousand"]) / top
            fill = "fill-a" if row["codon"][2] in "GC" else "fill-b"
            if tall:
                parts.append(box(x + 0.6, floor - tall, wide - 1.2, tall, class_=fill))
            middle = x + wide / 2 + 3
            turn = f"rotate(-90 {middle:.1f} {floor + 32:.1f})"
            parts.append(tag("text", row["codon"], x=middle, y=floor + 32, class_="small", transform=turn))
            x += wide
        parts.append(line(x - wide * len(group) + 1, floor + 37, x - 1, floor + 37, class_="axis"))
        parts.append(words(letter, x - wide * len(group) / 2, floor + 50, anchor="middle"))
        x += _GAP
    parts.append(legend((("fill-a", "ends in G or C"), ("fill-b", "ends in A or T")), floor + 74))
    return framed(
        folder.replace("/", "-"),
        "Codon usage",
        "Bars are codons per thousand, grouped by amino acid; the star stands for stop.",
        height=floor + 84,
        parts=parts,
    )
