"""Which terms stand in the same records of a bibliography.

`cooccurrence.json`: {"records", "terms": [{"term", "count", "records": [id …]}], "pairs": [{"terms": [a,
b], "count", "jaccard" (4 digits), "pmi" (log2, 4 digits) or null, "records": [id …]}]}. Terms are in the
order that they were given; pairs by count, most first, then in the order of the terms. A term is found
where its words follow each other in a record's title, abstract or keywords, in any case, as whole words; a
space, a hyphen and a slash are the same. PMI is log2(n × both / (a × b)) over the n records; it is null
for a pair that never meets.

Input `bibliography`: {"records": [{"id", "title", "abstract"?, "keywords"?: [text …]}]}; other fields are
not read.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.errors import InvalidInputError

_FORM = 'Give JSON {"records": [{"id", "title", "abstract"}]}.'


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return how often each two of the `terms` stand in one record of `bibliography`."""
    texts = _texts(inputs["bibliography"])
    terms = _distinct(params["terms"])
    found = {term: {name for name, text in texts.items() if f" {_words(term)} " in text} for term in terms}
    pairs = [_pair(pair, found, records=len(texts)) for pair in combinations(terms, 2)]
    pairs.sort(key=lambda pair: -pair["count"])
    document = {
        "records": len(texts),
        "terms": [
            {"term": term, "count": len(records), "records": sorted(records)}
            for term, records in found.items()
        ],
        "pairs": pairs,
    }
    together = sum(pair["count"] > 0 for pair in pairs)
    warnings = () if texts else ("The bibliography is empty: nothing could be counted.",)
    return Produced(
        f"{together} of {len(pairs)} pairs of terms meet in {len(texts)} records.",
        {"cooccurrence.json": json_bytes(document)},
        {"records": len(texts), "pairs": len(pairs), "pairs_together": together},
        warnings,
    )


def _texts(data: bytes) -> dict[str, str]:
    """Return the searchable words of each record by its id."""
    try:
        records = json.loads(data)["records"]
        texts = {str(record["id"]): _words(_written(record)) for record in records}
    except (ValueError, KeyError, TypeError):
        raise InvalidInputError(f"bibliography: this is no list of records. {_FORM}") from None
    if len(texts) < len(records):
        raise InvalidInputError("bibliography: two records have the same id. Give each record once.")
    return {name: f" {text} " for name, text in texts.items()}


def _written(record: Mapping[str, Any]) -> str:
    parts = [record["title"], record.get("abstract") or "", *(record.get("keywords") or [])]
    # A stop that no term can have keeps the end of one part and the start of the next apart.
    return " \x00 ".join(map(str, parts))


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+|\x00", text.casefold()))


def _distinct(terms: Sequence[str]) -> list[str]:
    distinct = {_words(term): term for term in reversed(terms)}
    if "" in distinct:
        raise InvalidInputError("terms: a term has no word. Write words.")
    if len(distinct) < len(terms):
        raise InvalidInputError("terms: two terms have the same words. Give each term once.")
    return list(terms)


def _pair(pair: tuple[str, str], found: Mapping[str, set[str]], *, records: int) -> dict[str, Any]:
    first, second = (found[term] for term in pair)
    both, either = first & second, first | second
    pmi = math.log2(records * len(both) / (len(first) * len(second))) if both else None
    return {
        "terms": list(pair),
        "count": len(both),
        "jaccard": round(len(both) / len(either), 4) if either else 0.0,
        "pmi": None if pmi is None else round(pmi, 4),
        "records": sorted(both),
    }
