"""Expressions: what a condition in CEL may say, found out by reading its text alone.

A condition is asked about inside a transaction, and the interpreter can be interrupted neither by a clock nor
by a signal. So what could take long, or nest too deep for it, is refused before it is ever evaluated: one
loop at most inside another expression, patterns that are written out, and bounds on the text itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

VARIABLES = ("args", "tool", "run", "person")
CHECKED = ("address", "domain", "path", "money")
"""The functions of our own, which refuse what is ambiguous."""

LOOPS = ("all", "exists", "exists_one")
FUNCTIONS = frozenset(
    [
        *(*CHECKED, *LOOPS, "contains", "double", "duration", "endsWith", "has", "int", "matches"),
        *("size", "startsWith", "string", "timestamp", "type"),
    ]
)
MAX_TEXT = 1000
MAX_NAME = 60
MAX_NESTING = 16
MAX_PATTERN = 200
MAX_REPEATS = 64
_OF_TEXT = frozenset(("contains", "endsWith", "matches", "startsWith"))
_KEYWORDS = frozenset(("true", "false", "null", "in"))
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
    |(?P<string>[rRbB]{0,2}(?:'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[uU]?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||[=!<>]=|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")


@dataclass(frozen=True)
class Cel:
    """A condition in CEL (Common Expression Language) over `args`, `tool`, `run` and `person`.

    Its text is all there is to it: every process can evaluate it. What cannot be evaluated holds the call.
    """

    text: str

    @property
    def name(self) -> str:
        """The beginning of the text in one line, as the rule is called where it has no name."""
        line = " ".join(self.text.split())
        return line if len(line) <= MAX_NAME else line[: MAX_NAME - 1] + "…"


@dataclass(frozen=True)
class Origin:
    """Where a call comes from, as conditions see it: `run`, and `person`, who asked for it.

    `run` has `id`, `thread` and `program`; `person` has `id`, `groups`, `role` and `kind`.
    """

    run: Mapping[str, Any]
    person: Mapping[str, Any]


@dataclass(frozen=True)
class Flaw:
    """Something that is wrong with an expression, from this character on."""

    offset: int
    message: str


Path = tuple[str | int | None, ...]
"""Steps into the arguments: the name of a field, the number of an item, or None for each item of a list."""


@dataclass(frozen=True)
class Comparison:
    """An argument that is compared with a written value of this kind: text, number, bool or null.

    `offset` is the place of the argument.
    """

    path: Path
    kind: str
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Reading:
    """What an expression says: which variables, which arguments (with their places), and what is wrong.

    `walked` are the arguments that loops go through.
    """

    names: frozenset[str]
    arguments: tuple[tuple[str, int], ...]
    comparisons: tuple[Comparison, ...]
    walked: tuple[Path, ...]
    patterns: tuple[tuple[str, int], ...]
    loops: int
    flaws: tuple[Flaw, ...]


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Return what an expression says. Never raises; what is no CEL at all is for its parser to find."""
    if len(text) > MAX_TEXT:
        flaw = Flaw(0, f"is longer than {MAX_TEXT} characters: make it several rules")
        return Reading(frozenset(), (), (), (), (), 0, (flaw,))
    tokens = [
        _Token(str(found.lastgroup), found.group(), found.start())
        for found in _TOKEN.finditer(text)
        if found.lastgroup != "space"
    ]
    at = _Tokens(tokens)
    loops = tuple(_walks(at))
    return Reading(
        names=frozenset(token.text for _, token in at.free_names() if token.text in VARIABLES),
        arguments=tuple(_arguments(at)),
        comparisons=tuple(_comparisons(at, loops)),
        walked=tuple(loop.path for loop in loops if loop.path is not None),
        patterns=tuple(_patterns(at)),
        loops=len(loops),
        flaws=tuple(
            sorted(
                [*_too_deep(at), *_loops(at), *_hidden(at), *_matches(at), *_unknown(at, loops)],
                key=lambda f: f.offset,
            )
        ),
    )


