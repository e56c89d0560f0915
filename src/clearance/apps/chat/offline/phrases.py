"""Phrases: sentences with places for arguments, by which a tool says how people ask for it.

    "send an email to {to} about {subject} saying {body...}"

`{name}` takes a short text: up to what follows, without a line or sentence end inside; quotation
marks round it are dropped. `{name...}` takes the rest of the message exactly as it stands. `[…]`
may be left out, `(a|b)` is one of several, a space stands for any white space. Case, a "please" in
front or behind and a full stop at the end do not matter.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clearance.apps.chat.offline.language import Language

_PART = re.compile(
    r"\{(?P<slot>[A-Za-z_]\w*)(?P<rest>\.\.\.)?\}"
    r"|(?P<space>\s+)|(?P<mark>[\[\]()|])|(?P<stray>[{}])|(?P<text>[^\s\[\](){}|]+)"
)
_MARKS = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}
# Bounded, so that no text makes the comparison long.
_QUOTED = r'"[^"\n]{1,200}"|“[^”\n]{1,200}”|「[^」\n]{1,200}」'
_SHORT = rf"(?:{_QUOTED}|[^\n?!;。？！；]{{1,200}}?)"
_COURTESY = r"(?:please|could you|can you|tolong|mohon|bisakah kamu|请|麻烦)"
_BEFORE = rf"\s*(?:{_COURTESY}[,，]?\s*)*"
_AFTER = r"(?:[,，]?\s*(?:please|thanks|thank you|ya|terima kasih|谢谢))?\s*[.!?。！？]*\s*"
_QUOTES = {'"': '"', "“": "”", "「": "」"}


@dataclass(frozen=True)
class Phrase:
    """One phrase in one language, ready to be compared with what a person wrote.

    `implied` are texts for arguments that the phrase has no place for.
    """

    language: Language
    pattern: re.Pattern[str]
    implied: Mapping[str, str]

    @property
    def arguments(self) -> frozenset[str]:
        """The arguments that the phrase has places for or implies."""
        return frozenset({*self.pattern.groupindex, *self.implied})


def read_phrase(template: str, language: Language, *, implied: Mapping[str, str] | None = None) -> Phrase:
    """Return the phrase of a template; raises `ValueError` for one that cannot be read."""
    pattern = "".join(_compiled(part, template) for part in _PART.finditer(template))
    after = r"\s*" if template.rstrip().endswith("...}") else _AFTER
    try:
        compiled = re.compile(f"{_BEFORE}(?:{pattern}){after}", re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"The phrase {template!r} cannot be read: {error}.") from None
    return Phrase(language=language, pattern=compiled, implied=implied or {})


def match(phrase: Phrase, text: str) -> dict[str, str] | None:
    """Return the texts in the phrase's places by argument, or None for another sentence."""
    found = phrase.pattern.fullmatch(text.strip())
    if found is None:
        return None
    texts = {name: _unquoted(value) for name, value in found.groupdict().items() if value}
    return {**phrase.implied, **texts}


def _compiled(part: re.Match[str], template: str) -> str:
    slot = part["slot"]
    if part["stray"]:
        raise ValueError(f"The phrase {template!r} has a brace that belongs to no {{argument}}.")
    if slot:
        return rf"(?P<{slot}>\S[\s\S]*)" if part["rest"] else f"(?P<{slot}>{_SHORT})"
    if part["space"]:
        return r"\s+"
    return _MARKS[part["mark"]] if part["mark"] else re.escape(part["text"])


def _unquoted(value: str) -> str:
    text = value.strip()
    closing = _QUOTES.get(text[:1])
    if closing and len(text) > 2 and text.endswith(closing) and closing not in text[1:-1]:
        return text[1:-1]
    return text
