"""Drawing in SVG, inside a page: elements that are escaped, and the frame and scale that all figures have.

Coordinates are attributes; every text is a word without digits, or a fact. Colours are classes of the page's
style, so that a figure follows light and dark, and print.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup, escape

from clearance.apps.research.report.facts import Book, Fact, Source, Way
from clearance.apps.research.report.scale import marks

WIDTH = 720.0
LEFT, RIGHT = 84.0, 22.0
PLOT = WIDTH - LEFT - RIGHT

Attribute = str | float | int


def tag(name: str, *content: str, **attributes: Attribute) -> Markup:
    """Return an element; content that is no markup yet is escaped. `class_` is class, `x_y` is x-y."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, Markup("").join(map(escape, content)))


def words(text: str, x: float, y: float, *, class_: str = "label", anchor: str = "start") -> Markup:
    """Return words of ours at a place."""
    return tag("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def fact(said: Fact, x: float, y: float, *, class_: str = "label", anchor: str = "start") -> Markup:
    """Return a fact at a place."""
    return tag("text", said.text, x=x, y=y, class_=class_, text_anchor=anchor, data_fact=said.id)


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> Markup:
    """Return a line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(x: float, y: float, width: float, height: float, *, class_: str, round: float = 0) -> Markup:
    """Return a rectangle that can be seen however narrow it is."""
    return tag("rect", x=x, y=y, width=max(width, 0.75), height=height, rx=round, class_=class_)


@dataclass(frozen=True)
class Scale:
    """A sequence of `length` letters, drawn from left to right. `source` is where its length stands."""

    book: Book
    source: Source
    length: int
    first: int = 1

    def x(self, position: Decimal | float) -> float:
        """Return where the left edge of a letter is."""
        return LEFT + PLOT * (float(position) - self.first) / self.length

    def span(self, start: Decimal | float, end: Decimal | float) -> tuple[float, float]:
        """Return the left edge and the width of the letters from `start` to `end`, both included."""
        return self.x(start), self.x(float(end) + 1) - self.x(start)

    def axis(self, y: float, *, unit: str) -> Markup:
        """Return the axis with round marks, which count from the first letter."""
        parts = [line(LEFT, y, LEFT + PLOT, y, class_="axis"), words(unit, LEFT - 8, y + 14, anchor="end")]
        for at, mark in enumerate(marks(Decimal(self.length))):
            x = LEFT + PLOT * float(mark) / self.length
            said = self.book.fact(Way.MARK, self.source, argument=str(at))
            parts += [line(x, y, x, y + 4, class_="axis"), fact(said, x, y + 17, anchor="middle")]
        return Markup("").join(parts)


def scale(book: Book, file: str, pointer: str, *, first: int = 1) -> Scale:
    """Return the scale of a sequence whose length stands in a file."""
    source = Source(file, pointer)
    return Scale(book, source, int(book.records.value(source)), first)


def legend(entries: Iterable[tuple[str, str]], y: float) -> Markup:
    """Return what the fills mean, as (class, words)."""
    parts, x = [], LEFT
    for class_, text in entries:
        parts += [box(x, y - 9, 14, 10, class_=class_, round=2), words(text, x + 20, y)]
        x += 34 + 6.6 * len(text)
    return Markup("").join(parts)


def framed(id: str, title: str, description: str, *, height: float, parts: Iterable[Markup]) -> Markup:
    """Return a figure with a title and a description for those who do not see it."""
    drawing = tag(
        "svg",
        tag("title", title, id=f"{id}-title"),
        tag("desc", description, id=f"{id}-desc"),
        *parts,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{id}-title {id}-desc",
    )
    shown = tag("div", drawing, class_="scroll", tabindex=0, role="region", aria_label=title)
    return tag("figure", shown, tag("figcaption", f"{title}. {description}"), class_="drawn")


def _value(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
