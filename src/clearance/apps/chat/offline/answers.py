"""Answers to what became of calls: results, rejections, edits, a person's own words, failures.

What became of a call is read from `additional_kwargs["clearance_state"]` of its tool message (one
of DESIGN's states of a tool call) where that is given, else from the message's status and the words
of its first line.
"""

import json
import re
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from clearance.apps.chat.offline.bound import BoundTool
from clearance.apps.chat.offline.language import Language
from clearance.apps.chat.offline.values import shown
from clearance.apps.chat.offline.wording import Say, say

STATE = "clearance_state"
LONGEST_QUOTE = 2000

_STATES = {
    "executed": Say.RESULT,
    "responded": Say.RESPONDED,
    "rejected": Say.REJECTED,
    "blocked": Say.BLOCKED,
    "failed": Say.FAILED,
    "uncertain": Say.UNCERTAIN,
}
_DONE = frozenset({Say.RESULT, Say.RESPONDED})
_PERSON = r"\b(?:person|people|human|reviewer)\b"
_CHANGED = r"\b(?:changed|edited|replaced)\b"
_NOTICE = re.compile(rf"{_PERSON}.*{_CHANGED}|{_CHANGED}.*{_PERSON}", re.IGNORECASE)
_ANSWERED = re.compile(rf"{_PERSON}.*\banswered\b|\banswered by\b.*{_PERSON}", re.IGNORECASE)
_UNKNOWN = re.compile(r"\b(?:unknown|uncertain|not known)\b", re.IGNORECASE)
_BLOCKED = re.compile(r"\b(?:blocked|denied|not cleared)\b", re.IGNORECASE)
_REJECTED = re.compile(r"\b(?:rejected|declined|reject)\b", re.IGNORECASE)
_RESPONSE_HEAD = re.compile(r"\A\s*(?:Tool response:|Result:)?\s*", re.IGNORECASE)


def answer(since: Sequence[BaseMessage], *, tools: Mapping[str, BoundTool], language: Language) -> str:
    """Return the answer to the tool messages that followed the person's last message."""
    names = {
        call["id"]: call["name"]
        for message in since
        if isinstance(message, AIMessage)
        for call in [*message.tool_calls, *message.invalid_tool_calls]
    }
    paragraphs: list[str] = []
    finished = True
    for message in since:
        if isinstance(message, ToolMessage):
            name = message.name or names.get(message.tool_call_id) or "?"
            sentence, paragraph = _paragraph(message, name, tool=tools.get(name), language=language)
            paragraphs.append(paragraph)
            finished = finished and sentence in _DONE
    if not finished or not paragraphs:
        paragraphs.append(say(Say.WHAT_NEXT, language))
    return "\n\n".join(paragraphs)


def _paragraph(
    message: ToolMessage, name: str, *, tool: BoundTool | None, language: Language
) -> tuple[Say, str]:
    notice, text = _split(str(message.text))
    sentence = _outcome(message, text)
    if sentence is Say.RESULT:
        said = _result(name, text, tool=tool, language=language)
    else:
        said = say(sentence, language, tool=name, text=_bounded(text, language) or "–")
    if notice:
        said = f"{say(Say.EDITED, language, notice=_bounded(notice, language))}\n{said}"
    return sentence, said


def _split(text: str) -> tuple[str, str]:
    """Return the notice that a person changed the call ("" where there is none), and the rest."""
    first, _, rest = text.partition("\n")
    if not _NOTICE.search(first):
        return "", text.strip()
    return first.strip(), _RESPONSE_HEAD.sub("", rest, count=1).strip()


def _outcome(message: ToolMessage, text: str) -> Say:
    given = _STATES.get(str(message.additional_kwargs.get(STATE)))
    if given is not None:
        return given
    first = text.partition("\n")[0]
    if message.status != "error":
        return Say.RESPONDED if _ANSWERED.search(first) else Say.RESULT
    for words, sentence in (
        (_UNKNOWN, Say.UNCERTAIN),
        (_REJECTED, Say.REJECTED),
        (_BLOCKED, Say.BLOCKED),
    ):
        if words.search(first):
            return sentence
    return Say.FAILED


def _result(name: str, text: str, *, tool: BoundTool | None, language: Language) -> str:
    if not text:
        return say(Say.EMPTY_RESULT, language, tool=name)
    template = tool.answers.get(language) if tool else None
    told = _told(template, text) if template else None
    return told or say(Say.RESULT, language, tool=name, text=_bounded(text, language))


def _told(template: Mapping[str, str], text: str) -> str | None:
    """Return the result in the tool's words, or None when it is not what they speak of."""
    try:
        result = json.loads(text)
        lines = [_filled(template["text"], result)]
        lines += (
            [_filled(template["row"], row) for row in result[template["rows"]]]
            if ("rows" in template)
            else []
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(lines)


def _filled(template: str, result: Mapping[str, Any]) -> str:
    return Template(template).substitute({name: shown(value) for name, value in result.items()})


def _bounded(text: str, language: Language) -> str:
    if len(text) <= LONGEST_QUOTE:
        return text
    return text[:LONGEST_QUOTE] + say(Say.SHORTENED, language, length=len(text))
