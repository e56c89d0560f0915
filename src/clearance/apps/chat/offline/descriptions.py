"""What is right: a tool's slash form, and in words what its schema wants of an argument."""

import shlex
from collections.abc import Mapping
from typing import Any

from clearance.apps.chat.offline.bound import BoundTool
from clearance.apps.chat.offline.language import Language
from clearance.apps.chat.offline.values import choices, kinds, shown
from clearance.apps.chat.offline.wording import Say, say

_LIMITS = {"minimum": Say.AT_LEAST, "maximum": Say.AT_MOST, "maxLength": Say.LONGEST}


def usage(tool: BoundTool) -> str:
    """Return the slash form of a tool with examples; what may be left out is in brackets."""
    words = [f"/{tool.name}"]
    for name, part in tool.arguments.items():
        examples = part.get("examples") or choices(part, root=tool.schema)
        word = f"{name}={_quoted(shown(examples[0])) if examples else '…'}"
        words.append(word if name in tool.required else f"[{word}]")
    return " ".join(words)


def expected(tool: BoundTool, argument: str, language: Language) -> str:
    """Return in words what the argument must be: kind, choices or an example, limits."""
    part = tool.arguments[argument]
    if listed := choices(part, root=tool.schema):
        return say(Say.ONE_OF, language, values=", ".join(shown(value) for value in listed))
    found = [say(Say(kind.value), language) for kind in kinds(part, root=tool.schema)]
    words = [say(Say.OR, language).join(found)]
    if examples := part.get("examples"):
        words.append(say(Say.SUCH_AS, language, values=_quoted(shown(examples[0]))))
    words += _limits(part, language)
    return ("，" if language is Language.ZH else ", ").join(words)


def _limits(part: Mapping[str, Any], language: Language) -> list[str]:
    return [say(word, language, limit=part[rule]) for rule, word in _LIMITS.items() if rule in part]


def _quoted(text: str) -> str:
    """Return a value as the slash form reads it, in double quotation marks where they do."""
    if shlex.quote(text) == text:
        return text
    return shlex.quote(text) if set('"\\') & set(text) else f'"{text}"'
