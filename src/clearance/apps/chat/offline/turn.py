"""One turn of the offline model: from the messages of a thread to its reply.

A reply is words or calls. After a tool message of the same turn it is always words.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from clearance.apps.chat.offline.answers import answer
from clearance.apps.chat.offline.bound import BoundTool
from clearance.apps.chat.offline.descriptions import expected, usage
from clearance.apps.chat.offline.language import Language, guess
from clearance.apps.chat.offline.requests import drafts_in, is_cancel, language_of_phrase
from clearance.apps.chat.offline.slash import (
    Call,
    Problem,
    check,
    has_command,
    prose,
    read_commands,
)
from clearance.apps.chat.offline.values import WrongValueError, typed
from clearance.apps.chat.offline.wording import Say, say

# Where an AI message keeps what its question was about, as JSON text: numbers of any size survive
# there.
ASKED = "clearance_asked"
# The name of a message that tells the model what became of a call of an earlier turn.
NOTE = "clearance"
_END = re.compile(r"[.!?。！？]+$")


@dataclass(frozen=True)
class Reply:
    """What the model says or proposes; `asked` is kept with a question, for its answer."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    asked: str = ""


@dataclass(frozen=True)
class _Asked:
    """What a question was about: an argument of the draft at a place among all drafts of the request."""

    drafts: tuple[Call, ...]
    at: int
    argument: str


def reply(messages: Sequence[BaseMessage], tools: Mapping[str, BoundTool]) -> Reply:
    """Return the reply to a thread whose last message is a person's or a tool's."""
    said = [at for at, message in enumerate(messages) if _is_persons(message)]
    language = _language([_text(messages[at]) for at in reversed(said)], tools)
    if not said:
        return Reply(_help(tools, language))
    since = messages[said[-1] + 1 :]
    if any(isinstance(message, AIMessage | ToolMessage) for message in since):
        return Reply(answer(since, tools=tools, language=language))
    before = messages[said[-1] - 1] if said[-1] else None
    found = _reply_to(_text(messages[said[-1]]), before, tools=tools, language=language)
    news = [say(Say.NEWS, language, text=_text(message).strip("[]")) for message in since]
    return replace(found, text="\n\n".join([*news, *([found.text] if found.text else [])]))


def _is_persons(message: BaseMessage) -> bool:
    """Whether a person wrote the message; what Clearance tells the model comes under its own name."""
    return isinstance(message, HumanMessage) and message.name != NOTE


def _reply_to(
    text: str,
    before: BaseMessage | None,
    *,
    tools: Mapping[str, BoundTool],
    language: Language,
) -> Reply:
    if has_command(text):
        calls, problems = read_commands(text, tools)
        return Reply(_problems(problems, tools, language)) if problems else Reply(calls=calls)
    if drafts := drafts_in(text, tools):
        return _settle([_typed(draft, tools) for draft in drafts], tools, language)
    asked = _asked(before, tools)
    if asked is None:
        return Reply(_help(tools, language))
    if is_cancel(text):
        return Reply(say(Say.CANCELLED, language))
    return _settle(_filled(asked, text, tools), tools, language)


def _typed(
    draft: tuple[str, Mapping[str, str]], tools: Mapping[str, BoundTool]
) -> tuple[Call, list[Problem]]:
    """Return a draft with its texts read as values; what does not fit is left out and named."""
    tool = tools[draft[0]]
    arguments: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, text in draft[1].items():
        try:
            arguments[name] = typed(text, tool.arguments[name], root=tool.schema)
        except WrongValueError:
            problems.append(Problem(Say.WRONG_VALUE, tool.name, name))
    return _in_order(tool, arguments), problems


def _in_order(tool: BoundTool, arguments: Mapping[str, Any]) -> Call:
    """Return the call with its arguments in the order in which the tool declares them."""
    known = {name: arguments[name] for name in tool.arguments if name in arguments}
    return Call(tool.name, {**known, **arguments})


