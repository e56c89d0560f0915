"""The genes whose sequences are shipped, and the shipped companions of any gene.

A gene's files are named `SYMBOL.ACCESSION.fna` (mRNA) and `SYMBOL.ACCESSION.faa` (protein). Of BRCA1 there is
exon 11 alone, as the human row of an alignment of 55 mammals.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from clearance.apps.research.errors import RecordMismatchError
from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.produced import fasta_bytes
from clearance.apps.research.methods.sequences import read_alignment, read_dna, read_protein
from clearance.apps.research.sources.mane import MANE_FILE, selected
from clearance.apps.research.sources.records import Found, found
from clearance.apps.research.sources.shipped_files import manifest, shipped_bytes

_ALIGNMENT = "brca1_exon11_55mammals.fasta"
_DOMAIN = "Pkinase.PF00069.17.hmm"
_KINDS = {"fna": "mrna", "faa": "protein"}


def shipped_symbols() -> tuple[str, ...]:
    """Return the symbols of the genes with a shipped sequence."""
    named = {name.partition(".")[0] for name in manifest() if name.rpartition(".")[2] in _KINDS}
    return tuple(sorted(named | {"BRCA1"}))


def shipped_records(symbol: str, *, now: datetime) -> tuple[Found, ...]:
    """Return the shipped sequences of a gene; nothing for a gene without any.

    Raises `RecordMismatchError` for a file that is not the one of the manifest, and for an mRNA that does not
    code for the shipped protein.
    """
    if symbol == "BRCA1":
        return (_exon_11(now),)
    names = [name for name in sorted(manifest()) if name.startswith(f"{symbol}.")]
    records = tuple(_sequence(name, now=now) for name in names if name.rpartition(".")[2] in _KINDS)
    _check_translation(records)
    return records


def companions(symbol: str, *, kinds: Sequence[str], now: datetime) -> tuple[Found, ...]:
    """Return shipped records of the kinds that a gene's own do not have: alignment, HMM, gene span."""
    wanted: list[Found] = []
    if symbol == "BRCA1" and "msa" not in kinds:
        wanted.append(_alignment(now))
    if "hmm" not in kinds:
        wanted.append(
            _shipped(_DOMAIN, id="pkinase", kind="hmm", now=now, description="Protein kinase domain")
        )
    if "exons" not in kinds and symbol.upper() in selected():
        wanted.append(
            _shipped(
                MANE_FILE,
                id="mane",
                kind="exons",
                now=now,
                partial=True,
                note="the span of the gene only; its exons are not shipped",
            )
        )
    return tuple(wanted)


def _sequence(name: str, *, now: datetime) -> Found:
    content = shipped_bytes(name)
    kind = _KINDS[name.rpartition(".")[2]]
    read = read_protein if kind == "protein" else read_dna
    record = read(content, name=name)
    return _shipped(name, id=kind, kind=kind, now=now, length=len(record.letters), description=record.title)


def _check_translation(records: Sequence[Found]) -> None:
    by_kind = {each.record.kind: each for each in records}
    if set(by_kind) >= {"mrna", "protein"}:
        mrna = read_dna(by_kind["mrna"].content, name="mrna").letters
        protein = read_protein(by_kind["protein"].content, name="protein").letters
        if not any(protein + "*" in translate(mrna[frame:]) for frame in range(3)):
            raise RecordMismatchError(
                f"The shipped {by_kind['mrna'].record.accession} does not code for "
                f"{by_kind['protein'].record.accession}. The run stops; nothing is built on it."
            )


def _exon_11(now: datetime) -> Found:
    rows = {row.id: row.letters for row in read_alignment(shipped_bytes(_ALIGNMENT), name=_ALIGNMENT)}
    letters = rows["Human"].replace("-", "")
    return found(
        fasta_bytes("BRCA1_exon_11 Homo sapiens", letters),
        id="exon11",
        kind="coding",
        file="exon11.fasta",
        length=len(letters),
        description="BRCA1 exon 11",
        partial=True,
        note="exon 11 only, in frame from its first base",
        derived_from=f"{_ALIGNMENT}, row Human, without gaps",
        **_facts(_ALIGNMENT, now),
    )


def _alignment(now: datetime) -> Found:
    rows = read_alignment(shipped_bytes(_ALIGNMENT), name=_ALIGNMENT)
    return _shipped(
        _ALIGNMENT,
        id="mammals",
        kind="msa",
        now=now,
        length=len(rows[0].letters),
        description=f"BRCA1 exon 11 of {len(rows)} mammals",
        partial=True,
        note="exon 11 only",
    )


def _shipped(name: str, *, now: datetime, **facts: Any) -> Found:
    return found(shipped_bytes(name), file=name, **_facts(name, now), **facts)


def _facts(name: str, now: datetime) -> dict[str, Any]:
    entry = manifest()[name]
    return {
        "accession": entry["accession"],
        "licence": entry["licence"],
        "source": f"shipped, from {entry['source']}",
        "retrieved_at": now,
    }
