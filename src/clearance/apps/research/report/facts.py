"""Facts: everything that a report says, each with the place in the run's records that it is taken from.

A report shows nothing but fixed words and facts. A fact is a text, the way in which it was made, and its
sources: `analysis.json` at `/steps/0/cpu_s`, say. Ways are few and fixed, so that whoever has the report
and the run's files can make the text again, and see whether it is the same.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, ROUND_UP, Decimal
from enum import StrEnum
from typing import Any

from clearance.apps.research.errors import ReportError
from clearance.apps.research.estimates import PRICE_OF_A_CPU_HOUR
from clearance.apps.research.report.scale import marks
from clearance.visible import visible

NOTHING = "–"
_A_CENT_OF_A_CENT = Decimal("0.0001")


class Way(StrEnum):
    """How the text of a fact is made of the values of its sources."""

    PLAIN = "plain"
    RAW = "raw"
    NAME = "name"
    COUNT = "count"
    COUNT_OF = "count of"
    SUM = "sum"
    PERCENT = "percent"
    SHARE = "share"
    PRICE = "price"
    TIME = "time"
    RANGE = "range"
    LIST = "list"
    MARK = "mark"
    SHA256 = "sha256"
    FILE = "file"


@dataclass(frozen=True)
class Source:
    """A place in a file of the run: its name, and a JSON pointer (RFC 6901); "" is the whole file."""

    file: str
    pointer: str


@dataclass(frozen=True)
class Fact:
    """One text of a report. `argument` belongs to the way: which mark, which state is counted."""

    id: int
    text: str
    way: Way
    sources: tuple[Source, ...]
    argument: str = ""

    def document(self) -> dict[str, Any]:
        """Return the fact as `report.json` lists it."""
        sources = [{"file": each.file, "pointer": each.pointer} for each in self.sources]
        argument = {"argument": self.argument} if self.argument else {}
        return {"id": self.id, "text": self.text, "way": self.way.value, **argument, "from": sources}


class Records:
    """The files of one run. `read` gives the bytes of a file; `known` are the hashes that they must have."""

    def __init__(self, read: Callable[[str], bytes], known: Mapping[str, str]) -> None:
        self._read = read
        self.known = known
        self._parsed: dict[str, Any] = {}

    def bytes_of(self, file: str) -> bytes:
        """Return the bytes of a file; `ReportError` when the run has none, or not with its hash."""
        if file not in self.known:
            raise ReportError(f"The run has no file {file}.")
        content = self._read(file)
        if hashlib.sha256(content).hexdigest() != self.known[file]:
            raise ReportError(f"{file} is not what the run kept: its sha256 differs.")
        return content

    def document(self, file: str) -> Any:
        """Return a JSON file; numbers with a point are exact decimals."""
        if file not in self._parsed:
            try:
                self._parsed[file] = json.loads(self.bytes_of(file), parse_float=Decimal)
            except ValueError:
                raise ReportError(f"{file} cannot be read as JSON.") from None
        return self._parsed[file]

    def value(self, source: Source) -> Any:
        """Return what stands at a place; `ReportError` where nothing does."""
        value = self.document(source.file)
        for part in source.pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            try:
                value = value[int(name)] if isinstance(value, list) else value[name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise ReportError(f"{source.file} has nothing at {source.pointer}.") from None
        return value


class Book:
    """The facts of one report, in the order of their first use."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._facts: dict[tuple[Way, str, tuple[Source, ...]], Fact] = {}

    @property
    def facts(self) -> Sequence[Fact]:
        """Every fact, by its id."""
        return tuple(self._facts.values())

    def fact(self, way: Way, *sources: Source, argument: str = "") -> Fact:
        """Return the fact that is made in this way of these sources; the same again is the same."""
        key = (way, argument, sources)
        if key not in self._facts:
            text = text_of(self.records, way, sources, argument=argument)
            self._facts[key] = Fact(len(self._facts), text, way, sources, argument)
        return self._facts[key]

    def file(self, name: str) -> "Node":
        """Return the root of a JSON file."""
        return Node(self, Source(name, ""), self.records.document(name))