def _filled(asked: _Asked, text: str, tools: Mapping[str, BoundTool]) -> list[tuple[Call, list[Problem]]]:
    """Return the drafts with the text in the place that was asked for."""
    given: list[tuple[Call, list[Problem]]] = [(draft, []) for draft in asked.drafts]
    draft = asked.drafts[asked.at]
    plain = text.strip()
    found, wrong = _typed((draft.tool, {asked.argument: plain}), tools)
    if wrong:
        found, wrong = _typed((draft.tool, {asked.argument: _END.sub("", plain)}), tools)
    together = {**draft.arguments, **found.arguments}
    given[asked.at] = (_in_order(tools[draft.tool], together), wrong)
    return given


def _settle(
    given: list[tuple[Call, list[Problem]]], tools: Mapping[str, BoundTool], language: Language
) -> Reply:
    """Return the calls when every draft is complete, else a question about the first gap."""
    drafts = tuple(draft for draft, _ in given)
    for at, (draft, wrong) in enumerate(given):
        tool = tools[draft.tool]
        open_ones = [*wrong, *(p for p in check(draft, tool) if p.argument)]
        if open_ones:
            argument = min((p.argument for p in open_ones), key=list(tool.arguments).index)
            lines = [_sentence(problem, tools, language) for problem in wrong]
            lines.append(_question(tool, argument, language))
            return Reply("\n".join(lines), asked=_kept(_Asked(drafts, at, argument)))
        if together := check(draft, tool):
            return Reply(_problems(together, tools, language))
    return Reply(calls=drafts)


def _question(tool: BoundTool, argument: str, language: Language) -> str:
    own = tool.questions.get(argument, {}).get(language)
    wanted = expected(tool, argument, language)
    return own or say(Say.ASK, language, argument=argument, tool=tool.name, expected=wanted)


def _kept(asked: _Asked) -> str:
    drafts = [{"tool": draft.tool, "arguments": dict(draft.arguments)} for draft in asked.drafts]
    return json.dumps({"drafts": drafts, "at": asked.at, "argument": asked.argument}, ensure_ascii=False)


def _asked(message: BaseMessage | None, tools: Mapping[str, BoundTool]) -> _Asked | None:
    """Return what the message before asked about; None when it was no question about these tools."""
    kept = message.additional_kwargs.get(ASKED) if isinstance(message, AIMessage) else None
    if not isinstance(kept, str):
        return None
    held = json.loads(kept)
    asked = _Asked(
        drafts=tuple(Call(draft["tool"], draft["arguments"]) for draft in held["drafts"]),
        at=held["at"],
        argument=held["argument"],
    )
    known = all(draft.tool in tools for draft in asked.drafts)
    return asked if known and asked.argument in tools[asked.drafts[asked.at].tool].arguments else None


def _problems(problems: Sequence[Problem], tools: Mapping[str, BoundTool], language: Language) -> str:
    lines = [say(Say.NOTHING_PROPOSED, language)]
    lines += [f"- {_sentence(problem, tools, language)}" for problem in problems]
    named = dict.fromkeys(problem.tool for problem in problems if problem.tool in tools)
    lines += [say(Say.USAGE, language, usage=usage(tools[name])) for name in named]
    return "\n".join(lines)


def _sentence(problem: Problem, tools: Mapping[str, BoundTool], language: Language) -> str:
    places = {"tool": problem.tool, "argument": problem.argument, **problem.facts}
    tool = tools.get(problem.tool)
    if tool and problem.argument in tool.arguments:
        places["expected"] = expected(tool, problem.argument, language)
    return say(problem.sentence, language, **places)


def _help(tools: Mapping[str, BoundTool], language: Language) -> str:
    lines = [say(Say.HELP, language)]
    if not tools:
        return "\n".join([*lines, say(Say.HELP_NO_TOOLS, language)])
    examples = [tool.examples[language] for tool in tools.values() if language in tool.examples]
    if examples:
        lines += [say(Say.HELP_EXAMPLES, language), *(f"- {example}" for example in examples)]
    lines.append(say(Say.HELP_SLASH, language))
    return "\n".join([*lines, *(f"- {usage(tool)}" for tool in tools.values())])


def _language(texts: Sequence[str], tools: Mapping[str, BoundTool]) -> Language:
    """Return the language of the newest text that shows one; values of commands count last."""
    for text in texts:
        words = prose(text)
        if found := language_of_phrase(words, tools) or guess(words):
            return found
    return (guess(texts[0]) if texts else None) or Language.EN


def _text(message: BaseMessage) -> str:
    return str(message.text)
