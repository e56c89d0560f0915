"""Requests in plain words: which tools' phrases stand in a text, with which arguments."""

import re
from collections.abc import Mapping

from clearance.apps.chat.offline.bound import BoundTool
from clearance.apps.chat.offline.language import Language
from clearance.apps.chat.offline.phrases import match
from clearance.apps.chat.offline.values import WrongValueError, typed

Draft = tuple[str, Mapping[str, str]]

_SENTENCE_END = re.compile(r"(?<=[.?!;])\s+|(?<=[。？！；])\s*|\n+")
_GREETING = re.compile(
    r"\s*(?:hello|hi|halo|hai|selamat (?:pagi|siang|sore|malam)"
    r"|thanks|thank you|terima kasih|你好|您好|谢谢)"
    r"\s*[.,!。，！]*\s*",
    re.IGNORECASE,
)
_CANCEL = re.compile(
    r"\s*(?:cancel|never mind|nevermind|forget it|stop|batal|batalkan|tidak jadi|取消|算了|不用了)"
    r"[\s.!。！]*",
    re.IGNORECASE,
)


def drafts_in(text: str, tools: Mapping[str, BoundTool]) -> list[Draft]:
    """Return the tools that a text asks for, with the texts found for their arguments.

    The text is several sentences that each ask for something, or one phrase; greetings beside them do not
    matter. A text with anything else in it asks for nothing: half of what somebody wrote is not what they
    wrote.
    """
    parts = [part for part in _SENTENCE_END.split(text) if part and not _GREETING.fullmatch(part)]
    drafts = [best[1] for part in parts if (best := _best(part, tools))]
    if len(parts) > 1 and len(drafts) == len(parts):
        return drafts
    whole = _best(text, tools)
    if whole is not None:
        return [whole[1]]
    return drafts if len(drafts) == len(parts) else []


def language_of_phrase(text: str, tools: Mapping[str, BoundTool]) -> Language | None:
    """Return the language of the phrase that a text is, or None when it is none."""
    best = _best(text, tools)
    return best[0] if best else None


def is_cancel(text: str) -> bool:
    """Return whether the text says to drop what was being asked about."""
    return _CANCEL.fullmatch(text) is not None


def _best(text: str, tools: Mapping[str, BoundTool]) -> tuple[Language, Draft] | None:
    """Return the first match of those with the fewest texts that do not fit their argument."""
    found: list[tuple[int, Language, Draft]] = []
    for tool in tools.values():
        for phrase in tool.phrases:
            texts = match(phrase, text)
            if texts is not None:
                unfit = sum(not _fits(tool, name, value) for name, value in texts.items())
                found.append((unfit, phrase.language, (tool.name, texts)))
    if not found:
        return None
    _, language, draft = min(found, key=lambda candidate: candidate[0])
    return language, draft


def _fits(tool: BoundTool, name: str, text: str) -> bool:
    try:
        typed(text, tool.arguments[name], root=tool.schema)
    except WrongValueError:
        return False
    return True
