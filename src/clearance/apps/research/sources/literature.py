"""The literature stage: what has been published about a gene, from the first source that answers.

The chain: Europe PMC, else PubMed; kept copies of their answers; the shipped bibliography (metadata of
entries that were checked against a record). The run goes on without literature, and says so.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.resources import files

from clearance.apps.research.errors import SourceUnavailableError
from clearance.apps.research.http import Fetcher
from clearance.apps.research.sources import europepmc, pubmed
from clearance.apps.research.sources.bibliography import Entry, Literature, distinct
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.lookup import silence
from clearance.apps.research.sources.organisms import check_symbol

_MOST_TERMS = 6
# Words of an objective that would narrow nothing, or everything.
_EMPTY_WORDS = {
    "about", "also", "analyse", "analysis", "analyze", "compare", "describe", "does", "find", "from", "gene",
    "genes", "have", "into", "more", "show", "study", "that", "their", "these", "this", "what", "when",
    "where", "which", "with",
}  # fmt: skip


def find_literature(
    symbol: str, objective: str = "", *, fetcher: Fetcher, endpoints: Endpoints, limit: int = 25
) -> Literature:
    """Return publications about the gene, those that fit the objective where there are any.

    Never raises for a silent source or an empty answer: `warnings` say it. Raises `RecordMismatchError` for a
    changed record and `NotRecordedError` in a replay, because there the run must stop.
    """
    symbol = check_symbol(symbol)
    silent: dict[str, str] = {}
    for query in _queries(symbol, objective):
        for source, search in _searches(query, fetcher=fetcher, endpoints=endpoints, limit=limit):
            try:
                entries = distinct(search())
            except SourceUnavailableError as error:
                silent.setdefault(source, str(error))
                continue
            if entries:
                known = _known(symbol, entries, fetcher=fetcher, endpoints=endpoints)
                return _literature(symbol, query, source, (*entries, *known), silent=silent)
            break
    entries = _shipped(symbol, now=fetcher.now())
    return _literature(symbol, _queries(symbol, "")[0], "shipped", entries, silent=silent)


def _searches(
    query: str, *, fetcher: Fetcher, endpoints: Endpoints, limit: int
) -> list[tuple[str, Callable[[], tuple[Entry, ...]]]]:
    """Return the searches in their order: live ones, then their kept copies."""
    europe = partial(europepmc.search, query, fetcher=fetcher, base=endpoints.europepmc, limit=limit)
    term = re.sub(r'\b(TITLE|ABSTRACT):"([^"]+)"', r"\2[tiab]", query)
    american = partial(pubmed.search, term, fetcher=fetcher, endpoints=endpoints, limit=limit)
    return [
        (name, partial(search, cached_only=cached_only))
        for cached_only in (False, True)
        for name, search in (("Europe PMC", europe), ("PubMed", american))
    ]


def objective_terms(symbol: str, objective: str) -> list[str]:
    """Return the words of an objective that say what is looked for beside the gene, at most six."""
    words = dict.fromkeys(re.findall(r"[a-z][a-z0-9-]{3,}", objective.lower()))
    return [word for word in words if word not in _EMPTY_WORDS and word != symbol.lower()][:_MOST_TERMS]


def _queries(symbol: str, objective: str) -> list[str]:
    """Return the queries in the syntax of Europe PMC, the narrower first."""
    named = f'(TITLE:"{symbol}" OR ABSTRACT:"{symbol}")'
    terms = objective_terms(symbol, objective)
    return [f"{named} AND ({' OR '.join(terms)})", named] if terms else [named]


def _bibliography() -> bytes:
    return files("clearance.apps.research.sources").joinpath("bibliography.json").read_bytes()


def _shipped(symbol: str, *, now: datetime) -> tuple[Entry, ...]:
    records = json.loads(_bibliography())["records"]
    return tuple(
        Entry(
            pmid=record["id"].removeprefix("PMID:"),
            title=record["title"],
            authors=record["authors"],
            journal=record["journal"],
            year=record["year"],
            doi=record.get("doi"),
            pmcid=record.get("pmcid"),
            source="shipped",
            retrieved_at=now,
        )
        for record in records
        if symbol.upper() in record["genes"]
    )


def _known(symbol: str, found: tuple[Entry, ...], *, fetcher: Fetcher, endpoints: Endpoints) -> list[Entry]:
    """Return the shipped entries that a search left out, as Europe PMC knows them today."""
    known: list[Entry] = []
    for pmid in {entry.pmid: None for entry in _shipped(symbol, now=fetcher.now())}:
        if pmid in {entry.pmid for entry in found}:
            continue
        try:
            entry = europepmc.by_pmid(pmid, fetcher=fetcher, base=endpoints.europepmc)
        except SourceUnavailableError:
            break
        known += [entry] if entry else []
    return known


def _literature(
    symbol: str, query: str, source: str, entries: tuple[Entry, ...], *, silent: dict[str, str]
) -> Literature:
    warnings = silence(silent)
    if source == "shipped" and entries:
        warnings.append(f"The literature is the shipped bibliography of {symbol}: metadata, not complete.")
    if not entries:
        warnings.append(f"No literature on {symbol} was found; nothing can be cited.")
    if any(entry.stale for entry in entries):
        warnings.append(f"The literature is a kept copy that {source} could not confirm.")
    warnings += [
        f"{entry.id} was retracted; it is listed and supports nothing."
        for entry in entries
        if entry.retracted
    ]
    return Literature(symbol, query, source if entries else "none", entries, tuple(warnings))
