"""The services of the sequence stage, asked in turn: live first, then the kept copies of their answers."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TypeVar

from clearance.apps.research.errors import SourceUnavailableError
from clearance.apps.research.http import NOT_ASKED, Fetcher
from clearance.apps.research.sources import ensembl, mygene, refseq, uniprot
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.organisms import Organism
from clearance.apps.research.sources.records import Found, Gene

T = TypeVar("T")


class Lookup:
    """What the services say about genes of one organism. A silent one is left out, and said in `warnings`."""

    def __init__(self, fetcher: Fetcher, endpoints: Endpoints, organism: Organism) -> None:
        self._fetcher = fetcher
        self._endpoints = endpoints
        self._organism = organism
        self._silent: dict[str, str] = {}
        self._answered: dict[str, None] = {}
        self._notes: list[str] = []

    def now(self) -> datetime:
        """Return the time of this run."""
        return self._fetcher.now()

    def gene(self, symbol: str) -> Gene | None:
        """Return the gene that MyGene knows under the symbol. Raises `AmbiguousSymbolError`."""
        question = partial(
            mygene.find_gene, symbol, self._organism, fetcher=self._fetcher, base=self._endpoints.mygene
        )
        for cached_only in (False, True):
            answered, gene = self._ask("MyGene", partial(question, cached_only=cached_only))
            if answered:
                return gene
        return None

    def has_transcripts(self, symbol: str) -> bool:
        """Return whether Ensembl knows a coding gene under the symbol."""
        gene = Gene(symbol, "", self._organism.taxon, {})
        return bool(self._ask("Ensembl", partial(self._ensembl, gene, cached_only=False))[1])

    def near(self, symbol: str) -> tuple[str, ...]:
        """Return symbols that MyGene finds near this one."""
        question = partial(
            mygene.near_symbols, symbol, self._organism, fetcher=self._fetcher, base=self._endpoints.mygene
        )
        return self._ask("MyGene", question)[1] or ()

    def records(self, gene: Gene) -> tuple[Found, ...]:
        """Return the records of a gene from the first source that has them, live ones before kept copies."""
        for cached_only in (False, True):
            found = self._transcript(gene, cached_only=cached_only)
            _, protein = self._ask("UniProt", partial(self._uniprot, gene, cached_only=cached_only))
            if found:
                self._compare(found, protein)
                return found
            if protein:
                return (protein,)
        return ()

    def searched(self) -> tuple[str, ...]:
        """Return the sources that a search went through."""
        return (*self._answered, "the shipped data")

    def warnings(self) -> list[str]:
        """Return what a reader must know about the sources."""
        return [*self._notes, *silence(self._silent)]

    def reasons(self) -> str:
        """Return why services gave nothing, in one line."""
        return " ".join(self._silent.values())

    def _transcript(self, gene: Gene, *, cached_only: bool) -> tuple[Found, ...]:
        _, found = self._ask("Ensembl", partial(self._ensembl, gene, cached_only=cached_only))
        if found:
            return found
        accession = gene.ids.get("mane_refseq") or next(iter(gene.transcripts), None)
        if accession is None:
            return ()
        _, found = self._ask("NCBI", partial(self._refseq, accession, cached_only=cached_only))
        if found and "mane_refseq" not in gene.ids and len(gene.transcripts) > 1:
            self._notes.append(
                f"{accession} was taken as the first of {len(gene.transcripts)} RefSeq transcripts; "
                "which of them MANE selected is not known here."
            )
        return found or ()

    def _compare(self, found: tuple[Found, ...], protein: Found | None) -> None:
        """Say where UniProt's protein is another one: its isoform of reference need not be MANE's."""
        ours = next((each for each in found if each.record.kind == "protein"), None)
        if ours and protein and _letters(ours) != _letters(protein):
            self._notes.append(
                f"UniProt {protein.record.accession} has another sequence than {ours.record.accession}, "
                "which is used here."
            )

    def _ask(self, source: str, question: Callable[[], T]) -> tuple[bool, T | None]:
        """Return whether a source answered, and what."""
        try:
            answer = question()
        except SourceUnavailableError as error:
            if source not in self._answered:
                self._silent.setdefault(source, str(error))
            return False, None
        self._answered[source] = None
        return True, answer

    def _ensembl(self, gene: Gene, *, cached_only: bool) -> tuple[Found, ...]:
        by_id = gene.ids.get("ensembl_gene", "").partition(".")[0] if gene.by_number else None
        if by_id == "":
            # Its symbol would find another gene.
            return ()
        return ensembl.find_records(
            gene.symbol,
            self._organism,
            gene_id=by_id,
            fetcher=self._fetcher,
            base=self._endpoints.ensembl,
            cached_only=cached_only,
        )

    def _refseq(self, accession: str, *, cached_only: bool) -> tuple[Found, ...]:
        return refseq.find_records(
            accession, fetcher=self._fetcher, endpoints=self._endpoints, cached_only=cached_only
        )

    def _uniprot(self, gene: Gene, *, cached_only: bool) -> Found | None:
        return uniprot.find_protein(
            gene.symbol,
            self._organism,
            accession=gene.ids.get("uniprot"),
            fetcher=self._fetcher,
            base=self._endpoints.uniprot,
            cached_only=cached_only,
        )


def silence(reasons: Mapping[str, str]) -> list[str]:
    """Return sentences about sources that gave no answer: one for those that were not asked."""
    unasked = [name for name, why in reasons.items() if why.endswith(NOT_ASKED)]
    said = [f"No answer from {name}: {why}" for name, why in reasons.items() if name not in unasked]
    if unasked:
        said.append(f"Not asked were {', '.join(unasked)}; no copies of their answers are kept.")
    return said


def _letters(found: Found) -> bytes:
    return b"".join(found.content.split(b"\n")[1:])
