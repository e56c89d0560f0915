"""Europe PMC: `GET /europepmc/webservices/rest/search`, page after page by its cursor.

A bare PMID finds nothing there: one publication is asked for as `EXT_ID:<pmid> AND SRC:MED`.
"""

import re
from typing import Any

from clearance.apps.research.http import Body, Fetched, Fetcher
from clearance.apps.research.sources.agreement import documented
from clearance.apps.research.sources.bibliography import Entry

PAGE = 25
_RETRACTED = "retracted publication"
_INLINE = re.compile(r"</?(?:i|b|u|em|strong|sub|sup)>")
_BLOCK = re.compile(r"</?(?:h[1-6]|p|br)\s*/?>")


def search(
    query: str, *, fetcher: Fetcher, base: str, limit: int, cached_only: bool = False
) -> tuple[Entry, ...]:
    """Return at most `limit` publications of MEDLINE that match, most relevant first."""
    entries: list[Entry] = []
    cursor: str | None = "*"
    while cursor is not None and len(entries) < limit:
        params = {
            "query": query,
            "resultType": "core",
            "format": "json",
            "pageSize": str(PAGE),
            "cursorMark": cursor,
        }
        fetched = fetcher.get(
            f"{base}/europepmc/webservices/rest/search", params, expect=Body.JSON, cached_only=cached_only
        )
        with documented("Europe PMC"):
            answer = fetched.json()
            results = answer["resultList"]["result"]
            entries += [_entry(each, fetched) for each in results if each.get("source") == "MED"]
            following = answer.get("nextCursorMark")
        # The last page repeats its own cursor, or has none.
        cursor = following if results and following != cursor else None
    return tuple(entries[:limit])


def by_pmid(pmid: str, *, fetcher: Fetcher, base: str, cached_only: bool = False) -> Entry | None:
    """Return one publication by its PMID; None when Europe PMC has none."""
    query = f"EXT_ID:{pmid} AND SRC:MED"
    found = search(query, fetcher=fetcher, base=base, limit=1, cached_only=cached_only)
    return next((entry for entry in found if entry.pmid == pmid), None)


def _entry(result: dict[str, Any], fetched: Fetched) -> Entry:
    kinds = result.get("pubTypeList", {}).get("pubType", [])
    corrections = result.get("commentCorrectionList", {}).get("commentCorrection", [])
    journal = result.get("journalInfo", {}).get("journal", {})
    return Entry(
        pmid=str(result["pmid"]),
        doi=result.get("doi"),
        pmcid=result.get("pmcid"),
        title=_plain(result["title"]),
        authors=str(result.get("authorString", "")),
        journal=str(journal.get("title", "")),
        year=str(result.get("pubYear", "")),
        abstract=_plain(result.get("abstractText", "")) or None,
        retracted=any(str(kind).lower() == _RETRACTED for kind in kinds)
        or any(str(each.get("type", "")).lower() == "retraction in" for each in corrections),
        source="Europe PMC",
        url=f"https://europepmc.org/article/MED/{result['pmid']}",
        retrieved_at=fetched.retrieved_at,
        stale=fetched.stale,
    )


def _plain(text: str) -> str:
    """Return a text without the mark-up that Europe PMC leaves in it."""
    return " ".join(_BLOCK.sub(" ", _INLINE.sub("", text)).split())
