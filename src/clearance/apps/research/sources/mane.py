"""Which transcript of a gene MANE selected: the shipped subset of MANE v1.5 (GRCh38, NCBI and EMBL-EBI)."""

import csv
import re
from dataclasses import dataclass
from functools import cache

from clearance.apps.research.sources.shipped_files import shipped_bytes

MANE_FILE = "mane_v1.5_subset.tsv"


@dataclass(frozen=True)
class ManeSelect:
    """The selected transcript of a gene, by its accessions with versions."""

    symbol: str
    name: str
    ncbi_gene: str
    ensembl_gene: str
    hgnc: str
    refseq: str
    refseq_protein: str
    ensembl: str
    ensembl_protein: str

    @property
    def ids(self) -> dict[str, str]:
        """The gene's ids by database."""
        return {
            "ncbi_gene": self.ncbi_gene,
            "ensembl_gene": self.ensembl_gene,
            "hgnc": self.hgnc,
            "mane_refseq": self.refseq,
            "mane_ensembl": self.ensembl,
        }

    def selects(self, accession: str) -> str | None:
        """Return the selected accession that stands where this one does; None when this one is no version."""
        for selected in (self.refseq, self.refseq_protein, self.ensembl, self.ensembl_protein):
            if _series(selected) == _series(accession):
                return selected
        return None


def _series(accession: str) -> str:
    """Return the letters that say what an accession names: NM_ an mRNA, ENSP a protein."""
    return re.split(r"[0-9]", accession, maxsplit=1)[0]


@cache
def selected() -> dict[str, ManeSelect]:
    """Return the selected transcripts by symbol in upper case."""
    rows = csv.DictReader(shipped_bytes(MANE_FILE).decode().removeprefix("#").splitlines(), delimiter="\t")
    return {
        row["symbol"].upper(): ManeSelect(
            symbol=row["symbol"],
            name=row["name"],
            ncbi_gene=row["NCBI_GeneID"].removeprefix("GeneID:"),
            ensembl_gene=row["Ensembl_Gene"],
            hgnc=row["HGNC_ID"],
            refseq=row["RefSeq_nuc"],
            refseq_protein=row["RefSeq_prot"],
            ensembl=row["Ensembl_nuc"],
            ensembl_protein=row["Ensembl_prot"],
        )
        for row in rows
        if row["MANE_status"] == "MANE Select"
    }
