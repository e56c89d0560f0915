"""UniProt: the reviewed protein of a gene (`GET /uniprotkb/search` of rest.uniprot.org)."""

import hashlib
from typing import Any

from clearance.apps.research.errors import RecordMismatchError
from clearance.apps.research.http import Body, Fetched, Fetcher
from clearance.apps.research.methods.produced import fasta_bytes
from clearance.apps.research.sources.agreement import documented
from clearance.apps.research.sources.organisms import Organism
from clearance.apps.research.sources.records import Found, found


def find_protein(
    symbol: str,
    organism: Organism,
    *,
    fetcher: Fetcher,
    base: str,
    accession: str | None = None,
    cached_only: bool = False,
) -> Found | None:
    """Return the reviewed entry of a gene, that with the `accession` where one is known; None without any.

    Raises `RecordMismatchError` when the sequence has another length or MD5 than the entry says.
    """
    named = f"accession:{accession}" if accession else f"gene_exact:{symbol}"
    query = f"({named}) AND (organism_id:{organism.taxon}) AND (reviewed:true)"
    fetched = fetcher.get(
        f"{base}/uniprotkb/search",
        {"query": query, "fields": "accession,id,sequence", "format": "json", "size": "5"},
        expect=Body.JSON,
        cached_only=cached_only,
    )
    with documented("UniProt"):
        entries = sorted(fetched.json()["results"], key=lambda entry: str(entry["primaryAccession"]))
        return _found(entries[0], fetched) if entries else None


def _found(entry: dict[str, Any], fetched: Fetched) -> Found:
    accession = entry["primaryAccession"]
    sequence = entry["sequence"]
    letters = sequence["value"]
    md5 = hashlib.md5(letters.encode(), usedforsecurity=False).hexdigest()
    if len(letters) != sequence["length"] or md5.upper() != str(sequence["md5"]).upper():
        raise RecordMismatchError(
            f"UniProt {accession}: the sequence has not the length and MD5 that its entry says. "
            "The run stops; nothing is built on it."
        )
    return found(
        fasta_bytes(f"{accession} {entry.get('uniProtkbId', '')}".strip(), letters),
        id="protein",
        kind="protein",
        file="protein.fasta",
        accession=accession,
        length=len(letters),
        source="UniProt",
        licence="CC BY 4.0",
        url=fetched.url,
        retrieved_at=fetched.retrieved_at,
        stale=fetched.stale,
    )
