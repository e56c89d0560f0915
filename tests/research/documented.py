"""Answers in the shapes that the services document, for KRAS as it is shipped."""

import hashlib
import json
from typing import Any

from clearance.apps.research.methods.genetic_code import translate
from clearance.apps.research.methods.sequences import read_dna
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.shipped_files import shipped_bytes
from tests.research.local_server import Answer, Services

MRNA = read_dna(shipped_bytes("KRAS.NM_004985.5.fna"), name="KRAS").letters
START = MRNA.index("ATGACTGAATATAAACTTGTGG")
CDS = MRNA[START : START + 189 * 3]
PROTEIN = translate(CDS).removesuffix("*")


def endpoints(services: Services, **more: Any) -> Endpoints:
    """All services at one address."""
    url = services.url
    return Endpoints(mygene=url, ensembl=url, ncbi=url, uniprot=url, europepmc=url, **more)


def hit(symbol: str = "KRAS", number: str = "3845", **more: Any) -> dict[str, Any]:
    """One hit of MyGene."""
    facts = {"_id": number, "_score": 17.3, "entrezgene": number, "symbol": symbol, "taxid": 9606}
    return facts | {
        "name": "KRAS proto-oncogene, GTPase",
        "HGNC": "6407",
        "ensembl": {"gene": "ENSG00000133703"},
        "refseq": {"rna": ["NM_004985.5", "NM_033360.4", "XM_011520653.3"]},
        "uniprot": {"Swiss-Prot": "P01116"},
        **more,
    }


def as_json(document: object) -> bytes:
    """JSON as it is sent."""
    return json.dumps(document).encode()


def mygene(services: Services, *hits: dict[str, Any]) -> None:
    """Let MyGene answer each query with these hits."""
    document = {"took": 3, "total": len(hits), "max_score": 17.3, "hits": list(hits)}
    services.answer("/v3/query", as_json(document))


LOOKUP = "/lookup/symbol/homo_sapiens/KRAS"


def ensembl(
    services: Services, *, cds: str = CDS, protein: str = PROTEIN, mrna: str = MRNA, path: str = LOOKUP
) -> None:
    """Let Ensembl know KRAS: a transcript that MANE selected behind another one."""
    chosen = {
        "id": "ENST00000311936",
        "version": 8,
        "is_canonical": 1,
        "biotype": "protein_coding",
        "MANE": [{"type": "MANE_Select", "refseq_match": "NM_004985.5"}],
        "Translation": {
            "id": "ENSP00000308495",
            "version": 3,
            "start": 25209798,
            "end": 25245384,
            "length": len(PROTEIN),
        },
        "Exon": [{"id": "ENSE1", "start": 25250751, "end": 25250929, "strand": -1}],
    }
    gene = {
        "id": "ENSG00000133703",
        "display_name": "KRAS",
        "seq_region_name": "12",
        "strand": -1,
        "assembly_name": "GRCh38",
        "canonical_transcript": "ENST00000256078.10",
        "Transcript": [{"id": "ENST00000256078", "version": 10, "biotype": "processed_transcript"}, chosen],
    }
    services.answer(path, as_json(gene))
    path = "/sequence/id/ENST00000311936"
    for kind, letters, molecule in (
        ("cdna", mrna, "dna"),
        ("cds", cds, "dna"),
        ("protein", protein, "protein"),
    ):
        own = "ENSP00000308495" if kind == "protein" else "ENST00000311936"
        version = 3 if kind == "protein" else 8
        document = {"id": own, "version": version, "molecule": molecule, "seq": letters, "desc": None}
        services.answer(f"{path}?type={kind}", as_json(document))


def refseq(services: Services, *, cds: str = CDS, protein: str = PROTEIN, name: str = "NM_004985.5") -> None:
    """Let NCBI give the transcript in its three forms."""
    path = "/entrez/eutils/efetch.fcgi"
    facts = f"[gene=KRAS] [protein=GTPase KRas isoform b] [protein_id=NP_004976.2] [location={START}..]"
    for form, title, letters in (
        (
            "fasta",
            f"{name} Homo sapiens KRAS proto-oncogene, GTPase (KRAS), transcript variant b, mRNA",
            MRNA,
        ),
        ("fasta_cds_na", f"lcl|{name}_cds_NP_004976.2_1 {facts}", cds),
        ("fasta_cds_aa", f"lcl|{name}_prot_NP_004976.2_1 {facts}", protein),
    ):
        services.answer(f"{path}?rettype={form}", f">{title}\n{letters}\n".encode())


def uniprot(services: Services, *, protein: str = PROTEIN, md5: str | None = None) -> None:
    """Let UniProt give one reviewed entry."""
    own = hashlib.md5(protein.encode(), usedforsecurity=False).hexdigest().upper()
    sequence = {"value": protein, "length": len(protein), "molWeight": 21656, "md5": md5 or own}
    entry = {"primaryAccession": "P01116", "uniProtkbId": "RASK_HUMAN", "sequence": sequence}
    services.answer("/uniprotkb/search", as_json({"results": [entry]}))


def all_of_kras(services: Services) -> None:
    """Let every service know KRAS."""
    mygene(services, hit())
    ensembl(services)
    refseq(services)
    uniprot(services)


def down(services: Services, *paths: str) -> None:
    """Let these paths refuse."""
    for path in paths:
        services.answer(path, Answer(b"busy", status=403))
