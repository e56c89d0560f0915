"""Entries of the literature: metadata, and the abstract where a source gave it; never a text of our own."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from clearance.toolcall import canonical


@dataclass(frozen=True)
class Entry:
    """One publication. `id` is `PMID:…`; `sha256` is of the entry's own facts in canonical JSON.

    A `retracted` one is kept and flagged, and supports nothing.
    """

    pmid: str
    title: str
    authors: str
    journal: str
    year: str
    source: str
    retrieved_at: datetime
    doi: str | None = None
    pmcid: str | None = None
    abstract: str | None = None
    url: str | None = None
    retracted: bool = False
    stale: bool = False

    @property
    def id(self) -> str:
        """What plan and report cite."""
        return f"PMID:{self.pmid}"

    @property
    def sha256(self) -> str:
        """The sha256 of what the publication says about itself, wherever and whenever it was found."""
        facts = {
            name: getattr(self, name)
            for name in ("pmid", "doi", "pmcid", "title", "authors", "journal", "year", "abstract")
        }
        return hashlib.sha256(canonical(facts | {"retracted": self.retracted}).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON, without what it does not have."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        values |= {"id": self.id, "sha256": self.sha256, "retrieved_at": self.retrieved_at.isoformat()}
        return values | {"accession": self.id}


@dataclass(frozen=True)
class Literature:
    """What the literature stage found, most relevant first. It may be empty; `warnings` say why."""

    symbol: str
    query: str
    source: str
    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """What may be cited: every entry that is not retracted."""
        return frozenset(each.id for each in self.entries if not each.retracted)

    def document(self) -> dict[str, Any]:
        """Return `literature.json`; `records` are by id, `relevance` is the order of the answer."""
        return {
            "schema": "literature.v1",
            "symbol": self.symbol,
            "query": self.query,
            "source": self.source,
            "records": [each.document() for each in sorted(self.entries, key=lambda each: each.id)],
            "relevance": [each.id for each in self.entries],
            "warnings": list(self.warnings),
        }

    @property
    def text(self) -> str:
        """The canonical JSON of `literature.json`."""
        return canonical(self.document())


def distinct(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return each publication once, at its first place; retracted when any source says so."""
    kept: dict[str, Entry] = {}
    for entry in entries:
        before = kept.get(entry.id)
        if before is None:
            kept[entry.id] = entry
        elif entry.retracted and not before.retracted:
            kept[entry.id] = replace(before, retracted=True)
    return tuple(kept.values())
