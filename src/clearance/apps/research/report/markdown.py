"""Markdown that shows a text as it is, whatever stands in it."""

import re

# What CommonMark and its common extensions give a meaning: everywhere; at the beginning alone; "_" outside
# a word; ":" in an address or between two as a picture's name.
_SPECIAL = re.compile(
    r"([\\`*{}\[\]<>#|~&$@]|^[-+=]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|(?<![0-9]):(?=[A-Za-z0-9_+-]+:)|(?i:(?<=http)|(?<=https)|(?<=ftp)|(?<=mailto)|(?<=xmpp)):)"
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_WWW = re.compile(r"(?i)\bwww\.")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def escaped(text: str) -> str:
    """Return Markdown for one line that is drawn as the text; line feeds become a bar between spaces."""
    line = " / ".join(part.strip() for part in text.split("\n"))
    line = _SPECIAL.sub(r"\\\1", line)
    line = _WWW.sub(lambda found: found[0].replace(".", r"\."), line)
    return _NUMBERED.sub(r"\1\\\2", line)


def unescaped(markdown: str) -> str:
    """Return the text with its backslashes taken away."""
    return _ESCAPED.sub(r"\1", markdown)
