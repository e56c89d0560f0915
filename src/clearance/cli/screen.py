"""The screen: where answers and notices go, at any width, in a terminal or in a pipe.

In a pipe nothing is wrapped, cut or coloured. Foreign text comes here as `Text` of `shown`, never as markup.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from rich.console import Console
from rich.text import Text

from clearance.visible import pieces

MARK = "reverse"
_NARROWEST = 24


def out() -> Console:
    """The console for answers: standard output as it is now."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def err() -> Console:
    """The console for notices and progress: standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def shown(text: str, style: str = "", *, lines: bool = False) -> Text:
    """Return foreign text as it may be drawn: with codes for what would not be seen."""
    drawn = Text(style=style)
    for piece in pieces(text, lines=lines):
        drawn.append(piece.text, MARK if piece.marked else None)
    return drawn


def line(console: Console, text: Text | str = "", *, lead: Text | str = "", indent: int = 0) -> None:
    """Draw one line after `lead`; in a terminal what does not fit goes on under its beginning."""
    first = Text(" " * indent).append_text(Text(lead) if isinstance(lead, str) else lead)
    body = Text(text) if isinstance(text, str) else text
    if not console.is_terminal:
        console.print(first.append_text(body))
        return
    room = max(console.width - first.cell_len, _NARROWEST)
    wrapped = list(body.wrap(console, room, overflow="fold")) or [Text()]
    console.print(first.copy().append_text(wrapped[0]))
    for rest in wrapped[1:]:
        console.print(Text(" " * first.cell_len).append_text(rest))


def block(console: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Draw a text of several lines behind a rule that it cannot leave; broken where a line goes on below."""
    for each in shown(text, style, lines=True).split("\n", allow_blank=True):
        room = max(console.width - indent - 2, _NARROWEST)
        parts = list(each.wrap(console, room, overflow="fold")) if console.is_terminal else [each]
        for number, part in enumerate(parts or [Text()]):
            rule = "┊ " if number else "│ "
            console.print(Text(" " * indent).append(rule, "dim").append_text(part))


def heading(console: Console, text: Text | str) -> None:
    """Draw a heading, after an empty line."""
    console.print()
    console.print(Text(text, "bold") if isinstance(text, str) else text)


def near(file: Path) -> Path:
    """Return a path as it is shortest from here."""
    here = Path.cwd()
    whole = file.absolute()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def notice(text: str) -> None:
    """Say one dim line on standard error."""
    console = err()
    line(console, Text(text, "dim"))


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Answer in JSON: ASCII only, integers of any size."""
    sys.stdout.write(json.dumps(value, indent=indent) + "\n")
    sys.stdout.flush()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show in a terminal that something goes on, once it takes longer than a moment."""
    console = err()
    if not console.is_terminal:
        yield
        return
    status = console.status(Text(f"{what} …", "dim"))
    timer = Timer(0.7, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