@dataclass(frozen=True)
class Node:
    """A place in the records with its value, from which facts are taken."""

    book: Book
    source: Source
    value: Any

    def __getitem__(self, name: str | int) -> "Node":
        token = str(name).replace("~", "~0").replace("/", "~1")
        source = Source(self.source.file, f"{self.source.pointer}/{token}")
        return Node(self.book, source, self.book.records.value(source))

    def __contains__(self, name: object) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator["Node"]:
        """Walk through the items of a list, or the values of an object."""
        keys = range(len(self.value)) if isinstance(self.value, list) else list(self.value)
        return iter([self[key] for key in keys])

    def find(self, name: str) -> "Node | None":
        """Return the member of that name; None where there is none, or it is null."""
        found = self[name] if isinstance(self.value, dict) and name in self.value else None
        return None if found is None or found.value is None else found

    def fact(self, way: Way = Way.PLAIN, *, argument: str = "") -> Fact:
        """Return the fact that stands here."""
        return self.book.fact(way, self.source, argument=argument)

    def said(self, name: str) -> Fact | None:
        """Return the member of that name as a fact; None where it is absent, null or empty."""
        found = self.find(name)
        return found.fact() if found is not None and found.value != "" else None

    @property
    def name(self) -> Fact:
        """The name of this member, as a fact: names in an object may be data, too."""
        return self.fact(Way.NAME)


def text_of(records: Records, way: Way, sources: Sequence[Source], *, argument: str = "") -> str:
    """Return the text that a way makes of what stands at the sources; `ReportError` where it makes none."""
    if way is Way.SHA256:
        return hashlib.sha256(records.bytes_of(sources[0].file)).hexdigest()
    if way is Way.FILE:
        records.bytes_of(sources[0].file)
        return visible(sources[0].file)
    values = [records.value(each) for each in sources]
    if way is Way.NAME:
        last = sources[0].pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        return visible(last)
    try:
        return visible(_MADE[way](values, argument), lines=True)
    except (ArithmeticError, TypeError, ValueError, LookupError):
        places = ", ".join(f"{each.file} {each.pointer}" for each in sources)
        raise ReportError(f"No {way} can be made of {places}.") from None


def plain(value: Any) -> str:
    """Return a value as people read it: thousands apart, yes and no, JSON for what has parts."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case int() | Decimal():
            return f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}"
        case str():
            return value or NOTHING
        case _:
            return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _percent(value: Any) -> str:
    return NOTHING if value is None else f"{Decimal(value) * 100:.2f} %"


def _share(part: Any, whole: Any) -> str:
    """Return a part of a whole in percent, without digits that nobody measured."""
    if not Decimal(whole):
        return NOTHING
    return f"{(Decimal(part) * 100 / Decimal(whole)).quantize(Decimal(1), ROUND_HALF_UP)} %"


def _price(seconds: Sequence[Any]) -> str:
    total = sum((Decimal(each) for each in seconds), Decimal(0))
    return str((total / 3600 * PRICE_OF_A_CPU_HOUR).quantize(_A_CENT_OF_A_CENT, ROUND_UP))


def _time(value: str) -> str:
    return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_MADE: Mapping[Way, Callable[[list[Any], str], str]] = {
    Way.PLAIN: lambda values, _: plain(values[0]),
    Way.RAW: lambda values, _: NOTHING if values[0] is None else str(values[0]),
    Way.COUNT: lambda values, _: f"{len(values[0]):,}",
    Way.COUNT_OF: lambda values, state: str(sum(each["state"] == state for each in values[0])),
    Way.SUM: lambda values, _: plain(sum((Decimal(each) for each in values), Decimal(0))),
    Way.PERCENT: lambda values, _: _percent(values[0]),
    Way.SHARE: lambda values, _: _share(*values),
    Way.PRICE: lambda values, _: _price(values),
    Way.TIME: lambda values, _: NOTHING if values[0] is None else _time(values[0]),
    Way.RANGE: lambda values, _: f"{plain(values[0])}–{plain(values[1])}",
    Way.LIST: lambda values, _: ", ".join(plain(each) for each in values[0]) or NOTHING,
    Way.MARK: lambda values, at: plain(marks(Decimal(values[0]))[int(at)]),
}
