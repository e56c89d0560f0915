"""Tracing: a finished report is read again, and every number and citation in it is held to the run's records.

A report may hold no digit outside a fact, but in a few names of ours. The text of each fact is made again
from the bytes of the run's files. What a planner or a step says may cite nothing that the run's literature
does not have; what people wrote is quoted as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from clearance.apps.research.errors import ReportError
from clearance.apps.research.report.facts import Fact, Records, Source, Way, text_of
from clearance.apps.research.report.markdown import unescaped

# Names of ours with digits in them.
NAMES = frozenset({"sha256", "sha256sum", "S4_plan", "S5_execute"})
_WORD = re.compile(r"\S*\d\S*")
_EDGE = ".,;:()[]{}<>|*`'\"“”"
_NUMBER = re.compile(r"\d[\d.,]*")
_CITED = re.compile(r"\bPMID:?\s*(\d{1,9})|\b(10\.\d{4,9}/\S+)|\b(PMC\d{1,9})\b", re.IGNORECASE)
_VOID = frozenset({"br", "meta", "hr", "img", "link", "input", "col", "wbr"})
_SAID_ALOUD = ("alt", "title", "aria-label", "placeholder")
_UNSEEN = frozenset({"style", "script", "template"})
_OWN_WORDS = re.compile(r"^/(objective|wishes|subject)(/|$)")


def check_report(html: str, markdown: str, facts: Sequence[Fact], records: Records) -> None:
    """Raise `ReportError` with everything in a report that cannot be traced to the records of its run."""
    untraced = [
        *_untrue(facts, records),
        *_uncited(facts, records),
        *_loose_in_html(html, facts),
        *_loose_in_markdown(markdown, facts),
    ]
    if untraced:
        raise ReportError("The report has what the run's records do not have:", untraced=untraced)


def read_facts(document: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return the facts that a `report.json` lists; `ReportError` for a document that is none."""
    try:
        return tuple(
            Fact(
                id=each["id"],
                text=each["text"],
                way=Way(each["way"]),
                sources=tuple(Source(source["file"], source["pointer"]) for source in each["from"]),
                argument=each.get("argument", ""),
            )
            for each in document["facts"]
        )
    except (KeyError, TypeError, ValueError):
        raise ReportError("report.json does not list its facts as a report does.") from None


def _untrue(facts: Iterable[Fact], records: Records) -> Iterator[str]:
    """Find facts that the records do not make."""
    for fact in facts:
        try:
            made = text_of(records, fact.way, fact.sources, argument=fact.argument)
        except ReportError as error:
            yield str(error)
            continue
        if made != fact.text:
            yield f"{fact.text!r} is {made!r} in {fact.sources[0].file} at {fact.sources[0].pointer}"


def _uncited(facts: Iterable[Fact], records: Records) -> Iterator[str]:
    """Find citations by a planner or a step that are not in the run's literature."""
    known = _known(records)
    for fact in facts:
        source = fact.sources[0]
        if source.file.startswith(("plan.v", "analysis", "steps/")) and not _OWN_WORDS.match(source.pointer):
            for found in _CITED.finditer(fact.text):
                named = next(each for each in found.groups() if each).rstrip(_EDGE).lower()
                if named not in known:
                    yield f"{found[0]!r} is cited in {source.file} and is not in the run's literature"


def _known(records: Records) -> set[str]:
    if "literature.json" not in records.known:
        return set()
    entries = records.document("literature.json")["records"]
    names = [entry.get(name) for entry in entries for name in ("pmid", "doi", "pmcid")]
    return {name.lower() for name in names if name}


def _loose_in_html(html: str, facts: Sequence[Fact]) -> Iterator[str]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    by_id = {str(fact.id): fact for fact in facts}
    for name, text in reader.facts:
        if name not in by_id or by_id[name].text != text:
            yield f"{text!r} stands in the page as fact {name}, which says something else"
    yield from (f"{word!r} stands in the page and is no fact" for word in _loose(reader.loose))


def _loose_in_markdown(markdown: str, facts: Sequence[Fact]) -> Iterator[str]:
    """Find numbers that are in no fact. Facts are not marked there, so numbers are compared one by one."""
    known = {number for fact in facts for number in _numbers(fact.text)}
    for word in _loose([unescaped(markdown)]):
        if not known.issuperset(_numbers(word)):
            yield f"{word!r} stands in the Markdown and is in no fact"


def _numbers(text: str) -> list[str]:
    return [number.rstrip(".,") for number in _NUMBER.findall(text)]


def _loose(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for word in _WORD.findall(text):
            if word.strip(_EDGE) not in NAMES:
                yield word


@dataclass
class _Open:
    tag: str
    fact: str | None
    text: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Takes a page apart: the texts of its facts, and the texts that belong to none."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.facts: list[tuple[str, str]] = []
        self.loose: list[str] = []
        self._open: list[_Open] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loose += [given[name] or "" for name in _SAID_ALOUD if name in given]
        if tag not in _VOID:
            self._open.append(_Open(tag, given.get("data-fact")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            closed = self._open.pop()
            if closed.fact is not None:
                self.facts.append((closed.fact, "".join(closed.text)))
            if closed.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        inside = next((each for each in reversed(self._open) if each.fact is not None), None)
        if inside is not None:
            inside.text.append(data)
        elif not any(each.tag in _UNSEEN for each in self._open):
            self.loose.append(data)

    def handle_comment(self, data: str) -> None:
        self.loose.append(data)