class _Tokens:
    """The tokens of an expression; beyond either end there are empty ones."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens

    def __getitem__(self, index: int) -> _Token:
        return self._tokens[index] if 0 <= index < len(self._tokens) else _Token("end", "", 0)

    def __iter__(self) -> Iterator[tuple[int, _Token]]:
        return iter(enumerate(self._tokens))

    def free_names(self) -> Iterator[tuple[int, _Token]]:
        """Give the names that stand for a value by themselves: no fields, no functions, no keywords."""
        for index, token in self:
            alone = self[index - 1].text != "." and self[index + 1].text != "("
            if token.kind == "name" and alone and token.text not in _KEYWORDS:
                yield index, token

    def calls(self, *names: str) -> Iterator[tuple[int, _Token]]:
        """Give the places where one of these functions is called."""
        for index, token in self:
            if token.kind == "name" and self[index + 1].text == "(" and (not names or token.text in names):
                yield index, token

    def closing(self, opening: int) -> int:
        """Return the place of the bracket that closes the one at `opening`."""
        depth = 0
        for index, token in self:
            if index < opening or token.kind != "sign":
                continue
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0:
                return index
        return len(self._tokens)

    def opening(self, closing: int) -> int:
        """Return the place of the bracket that is closed at `closing`."""
        found = (index for index, token in self if token.kind == "sign" and token.text in "([{")
        return next((index for index in found if self.closing(index) == closing), closing)

    def path(self, index: int) -> tuple[Path, int]:
        """Return the fields and items behind the name at `index`, and the place behind the last of them."""
        fields: list[str | int | None] = []
        after = index + 1
        while True:
            if self[after].text == "." and self[after + 1].kind == "name" and self[after + 2].text != "(":
                fields.append(self[after + 1].text)
                after += 2
            elif self[after].text == "[" and self[after + 2].text == "]" and self[after + 1].text.isdigit():
                fields.append(int(self[after + 1].text))
                after += 3
            elif self[after].text == "[" and (key := _plain(self[after + 1])) and self[after + 2].text == "]":
                fields.append(key)
                after += 3
            else:
                return tuple(fields), after

    def value(self, index: int) -> tuple[Path, int, int]:
        """Return the path that begins at `index`, and the places around it and its own brackets."""
        fields, after = self.path(index)
        before = index - 1
        while self[before].text == "(" and self[after].text == ")" and not self.is_call(before):
            before, after = before - 1, after + 1
        return fields, before, after

    def is_call(self, opening: int) -> bool:
        """Whether a bracket holds what is given to a function."""
        name = self[opening - 1]
        return name.kind == "name" and name.text not in _KEYWORDS


def _too_deep(at: _Tokens) -> Iterator[Flaw]:
    depth = 0
    for _, token in at:
        if token.kind == "sign":
            depth += (token.text in "([{") - (token.text in ")]}")
        if depth > MAX_NESTING:
            yield Flaw(token.offset, f"is nested deeper than {MAX_NESTING} brackets")
            return


def _loops(at: _Tokens) -> Iterator[Flaw]:
    inside_until = -1
    for index, token in at.calls("map", "filter", *LOOPS):
        if token.text not in LOOPS:
            yield Flaw(token.offset, f"{token.text}() makes a list; ask with {', '.join(LOOPS)}")
        elif index < inside_until:
            yield Flaw(token.offset, "a loop inside a loop can take too long: make it two rules")
        elif at[index + 2].text in VARIABLES:
            yield Flaw(at[index + 2].offset, f"{at[index + 2].text} is taken: give the item another name")
        inside_until = max(inside_until, at.closing(index + 1))


def _matches(at: _Tokens) -> Iterator[Flaw]:
    loops = [(index, at.closing(index + 1)) for index, _ in at.calls(*LOOPS)]
    for index, token in at.calls("matches"):
        given = at[index + 2]
        if at[index - 1].text != "." or given.kind != "string" or at[index + 3].text != ")":
            yield Flaw(token.offset, 'matches() takes one pattern that is written out: .matches("^a+$")')
        elif any(first < index < last for first, last in loops):
            yield Flaw(token.offset, "matches() inside a loop can take too long")
        elif len(given.text) > MAX_PATTERN or _repeats(given.text) > MAX_REPEATS:
            yield Flaw(given.offset, f"a pattern has at most {MAX_PATTERN} characters, {MAX_REPEATS} repeats")


def _patterns(at: _Tokens) -> Iterator[tuple[str, int]]:
    for index, _ in at.calls("matches"):
        if at[index + 2].kind == "string":
            yield at[index + 2].text, at[index + 2].offset


def _repeats(pattern: str) -> int:
    product = 1
    for low, high in _REPEAT.findall(pattern):
        # Long ones are cut before they are read as numbers; what remains is still too many.
        product *= max(int(low[:6]), int((high or "0")[:6]), 1)
    return product


def _unknown(at: _Tokens, loops: Sequence["_Loop"]) -> Iterator[Flaw]:
    bound = {loop.name for loop in loops}
    for _, token in at.free_names():
        if token.text not in VARIABLES and token.text not in bound:
            yield Flaw(token.offset, f"{token.text} is not defined; there are {', '.join(VARIABLES)}")
    for _, token in at.calls():
        if token.text not in FUNCTIONS and token.text not in ("map", "filter"):
            yield Flaw(token.offset, f"there is no function {token.text}()")


def _arguments(at: _Tokens) -> Iterator[tuple[str, int]]:
    for index, token in at.free_names():
        if token.text == "args":
            fields, _ = at.path(index)
            if fields:
                yield str(fields[0]), at[index + 2].offset


@dataclass(frozen=True)
class _Loop:
    """A loop: the name of its item, from where to where it is bound, and the argument that it walks."""

    name: str
    begin: int
    end: int
    path: Path | None


def _walks(at: _Tokens) -> Iterator[_Loop]:
    given = [at.value(index) for index, token in at.free_names() if token.text == "args"]
    ends = {after: fields for fields, _, after in given}
    for index, _ in at.calls(*LOOPS):
        yield _Loop(at[index + 2].text, index, at.closing(index + 1), ends.get(index - 1))


def _hidden(at: _Tokens) -> Iterator[Flaw]:
    """Find what is looped over or compared in a form that says not which argument it is."""
    named = ("args", "run", "person")
    known = {at.value(index)[2] for index, token in at.free_names() if token.text in named}
    for index, token in at.calls(*LOOPS):
        if index - 1 not in known:
            yield Flaw(token.offset, "a loop walks an argument, or a list of run or person, by its name")
    for index, _ in at.free_names():
        after = at.path(index)[1]
        if at[after].text == "[":
            yield Flaw(at[after].offset, 'inside [ ] stands a number or a "name" that is written out')
    for index, token in at:
        wrapped = at.opening(index - 1) if at[index - 1].text == ")" else index
        if token.text in ("==", "!=", "in") and any(at[place].text == "?" for place in range(wrapped, index)):
            yield Flaw(at[wrapped].offset, "compare the arguments themselves, and choose with && and ||")
        elif token.text not in ("==", "!="):
            continue
        elif at[index + 1].text in ("[", "{") or _is_written(at, index - 1):
            yield Flaw(token.offset, "compare items and fields: a list or object as a whole has no kind")
        elif _is_wrapped(at, index + 1) or _is_wrapped(at, wrapped):
            yield Flaw(token.offset, "write the value without brackets around it")


def _is_written(at: _Tokens, closing: int) -> bool:
    """Whether a list or an object that is written out ends here, and not an item of something."""
    if at[closing].text == "}":
        return True
    before = at[at.opening(closing) - 1]
    return at[closing].text == "]" and before.kind != "name" and before.text not in (")", "]")


def _is_wrapped(at: _Tokens, opening: int) -> bool:
    """Whether brackets that begin here, and are none of a call, hold a written value, a list or an object."""
    while at[opening].text == "(" and not at.is_call(opening):
        opening += 1
        if at[opening].text in ("[", "{") or (_kind(at, opening) and at[opening + 1].text == ")"):
            return True
    return False


def _compared(at: _Tokens, loops: Sequence[_Loop]) -> Iterator[tuple[Path, int, int, int]]:
    """Give the arguments, and the items of those that loops walk, with their offset and the places around."""
    for index, token in at.free_names():
        fields, before, after = at.value(index)
        if token.text == "args" and fields:
            yield fields, token.offset, before, after
        for loop in loops:
            if loop.path is not None and token.text == loop.name and loop.begin < index < loop.end:
                yield (*loop.path, None, *fields), token.offset, before, after


def _comparisons(at: _Tokens, loops: Sequence[_Loop]) -> Iterator[Comparison]:
    """Give what stands directly beside a written value: `args.env != "prod"`, `args.env in ["prod"]`."""
    for path, offset, before, after in _compared(at, loops):
        beside = []
        if at[after].text in ("==", "!="):
            beside.append((path, _kind(at, after + 1)))
        if at[after].text == "in" and at[after + 1].text == "[":
            beside += [(path, kind) for kind in _kinds(at, after + 1)]
        if at[after].text == "." and at[after + 1].text in _OF_TEXT:
            beside.append((path, "text"))
        if at[before].text in ("==", "!="):
            beside.append((path, _kind(at, before - 1)))
        if at[before].text == "in":
            beside.append(((*path, None), _kind(at, before - 1)))
        yield from (Comparison(where, kind, offset) for where, kind in beside if kind)


def _kinds(at: _Tokens, opening: int) -> Iterator[str | None]:
    """Give the kinds of the items of a list that is written out."""
    depth = 0
    for index in range(opening, at.closing(opening)):
        depth += (at[index].text in "([{") - (at[index].text in ")]}") if at[index].kind == "sign" else 0
        if depth == 1 and (index == opening or at[index].text == ","):
            yield _kind(at, index + 1)


def _kind(at: _Tokens, index: int) -> str | None:
    token = at[index + 1] if at[index].text == "-" else at[index]
    if token.kind == "string":
        return "text"
    if token.kind == "number":
        return "number"
    return {"true": "bool", "false": "bool", "null": "null"}.get(token.text)


def _plain(token: _Token) -> str | None:
    """Return the text of a written text without escapes."""
    found = re.fullmatch(r"""(['"])([^'"\\]*)\1""", token.text)
    return found.group(2) if found else None
