"""Ensembl: the transcript of a gene, its sequences and exons.

`GET /lookup/symbol/:species/:symbol?expand=1` and `GET /sequence/id/:id?type=…` of rest.ensembl.org. The
transcript is the one that MANE selected, else Ensembl's canonical one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clearance.apps.research.errors import RecordMismatchError, SourceUnavailableError
from clearance.apps.research.http import Body, Fetched, Fetcher
from clearance.apps.research.methods.produced import fasta_bytes, json_bytes
from clearance.apps.research.sources.agreement import documented, translates_to
from clearance.apps.research.sources.organisms import Organism
from clearance.apps.research.sources.records import Found, found

_LICENCE = "EMBL-EBI terms of use, no restriction by Ensembl"
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class _Transcript:
    id: str
    version: int
    gene: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def accession(self) -> str:
        return f"{self.id}.{self.version}"


def find_records(
    symbol: str,
    organism: Organism,
    *,
    fetcher: Fetcher,
    base: str,
    gene_id: str | None = None,
    cached_only: bool = False,
) -> tuple[Found, ...]:
    """Return the mRNA, coding sequence, protein and exons of a gene; nothing when Ensembl has no such gene.

    With `gene_id` (ENSG…) the gene is looked up by it, not by the symbol.

    Raises `RecordMismatchError` when the coding sequence does not translate to the protein, does not lie in
    the mRNA, or has another length than the lookup says.
    """
    looked_up = fetcher.get(
        f"{base}/lookup/id/{gene_id}" if gene_id else f"{base}/lookup/symbol/{organism.ensembl}/{symbol}",
        {"expand": "1", "mane": "1", **_JSON},
        expect=Body.JSON,
        absent=(400, 404),
        cached_only=cached_only,
    )
    if looked_up.status != 200:
        return ()
    with documented("Ensembl"):
        transcript = _transcript(looked_up.json())
        if transcript is None:
            return ()
        exons = _exons(transcript, looked_up)
        protein = _protein_accession(transcript)
    sequences = {
        kind: _sequence(transcript, kind, fetcher=fetcher, base=base, cached_only=cached_only)
        for kind in ("cdna", "cds", "protein")
    }
    _check(transcript, {kind: letters for kind, (_, letters) in sequences.items()})
    return (
        _found("mrna", transcript.accession, *sequences["cdna"]),
        _found("cds", transcript.accession, *sequences["cds"]),
        _found("protein", protein, *sequences["protein"]),
        exons,
    )


def _transcript(gene: dict[str, Any]) -> _Transcript | None:
    coding = [each for each in gene["Transcript"] if "Translation" in each]
    canonical = str(gene.get("canonical_transcript", "")).partition(".")[0]
    chosen = (
        [each for each in coding if _is_mane(each)]
        or [each for each in coding if each.get("is_canonical") == 1 or each["id"] == canonical]
        or coding
    )
    if not chosen:
        return None
    return _Transcript(chosen[0]["id"], int(chosen[0]["version"]), gene, chosen[0])


def _is_mane(transcript: dict[str, Any]) -> bool:
    mane = transcript.get("MANE", [])
    return any(each.get("type") == "MANE_Select" for each in mane if isinstance(each, dict))


def _sequence(
    transcript: _Transcript, kind: str, *, fetcher: Fetcher, base: str, cached_only: bool
) -> tuple[Fetched, str]:
    fetched = fetcher.get(
        f"{base}/sequence/id/{transcript.id}",
        {"type": kind, **_JSON},
        expect=Body.JSON,
        cached_only=cached_only,
    )
    answer = fetched.json()
    if not isinstance(answer, dict) or not isinstance(answer.get("seq"), str) or not answer["seq"]:
        raise SourceUnavailableError("Ensembl's answer has no sequence.")
    if kind != "protein" and (answer.get("id"), answer.get("version")) != (transcript.id, transcript.version):
        raise RecordMismatchError(
            f"Ensembl gave the {kind} of another transcript than {transcript.accession}. Try again later."
        )
    return fetched, answer["seq"].upper()


def _check(transcript: _Transcript, letters: Mapping[str, str]) -> None:
    protein = letters["protein"].removesuffix("*")
    length = transcript.facts["Translation"].get("length")
    wrong = None
    if not translates_to(letters["cds"], protein):
        wrong = "its coding sequence does not translate to its protein"
    elif letters["cds"] not in letters["cdna"]:
        wrong = "its coding sequence does not lie in its mRNA"
    elif length is not None and length != len(protein):
        wrong = f"its protein has {len(protein)} amino acids where the lookup says {length}"
    if wrong:
        raise RecordMismatchError(
            f"Ensembl {transcript.accession}: {wrong}. The run stops; nothing is built on it."
        )


def _protein_accession(transcript: _Transcript) -> str:
    translation = transcript.facts["Translation"]
    version = f".{translation['version']}" if "version" in translation else ""
    return f"{translation['id']}{version}"


def _found(kind: str, accession: str, fetched: Fetched, letters: str) -> Found:
    return found(
        fasta_bytes(accession, letters),
        id=kind,
        kind=kind,
        file=f"{kind}.fasta",
        accession=accession,
        length=len(letters),
        **_facts(fetched.url, fetched.retrieved_at, fetched.stale),
    )


def _exons(transcript: _Transcript, fetched: Fetched) -> Found:
    translation = transcript.facts["Translation"]
    document = {
        "transcript": transcript.accession,
        "chromosome": str(transcript.gene["seq_region_name"]),
        "strand": "+" if transcript.gene["strand"] == 1 else "-",
        "exons": [{"start": exon["start"], "end": exon["end"]} for exon in transcript.facts["Exon"]],
        "cds": {"start": translation["start"], "end": translation["end"]},
    }
    return found(
        json_bytes(document),
        id="exons",
        kind="exons",
        file="exons.json",
        accession=transcript.accession,
        description=str(transcript.gene.get("assembly_name", "")),
        **_facts(fetched.url, fetched.retrieved_at, fetched.stale),
    )


def _facts(url: str, retrieved_at: datetime, stale: bool) -> dict[str, Any]:
    return {
        "source": "Ensembl",
        "licence": _LICENCE,
        "url": url,
        "retrieved_at": retrieved_at,
        "stale": stale,
    }
