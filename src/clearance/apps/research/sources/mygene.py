"""MyGene.info: what a symbol stands for (`GET /v3/query`, docs.mygene.info)."""

import re
from typing import Any

from clearance.apps.research.errors import AmbiguousSymbolError
from clearance.apps.research.http import Body, Fetcher
from clearance.apps.research.sources.agreement import documented
from clearance.apps.research.sources.organisms import Organism
from clearance.apps.research.sources.records import Gene

_FIELDS = "symbol,name,taxid,entrezgene,HGNC,ensembl.gene,refseq.rna,uniprot.Swiss-Prot"


def find_gene(
    symbol: str, organism: Organism, *, fetcher: Fetcher, base: str, cached_only: bool = False
) -> Gene | None:
    """Return the gene with exactly this symbol, whatever its case, or with this number at NCBI.

    None when there is none. Raises `AmbiguousSymbolError` when several genes have the symbol.
    """
    by_number = symbol.isdigit()
    query = f"{'entrezgene' if by_number else 'symbol'}:{symbol}"
    hits = _hits(query, organism, fetcher=fetcher, base=base, cached_only=cached_only)
    genes = {str(hit["entrezgene"]): hit for hit in hits if "entrezgene" in hit}
    if by_number:
        genes = {number: hit for number, hit in genes.items() if number == symbol}
    else:
        same = {number: hit for number, hit in genes.items() if hit["symbol"].lower() == symbol.lower()}
        genes = {number: hit for number, hit in same.items() if hit["symbol"] == symbol} or same
    if len(genes) > 1:
        choices = [
            f"{number} ({hit['symbol']}, {hit.get('name', '')})" for number, hit in sorted(genes.items())
        ]
        raise AmbiguousSymbolError(symbol, choices)
    with documented("MyGene"):
        for number, hit in genes.items():
            transcripts = sorted(name for name in _many(hit, "refseq", "rna") if name.startswith("NM_"))
            return Gene(
                symbol=hit["symbol"],
                name=str(hit.get("name", "")),
                taxon=int(hit.get("taxid", organism.taxon)),
                ids=_ids(number, hit),
                transcripts=tuple(transcripts),
                by_number=by_number,
            )
    return None


def near_symbols(
    symbol: str, organism: Organism, *, fetcher: Fetcher, base: str, cached_only: bool = False
) -> tuple[str, ...]:
    """Return symbols of genes that are also called so, or that begin alike."""
    names: list[str] = []
    for query in (f"alias:{symbol}", f"symbol:{re.sub(r'[0-9]+$', '', symbol) or symbol}*"):
        hits = _hits(query, organism, fetcher=fetcher, base=base, cached_only=cached_only)
        names += [hit["symbol"] for hit in hits]
    return tuple(dict.fromkeys(names))[:5]


def _hits(
    query: str, organism: Organism, *, fetcher: Fetcher, base: str, cached_only: bool
) -> list[dict[str, Any]]:
    params = {"q": query, "species": str(organism.taxon), "fields": _FIELDS, "size": "10"}
    fetched = fetcher.get(f"{base}/v3/query", params, expect=Body.JSON, cached_only=cached_only)
    with documented("MyGene"):
        return [{**hit, "symbol": str(hit["symbol"])} for hit in fetched.json()["hits"]]


def _ids(number: str, hit: dict[str, Any]) -> dict[str, str]:
    ids = {"ncbi_gene": number}
    if "HGNC" in hit:
        ids["hgnc"] = f"HGNC:{hit['HGNC']}"
    if genes := _many(hit, "ensembl", "gene"):
        ids["ensembl_gene"] = genes[0]
    if proteins := _many(hit, "uniprot", "Swiss-Prot"):
        ids["uniprot"] = proteins[0]
    return ids


def _many(hit: dict[str, Any], database: str, name: str) -> list[str]:
    """Return the values below two names: MyGene gives one value alone, several in a list, at both levels."""
    outer = hit.get(database, [])
    values: list[str] = []
    for part in outer if isinstance(outer, list) else [outer]:
        inner = part.get(name, []) if isinstance(part, dict) else []
        values += inner if isinstance(inner, list) else [inner]
    return [str(value) for value in values]
