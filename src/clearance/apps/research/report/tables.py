"""The numbers and lists of a step's result, taken from its files as `shown` says."""

from dataclasses import dataclass

from clearance.apps.research.report.facts import Book, Fact, Node, Source, Way
from clearance.apps.research.report.shown import SHOWN, List

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Row:
    """One number under its words; `label` is a fact where a file names it itself."""

    label: str | Fact
    value: Fact


@dataclass(frozen=True)
class Table:
    """A list of results. `count` says how many there are in `file`, of which these are the first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Fact, ...], ...]
    count: Fact
    file: Fact
    cut: bool
    long: bool


def key_numbers(book: Book, method: str, folder: str) -> tuple[Row, ...]:
    """Return the numbers of a step's result; of a method that is not known here, those of its summary."""
    shown = SHOWN.get(method)
    if shown is not None:
        file = f"{folder}/{shown.file}"
        return tuple(
            Row(each.label, book.fact(each.way, Source(file, each.pointer))) for each in shown.values
        )
    summary = f"{folder}/{SUMMARY}"
    if summary not in book.records.known:
        return ()
    return tuple(Row(each.name, each.fact()) for each in book.file(summary)["facts"])


def tables_of(book: Book, method: str, folder: str) -> tuple[Table, ...]:
    """Return the lists of a step's result that have anything in them."""
    shown = SHOWN.get(method)
    if shown is None:
        return ()
    file = f"{folder}/{shown.file}"
    found = [(each, _at(book, file, each.pointer)) for each in shown.lists]
    return tuple(_table(book, each, node) for each, node in found if node.value)


def _table(book: Book, wanted: List, node: Node) -> Table:
    rows = range(min(len(node.value), wanted.most))
    return Table(
        title=wanted.title,
        columns=tuple(column.label for column in wanted.columns),
        rows=tuple(
            tuple(
                book.fact(
                    column.way, Source(node.source.file, f"{node.source.pointer}/{at}/{column.pointer}")
                )
                for column in wanted.columns
            )
            for at in rows
        ),
        count=node.fact(Way.COUNT),
        file=_named(book, node.source.file),
        cut=len(node.value) > wanted.most,
        long=wanted.long,
    )


def _at(book: Book, file: str, pointer: str) -> Node:
    source = Source(file, pointer)
    return Node(book, source, book.records.value(source))


def _named(book: Book, file: str) -> Fact:
    """Return the name of a file as a fact: as the step's result lists it."""
    return book.fact(Way.FILE, Source(file, ""))
