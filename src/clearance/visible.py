"""Visible text: what a screen hides, or shows as something else, is written out as its code, `<U+202E>`.

Every surface that shows arguments or other foreign text draws it through here. Nothing is lost and nothing is
added: putting the characters back in place of the codes gives the text again.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Letters and marks that are printable by their category, and yet blank or drawn into their neighbour.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
# Cyrillic, Greek and Armenian letters that are drawn like Latin ones.
_LOOK_ALIKES = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u04c0\u050c"
    "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0561\u0578\u057d\u0585"
)
# What belongs to one name, such as an address or a host.
_NAME = re.compile(r"[\w.@-]+")
_LATIN = re.compile(r"[A-Za-z]")
_LIKE_A_CODE = re.compile(r"<(?=U\+[0-9A-F]{4,6}>)")
_SPACES_BEFORE_END = re.compile(r" +(?=\n|\Z)")


@dataclass(frozen=True)
class Piece:
    """A part of a text: as it is, or `marked`, a code in place of one character."""

    text: str
    marked: bool = False


def pieces(text: str, *, lines: bool = False) -> tuple[Piece, ...]:
    """Return the text in parts, with a code for each character that would not be seen as what it is.

    These are control, zero-width, bidirectional and blank characters, spaces other than U+0020, and letters
    that look Latin inside a name of Latin ones. With `lines` line feeds stay, and spaces before them are
    coded; else line feeds are coded.
    """
    found: list[Piece] = []
    start = 0
    for place in sorted(_hidden(text, lines=lines)):
        if place > start:
            found.append(Piece(text[start:place]))
        found.append(Piece(f"<U+{ord(text[place]):04X}>", marked=True))
        start = place + 1
    if start < len(text):
        found.append(Piece(text[start:]))
    return tuple(found)


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text with codes for what would not be seen; see `pieces`."""
    return "".join(piece.text for piece in pieces(text, lines=lines))


def visible_json(value: object, *, indent: int | None = 2) -> str:
    """Return JSON text for a person to read and change: what would not be seen is a JSON escape in it.

    It reads back as the same value; numbers are as exact as the value that was given.
    """
    plain = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(
        _escape(character) if character != "\n" and _is_hidden(character) else character
        for character in plain
    )


def _hidden(text: str, *, lines: bool) -> set[int]:
    if text.isascii() and text.isprintable() and "<U+" not in text and not text.endswith(" "):
        return set()  # most texts, and lists have hundreds of them
    places = {
        place
        for place, character in enumerate(text)
        if _is_hidden(character) and not (lines and character == "\n")
    }
    places.update(match.start() for match in _LIKE_A_CODE.finditer(text))
    places.update(_look_alikes(text))
    if lines:
        places.update(place for match in _SPACES_BEFORE_END.finditer(text) for place in range(*match.span()))
    return places


def _is_hidden(character: str) -> bool:
    return not character.isprintable() or character in _BLANK


def _look_alikes(text: str) -> Iterator[int]:
    if text.isascii():
        return
    for name in _NAME.finditer(text):
        if _LATIN.search(name[0]):
            yield from (name.start() + at for at, letter in enumerate(name[0]) if letter in _LOOK_ALIKES)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]
