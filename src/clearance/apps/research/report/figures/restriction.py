"""Where restriction enzymes cut, an enzyme a line."""

from markupsafe import Markup

from clearance.apps.research.report.facts import Book, Way
from clearance.apps.research.report.figures.svg import LEFT, PLOT, fact, framed, line, scale, words

_LANE = 18.0
_MOST_ENZYMES = 24


def restriction_map(book: Book, folder: str) -> Markup | None:
    """Return the cuts of the enzymes that cut least often: those are the useful ones."""
    file = f"{folder}/restriction-map.json"
    enzymes = book.file(file)["enzymes"]
    if not enzymes.value:
        return None
    along = scale(book, file, "/sequence/length")
    order = sorted(range(len(enzymes.value)), key=lambda at: (len(enzymes.value[at]["cuts"]), at))
    parts = [words("cuts", LEFT + PLOT + 4, 10, class_="small")]
    for lane, at in enumerate(order[:_MOST_ENZYMES]):
        y = 24 + lane * _LANE
        enzyme = enzymes[at]
        parts += [
            fact(enzyme["name"].fact(), LEFT - 8, y + 4, anchor="end"),
            line(LEFT, y, LEFT + PLOT, y, class_="lane"),
            fact(enzyme["cuts"].fact(Way.COUNT), LEFT + PLOT + 6, y + 4),
        ]
        parts += [
            line(along.x(cut + 1), y - 6, along.x(cut + 1), y + 6, class_="cut")
            for cut in enzymes.value[at]["cuts"]
        ]
    floor = 24 + min(len(order), _MOST_ENZYMES) * _LANE
    parts.append(along.axis(floor, unit="bases"))
    return framed(
        folder.replace("/", "-"),
        "Restriction map",
        "Each stroke is a cut; the enzymes that cut least often come first.",
        height=floor + 26,
        parts=parts,
    )
