"""The slash form: any bound tool called exactly, with values typed by its schema.

    /send_email to=ana@example.org subject="Your order" body="It's on its way."
    /tag ids='[1, 2]'

One command starts at each line that begins with `/name`; it ends with the line, unless a quotation
mark is open. Quotation marks and backslashes mean what they mean in a POSIX shell. Other lines are
not read.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clearance.apps.chat.offline.bound import BoundTool
from clearance.apps.chat.offline.values import WrongValueError, typed
from clearance.apps.chat.offline.wording import Say
from clearance.schema import faults
from clearance.toolcall import MAX_ARGUMENT_BYTES

_COMMAND = re.compile(r"\s*/(?P<name>[A-Za-z_][\w.:-]*)(?=\s|$)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Call:
    """A tool and arguments for it; a draft of a call while some are missing."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what was written: which sentence says it, about what."""

    sentence: Say
    tool: str = ""
    argument: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class _Command:
    tool: str
    words: str
    closed: bool


def has_command(text: str) -> bool:
    """Return whether any line of the text is a slash command."""
    return any(_COMMAND.match(line) for line in _lines(text))


def prose(text: str) -> str:
    """Return the lines of the text that are no slash commands."""
    return "".join(line for line in _lines(text) if not _COMMAND.match(line))


def read_commands(text: str, tools: Mapping[str, BoundTool]) -> tuple[tuple[Call, ...], tuple[Problem, ...]]:
    """Return the calls that the commands ask for, or what is wrong with them: one is empty.

    A text with several commands is read whole or not at all, so that a slip in one does not send
    the others.
    """
    if len(text.encode(errors="replace")) > MAX_ARGUMENT_BYTES:
        return (), (Problem(Say.TOO_LONG, facts={"limit": MAX_ARGUMENT_BYTES}),)
    calls: list[Call] = []
    problems: list[Problem] = []
    for command in _commands(text):
        tool = tools.get(command.tool)
        if tool is None:
            known = ", ".join(tools) or "–"
            problems.append(Problem(Say.UNKNOWN_TOOL, command.tool, facts={"known": known}))
        elif not command.closed:
            problems.append(Problem(Say.OPEN_QUOTE, tool.name))
        else:
            call, wrong = _read(command, tool)
            calls.append(call)
            problems += wrong
    return (() if problems else tuple(calls)), tuple(problems)


def check(call: Call, tool: BoundTool) -> list[Problem]:
    """Return what is missing and what breaks the schema, one problem an argument."""
    named = {_first(fault.pointer) for fault in faults(tool.schema, call.arguments)}
    missing = [name for name in tool.required if name not in call.arguments]
    wrong = [name for name in tool.arguments if name in named and name not in missing]
    if named and not missing and not wrong:
        return [Problem(Say.NO_FIT, tool.name)]
    return [
        *(Problem(Say.MISSING_ARGUMENT, tool.name, name) for name in missing),
        *(Problem(Say.WRONG_VALUE, tool.name, name) for name in wrong),
    ]


def _commands(text: str) -> Iterator[_Command]:
    """Yield the commands. One that begins inside a quotation mark shows that it was forgotten."""
    lines = _lines(text)
    at = 0
    while at < len(lines):
        start = _COMMAND.match(lines[at])
        if start is None:
            at += 1
            continue
        words = lines[at][start.end() :]
        quote = _open_after(words, "")
        at += 1
        while quote and at < len(lines) and not _COMMAND.match(lines[at]):
            quote = _open_after(lines[at], quote)
            words += lines[at]
            at += 1
        yield _Command(tool=start["name"], words=words.rstrip("\r\n"), closed=not quote)


def _lines(text: str) -> list[str]:
    """Return the lines. Only a line feed ends one: other separators may stand in a value."""
    return _LINE.findall(text)


def _open_after(text: str, quote: str) -> str:
    """Return the quotation mark open after the text, given the one open before it."""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
    return quote


def _read(command: _Command, tool: BoundTool) -> tuple[Call, list[Problem]]:
    lexer = shlex.shlex(command.words, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a backslash with nothing behind it
        return Call(tool.name, {}), [Problem(Say.OPEN_QUOTE, tool.name)]
    arguments: dict[str, Any] = {}
    problems: list[Problem] = []
    for position, word in enumerate(words, start=1):
        name, equals, text = word.partition("=")
        problem = _word_problem(tool, name, equals=equals, position=position, known=arguments)
        if problem is None:
            try:
                arguments[name] = typed(text, tool.arguments[name], root=tool.schema)
            except WrongValueError:
                problem = Problem(Say.WRONG_VALUE, tool.name, name)
                arguments[name] = None
        if problem is not None:
            problems.append(problem)
    call = Call(tool.name, arguments)
    said = {problem.argument for problem in problems}
    return call, [*problems, *(p for p in check(call, tool) if p.argument not in said)]


def _word_problem(
    tool: BoundTool, name: str, *, equals: str, position: int, known: Mapping[str, Any]
) -> Problem | None:
    if not equals:
        return Problem(Say.NAMELESS_WORD, tool.name, facts={"position": position})
    if name in known:
        return Problem(Say.REPEATED_ARGUMENT, tool.name, name)
    if name in tool.arguments:
        return None
    if not tool.arguments:
        return Problem(Say.NO_ARGUMENTS, tool.name)
    return Problem(Say.UNKNOWN_ARGUMENT, tool.name, name, facts={"known": ", ".join(tool.arguments)})


def _first(pointer: str) -> str:
    """Return the first name in a JSON pointer."""
    return pointer.removeprefix("/").split("/")[0].replace("~1", "/").replace("~0", "~")
