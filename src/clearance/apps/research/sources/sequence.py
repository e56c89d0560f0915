"""The sequence stage: from a gene symbol to records that later steps can be held to.

The chain: the person's own FASTA file; services (MyGene for the symbol, Ensembl, else NCBI RefSeq, with
UniProt beside them); kept copies of their answers; the data that is shipped. What a source says about itself
is checked on the way, and a record that does not agree with itself stops the run.
"""

import difflib
from collections.abc import Iterable
from dataclasses import replace

from clearance.apps.research.errors import SourceUnavailableError, UnknownSymbolError
from clearance.apps.research.http import Fetcher
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.lookup import Lookup
from clearance.apps.research.sources.mane import selected
from clearance.apps.research.sources.organisms import Organism, check_symbol, organism_named
from clearance.apps.research.sources.own_sequence import read_own
from clearance.apps.research.sources.records import Found, Gene, Sequences
from clearance.apps.research.sources.shipped_genes import companions, shipped_records, shipped_symbols

HUMAN = 9606


def find_sequences(
    symbol: str,
    *,
    fetcher: Fetcher,
    endpoints: Endpoints,
    organism: str = "human",
    fasta: bytes | None = None,
    fasta_kind: str | None = None,
) -> Sequences:
    """Return the records of a gene, which is named by its symbol or by its number at NCBI.

    Raises `InvalidInputError` for a symbol, organism or FASTA file that cannot be used, `UnknownSymbolError`,
    `AmbiguousSymbolError`, `RecordMismatchError`, and `SourceUnavailableError` when no source has a sequence.
    """
    species, symbol = organism_named(organism), check_symbol(symbol)
    lookup = Lookup(fetcher, endpoints, species)
    if fasta is not None:
        gene = _shipped_gene(symbol, species) or Gene(symbol, "", species.taxon, {})
        own = read_own(fasta, kind=fasta_kind, now=fetcher.now())
        return _sequences(gene, (own,), species, lookup=lookup)
    gene = _identified(symbol, species, lookup=lookup)
    records = lookup.records(gene)
    if not records and species.taxon == HUMAN:
        records = shipped_records(gene.symbol, now=fetcher.now())
    if not records:
        raise SourceUnavailableError(
            f"No source gives a sequence of {gene.symbol} now. {lookup.reasons()} Try again later, or give "
            f"--fasta. Shipped are: {', '.join(shipped_symbols())}."
        )
    return _sequences(gene, records, species, lookup=lookup)


def _identified(symbol: str, species: Organism, *, lookup: Lookup) -> Gene:
    """Return the gene of a symbol from the first source that knows it."""
    gene = lookup.gene(symbol) or _shipped_gene(symbol, species)
    if gene is not None:
        known = selected().get(gene.symbol.upper()) if species.taxon == HUMAN else None
        return replace(gene, ids={**gene.ids, **known.ids}) if known else gene
    if lookup.has_transcripts(symbol):
        return Gene(symbol, "", species.taxon, {})
    near = [*alike(symbol, species.name), *lookup.near(symbol)]
    raise UnknownSymbolError(symbol, tuple(dict.fromkeys(near))[:5], searched=lookup.searched())


def _shipped_gene(symbol: str, species: Organism) -> Gene | None:
    """Return a gene that the shipped data knows, whatever the case of its symbol, or by its number."""
    if species.taxon != HUMAN:
        return None
    by_number = {each.ncbi_gene: each for each in selected().values()}
    known = selected().get(symbol.upper()) or by_number.get(symbol)
    return None if known is None else Gene(known.symbol, known.name, HUMAN, known.ids, (known.refseq,))


def alike(symbol: str, organism: str) -> list[str]:
    """Return symbols of the shipped data that look like this one, best first."""
    species = organism_named(organism)
    known = {each.symbol for each in selected().values()} if species.taxon == HUMAN else set()
    return difflib.get_close_matches(symbol.upper(), sorted(known), n=3, cutoff=0.6)


def _sequences(gene: Gene, records: tuple[Found, ...], species: Organism, *, lookup: Lookup) -> Sequences:
    """Return the records with their shipped companions, and with what a reader must know about them."""
    if species.taxon == HUMAN:
        kinds = [each.record.kind for each in records]
        records += companions(gene.symbol, kinds=kinds, now=lookup.now())
    return Sequences(
        symbol=gene.symbol,
        organism=species.name,
        taxon=species.taxon,
        ids=gene.ids,
        records=tuple(each.record for each in records),
        warnings=tuple(dict.fromkeys([*_warnings(gene, records, species), *lookup.warnings()])),
        files={each.record.file: each.content for each in records},
    )


def _warnings(gene: Gene, records: Iterable[Found], species: Organism) -> list[str]:
    known = selected().get(gene.symbol.upper()) if species.taxon == HUMAN else None
    said = []
    for record in (each.record for each in records):
        if record.source == "user":
            said.append(f"{record.id} is the user's own sequence {record.accession}; nobody confirmed it.")
        if record.partial:
            said.append(f"{record.id} ({record.accession}): {record.note}.")
        if record.stale:
            said.append(f"{record.id} ({record.accession}) is a kept copy that its source could not confirm.")
        mane = known.selects(record.accession) if known else None
        if mane not in (None, record.accession) and record.source != "user":
            said.append(f"{record.id} is {record.accession}; MANE Select v1.5 has {mane}.")
    return said
