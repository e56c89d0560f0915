"""NCBI RefSeq: the mRNA, coding sequence and protein of one transcript (E-utilities `efetch`)."""

from clearance.apps.research.errors import RecordMismatchError, SourceUnavailableError
from clearance.apps.research.http import Body, Fetched, Fetcher
from clearance.apps.research.methods.produced import fasta_bytes
from clearance.apps.research.methods.sequences import read_fasta
from clearance.apps.research.sources.agreement import translates_to
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.records import Found, found
from clearance.errors import InvalidInputError

_KINDS = {"mrna": "fasta", "cds": "fasta_cds_na", "protein": "fasta_cds_aa"}


def find_records(
    accession: str, *, fetcher: Fetcher, endpoints: Endpoints, cached_only: bool = False
) -> tuple[Found, ...]:
    """Return the mRNA, coding sequence and protein of a transcript such as NM_007294.4.

    Raises `RecordMismatchError` when NCBI gives another record, or the coding sequence does not translate to
    the protein or does not lie in the mRNA.
    """
    records: dict[str, tuple[Fetched, str, str]] = {}
    for kind, form in _KINDS.items():
        fetched = fetcher.get(
            f"{endpoints.ncbi}/entrez/eutils/efetch.fcgi",
            {"db": "nuccore", "id": accession, "rettype": form, "retmode": "text"} | endpoints.ncbi_params(),
            expect=Body.FASTA,
            cached_only=cached_only,
        )
        name, letters = _read(fetched)
        if not _is_of(name, accession):
            raise RecordMismatchError(f"NCBI gave {name.split()[0]} where {accession} was asked for.")
        records[kind] = (fetched, name, letters)
    _check(accession, {kind: letters for kind, (_, _, letters) in records.items()})
    return tuple(_found(kind, accession, *record) for kind, record in records.items())


def _read(fetched: Fetched) -> tuple[str, str]:
    """Return the title and letters of the one record."""
    try:
        (record,) = read_fasta(fetched.body, name="NCBI's answer")
    except (InvalidInputError, ValueError):
        raise SourceUnavailableError("NCBI's answer is not one FASTA record.") from None
    return f"{record.id} {record.title}", record.letters


def _is_of(title: str, accession: str) -> bool:
    """Return whether a title is the transcript's, or its coding sequence's (`lcl|NM_…_cds_NP_…`)."""
    name = title.split()[0].removeprefix("lcl|").partition("_cds_")[0].partition("_prot_")[0]
    return name == accession or name.partition(".")[0] == accession


def _check(accession: str, letters: dict[str, str]) -> None:
    wrong = None
    if not translates_to(letters["cds"], letters["protein"]):
        wrong = "its coding sequence does not translate to its protein"
    elif letters["cds"] not in letters["mrna"]:
        wrong = "its coding sequence does not lie in its mRNA"
    if wrong:
        raise RecordMismatchError(f"NCBI {accession}: {wrong}. The run stops; nothing is built on it.")


def _found(kind: str, accession: str, fetched: Fetched, title: str, letters: str) -> Found:
    marked = title.partition("[protein_id=")[2].partition("]")[0]
    own = title.split()[0] if kind == "mrna" else accession
    name = (marked or own) if kind == "protein" else own
    return found(
        fasta_bytes(name, letters),
        id=kind,
        kind=kind,
        file=f"{kind}.fasta",
        accession=name,
        length=len(letters),
        source="NCBI RefSeq",
        licence="NCBI/INSDC, no restriction",
        url=fetched.url,
        retrieved_at=fetched.retrieved_at,
        stale=fetched.stale,
    )
