"""Records of a run: what was found, where, when, and the checksum that everything later is held to."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from clearance.toolcall import canonical


@dataclass(frozen=True)
class Record:
    """One input of the analysis.

    `kind` is a kind of the method cards (dna, cds, mrna, protein, msa, hmm, exons). `file` names its bytes in
    `Sequences.files`; `sha256` (hex) and `size` are theirs. `length` counts letters, or alignment columns.
    `source` is the service, `shipped` or `user`; `retrieved_at` when that source gave it; `stale` says that
    it could not be confirmed now. A `partial` record is a part of what its kind promises, as its `note` says.
    """

    id: str
    kind: str
    file: str
    sha256: str
    size: int
    accession: str
    source: str
    licence: str
    retrieved_at: datetime
    description: str = ""
    length: int | None = None
    url: str | None = None
    stale: bool = False
    partial: bool = False
    derived_from: str | None = None
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the record as JSON, without what it does not have."""
        values = asdict(self) | {"retrieved_at": self.retrieved_at.isoformat()}
        return {name: value for name, value in values.items() if value not in (None, "", False)}


@dataclass(frozen=True)
class Sequences:
    """What the sequence stage found for one gene. `files` are the records' bytes by file name."""

    symbol: str
    organism: str
    taxon: int
    ids: Mapping[str, str]
    records: tuple[Record, ...]
    warnings: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def document(self) -> dict[str, Any]:
        """Return `sequence.json`: everything but the bytes, records by id."""
        return {
            "schema": "sequence.v1",
            "symbol": self.symbol,
            "organism": self.organism,
            "taxon": self.taxon,
            "ids": dict(self.ids),
            "records": [each.document() for each in sorted(self.records, key=lambda each: each.id)],
            "warnings": list(self.warnings),
        }

    @property
    def text(self) -> str:
        """The canonical JSON of `sequence.json`."""
        return canonical(self.document())


@dataclass(frozen=True)
class Found:
    """A record with its bytes, on the way from a source into `Sequences`."""

    record: Record
    content: bytes


def found(content: bytes, **facts: Any) -> Found:
    """Return a record of these bytes; their checksum and size are measured here, never taken from outside."""
    return Found(Record(sha256=hashlib.sha256(content).hexdigest(), size=len(content), **facts), content)


@dataclass(frozen=True)
class Gene:
    """What a symbol stands for, as far as a source says: ids by database, the RefSeq transcripts it lists.

    `by_number` says that the gene was asked for by its number at NCBI, because its symbol names others, too.
    """

    symbol: str
    name: str
    taxon: int
    ids: Mapping[str, str]
    transcripts: tuple[str, ...] = ()
    by_number: bool = False
