"""Answers to what became of calls: results, rejections, edits, a person's own words, failures.

What became of a call is read from its tool message as any model must read it: from the status, and from the
words that Clearance (and LangChain's own review middleware) puts there.
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

LONGEST_QUOTE = 2000

_PERSON = r"\b(?:person|people|human|user|reviewer)\b"
_CHANGED = r"\b(?:changed|edited|replaced)\b"
_NOTICE = re.compile(rf"{_PERSON}.*{_CHANGED}", re.IGNORECASE)
_RAN = re.compile(r"\b(?:what ran|executed instead): (?P<call>.+?)\]?\s*$", re.IGNORECASE)
_RESPONSE_HEAD = re.compile(r"\A\s*(?:Tool response:)?\s*", re.IGNORECASE)
_ANSWERED = re.compile(rf"{_PERSON}.*\banswered\b", re.IGNORECASE)
_REASON = re.compile(r"\breason: *(?P<reason>.+)", re.IGNORECASE | re.DOTALL)
_ERROR_NAME = re.compile(r"\A[A-Za-z_]+(?:Error|Exception): ")
# The first that is found in the text of an error says what became of the call.
_NOT_DONE = (
    (re.compile(r"outcome is unknown|\ACallUncertainError\b", re.IGNORECASE), Say.UNCERTAIN),
    (re.compile(rf"{_PERSON} rejected\b", re.IGNORECASE), Say.REJECTED),
    (re.compile(r"\ANobody cleared\b", re.IGNORECASE), Say.EXPIRED),
    (re.compile(r"\AThe policy denies\b", re.IGNORECASE), Say.BLOCKED),
    (re.compile(r"\bdid not run\b", re.IGNORECASE), Say.NOT_RUN),
)


def answer(since: Sequence[BaseMessage], *, tools: Mapping[str, BoundTool], language: Language) -> str:
    """Return the answer to the tool messages that followed the person's last message."""
    proposed = [message for message in since if isinstance(message, AIMessage)]
    names = {call["id"]: call["name"] or "?" for message in proposed for call in message.tool_calls}
    refused = {call["id"]: call["name"] or "?" for message in proposed for call in message.invalid_tool_calls}
    paragraphs: list[str] = []
    finished = True
    for message in since:
        if isinstance(message, ToolMessage):
            name = message.name or {**names, **refused}.get(message.tool_call_id, "?")
            notice, text = _split(str(message.text))
            sentence = _outcome(message, text, offered=message.tool_call_id not in refused)
            said = _said(sentence, name, text, tool=tools.get(name), language=language)
            paragraphs.append("\n".join([*_edited(notice, language), said]))
            finished = finished and message.status != "error"
    if not finished or not paragraphs:
        paragraphs.append(say(Say.WHAT_NEXT, language))
    return "\n\n".join(paragraphs)


def _split(text: str) -> tuple[str, str]:
    """Return the notice that a person changed the call ("" where there is none), and the rest."""
    first, _, rest = text.partition("\n")
    if not (_NOTICE.search(first) and _RAN.search(first)):
        return "", text.strip()
    return first.strip(), _RESPONSE_HEAD.sub("", rest, count=1).strip()


def _edited(notice: str, language: Language) -> list[str]:
    ran = _RAN.search(notice)
    return [say(Say.EDITED, language, call=_bounded(ran["call"], language))] if ran else []


def _outcome(message: ToolMessage, text: str, *, offered: bool) -> Say:
    """Return the sentence for what became of the call; one that was not even offered did not run."""
    first = text.partition("\n")[0]
    if message.status != "error":
        return Say.RESPONDED if _ANSWERED.search(first) else Say.RESULT
    found = next((sentence for words, sentence in _NOT_DONE if words.search(first)), None)
    return found or (Say.FAILED if offered else Say.NOT_RUN)


def _said(sentence: Say, name: str, text: str, *, tool: BoundTool | None, language: Language) -> str:
    if sentence is Say.RESULT:
        return _result(name, text, tool=tool, language=language)
    if sentence is Say.REJECTED:
        reason = _REASON.search(text)
        if reason is None:
            return say(Say.REJECTED_SILENTLY, language, tool=name)
        text = reason["reason"].strip()
    plain = _bounded(_ERROR_NAME.sub("", text), language)
    return say(sentence, language, tool=name, text=plain)


def _result(name: str, text: str, *, tool: BoundTool | None, language: Language) -> str:
    template = tool.answers.get(language) if tool else None
    told = _told(template, text) if template else None
    return told or say(Say.RESULT, language, tool=name, text=_bounded(text, language))


def _told(template: Mapping[str, str], text: str) -> str | None:
    """Return the result in the tool's words, or None when it is not what they speak of."""
    try:
        result = json.loads(text)
        rows = result[template["rows"]] if "rows" in template else []
        lines = [_filled(template["text"], result), *(_filled(template["row"], row) for row in rows)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(lines)


def _filled(template: str, result: Mapping[str, Any]) -> str:
    return Template(template).substitute({name: shown(value) for name, value in result.items()})


def _bounded(text: str, language: Language) -> str:
    if len(text) <= LONGEST_QUOTE:
        return text
    return text[:LONGEST_QUOTE] + say(Say.SHORTENED, language, length=len(text))
