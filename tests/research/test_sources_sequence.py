"""A symbol becomes records that agree with themselves, or the run stops."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.errors import (
    AmbiguousSymbolError,
    RecordMismatchError,
    SourceUnavailableError,
    UnknownSymbolError,
)
from clearance.apps.research.http import Mode
from clearance.apps.research.methods.produced import fasta_bytes
from clearance.apps.research.sources.records import Sequences
from clearance.apps.research.sources.sequence import find_sequences
from clearance.errors import InvalidInputError
from tests.research import documented
from tests.research.local_server import Answer, Services, serve
from tests.research.network import NOON, Clock, fetcher


@pytest.fixture
def services() -> Iterator[Services]:
    with serve() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Find:
    """Runs the stage against the local services."""

    def __init__(self, services: Services, clock: Clock, folder: Path) -> None:
        self.services = services
        self.clock = clock
        self.folder = folder

    def __call__(self, symbol: str = "KRAS", **more: Any) -> Sequences:
        options = {name: more.pop(name) for name in ("mode", "record") if name in more}
        with fetcher(self.folder, self.clock, **options) as fetching:
            endpoints = documented.endpoints(self.services)
            return find_sequences(symbol, fetcher=fetching, endpoints=endpoints, **more)


@pytest.fixture
def find(services: Services, clock: Clock, tmp_path: Path) -> Find:
    return Find(services, clock, tmp_path)


def _accessions(sequences: Sequences) -> dict[str, str]:
    return {record.id: record.accession for record in sequences.records}


def test_ensembl_gives_the_transcript_that_mane_selected(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    found = find("kras")
    assert (found.symbol, found.organism, found.taxon) == ("KRAS", "Homo sapiens", 9606)
    assert found.ids["mane_refseq"] == "NM_004985.5"
    assert found.ids["uniprot"] == "P01116"
    assert _accessions(found) == {
        "mrna": "ENST00000311936.8",
        "cds": "ENST00000311936.8",
        "protein": "ENSP00000308495.3",
        "exons": "ENST00000311936.8",
        "pkinase": "PF00069.17",
    }
    assert found.files["cds.fasta"] == fasta_bytes("ENST00000311936.8", documented.CDS)
    assert found.warnings == ()


def test_every_record_says_where_it_is_from_when_and_its_checksum(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    found = find()
    for record in found.records:
        assert record.accession
        assert record.source
        assert record.licence
        assert record.retrieved_at == NOON
        assert record.size == len(found.files[record.file])
        assert len(record.sha256) == 64


def test_the_document_is_sorted_and_the_same_each_time(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    assert find().text == find().text
    assert [record["id"] for record in find().document()["records"]] == [
        "cds", "exons", "mrna", "pkinase", "protein",
    ]  # fmt: skip


def test_ncbi_takes_over_when_ensembl_is_down(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    documented.down(services, "/lookup/symbol/homo_sapiens/KRAS")
    found = find()
    assert _accessions(found) == {
        "mrna": "NM_004985.5",
        "cds": "NM_004985.5",
        "protein": "NP_004976.2",
        "pkinase": "PF00069.17",
        "mane": "MANE v1.5, 17 genes",
    }
    assert any("No answer from Ensembl" in warning for warning in found.warnings)


def test_uniprot_gives_the_protein_when_the_others_are_down(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    documented.down(services, "/lookup/symbol/homo_sapiens/KRAS", *_EFETCH)
    assert _accessions(find())["protein"] == "P01116"


_EFETCH = [f"/entrez/eutils/efetch.fcgi?rettype={form}" for form in ("fasta", "fasta_cds_na", "fasta_cds_aa")]


def test_kept_copies_stand_in_and_are_marked_stale(services: Services, clock: Clock, find: Find) -> None:
    documented.all_of_kras(services)
    before = find()
    clock.seconds += timedelta(days=3).total_seconds()
    documented.down(services, "/v3/query", "/lookup/symbol/homo_sapiens/KRAS", "/uniprotkb/search", *_EFETCH)
    for kind in ("cdna", "cds", "protein"):
        documented.down(services, f"/sequence/id/ENST00000311936?type={kind}")
    found = find()
    assert found.files["mrna.fasta"] == before.files["mrna.fasta"]
    stale = {record.id for record in found.records if record.stale}
    assert stale == {"mrna", "cds", "protein", "exons"}
    assert {record.retrieved_at for record in found.records if record.stale} == {NOON}
    assert any("could not confirm" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("TP53", {"protein": "P04637"}),
        ("EGFR", {"mrna": "NM_005228.3", "protein": "P00533"}),
        ("KRAS", {"mrna": "NM_004985.5"}),
        ("BRCA2", {"mrna": "NM_000059.3"}),
        ("BRAF", {"mrna": "NM_004333.6"}),
        ("ATM", {"mrna": "NM_000051.3"}),
        ("PTEN", {"mrna": "NM_000314.4"}),
        ("VHL", {"mrna": "NM_000551.3"}),
    ],
)
def test_offline_the_shipped_record_is_given(
    services: Services, find: Find, symbol: str, expected: dict[str, str]
) -> None:
    found = find(symbol, mode=Mode.OFFLINE)
    assert {
        record.id: record.accession for record in found.records if record.id in ("mrna", "protein")
    } == expected
    assert services.asked == []


def test_offline_brca1_is_exon_11_and_says_so(find: Find) -> None:
    found = find("BRCA1", mode=Mode.OFFLINE)
    (exon,) = [record for record in found.records if record.id == "exon11"]
    assert (exon.kind, exon.length, exon.partial) == ("coding", 2838, True)
    assert any("exon 11 only" in warning for warning in found.warnings)
    assert {record.kind for record in found.records} == {"coding", "msa", "hmm", "exons"}


def test_a_shipped_version_other_than_manes_is_a_warning(find: Find) -> None:
    warnings = find("EGFR", mode=Mode.OFFLINE).warnings
    assert "mrna is NM_005228.3; MANE Select v1.5 has NM_005228.5." in warnings
    assert not any("MANE Select" in warning for warning in find("KRAS", mode=Mode.OFFLINE).warnings)


def test_a_coding_sequence_that_is_not_the_proteins_stops_the_run(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    documented.ensembl(services, protein=documented.PROTEIN.replace("G", "A", 1))
    with pytest.raises(RecordMismatchError, match="does not translate"):
        find()


MISMATCHES: dict[str, Any] = {
    "Ensembl: a base of the coding sequence": lambda s: documented.ensembl(
        s, cds=documented.CDS[:3] + "A" * 3
    ),
    "Ensembl: another mRNA": lambda s: documented.ensembl(
        s, mrna=documented.MRNA.replace("ATGACTG", "ATGACTC")
    ),
    "UniProt: another MD5": lambda s: documented.uniprot(s, md5="0" * 32),
}


@pytest.mark.parametrize("falsify", MISMATCHES.values(), ids=MISMATCHES.keys())
def test_a_record_that_disagrees_with_itself_stops_the_run(
    services: Services, find: Find, falsify: Any
) -> None:
    documented.all_of_kras(services)
    falsify(services)
    with pytest.raises(RecordMismatchError):
        find()


NCBI_MISMATCHES: dict[str, Any] = {
    "another transcript": lambda s: documented.refseq(s, name="NM_033360.4"),
    "another protein": lambda s: documented.refseq(s, protein="M" + documented.PROTEIN),
}


@pytest.mark.parametrize("falsify", NCBI_MISMATCHES.values(), ids=NCBI_MISMATCHES.keys())
def test_a_wrong_record_of_ncbi_stops_the_run(services: Services, find: Find, falsify: Any) -> None:
    documented.all_of_kras(services)
    documented.down(services, "/lookup/symbol/homo_sapiens/KRAS")
    falsify(services)
    with pytest.raises(RecordMismatchError):
        find()


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"hits": 3}', b'{"hits": [{}]}', b"null"])
def test_an_answer_of_another_shape_is_no_answer(services: Services, find: Find, body: bytes) -> None:
    for path in ("/v3/query", "/lookup/symbol/homo_sapiens/KRAS", "/uniprotkb/search"):
        services.answer(path, body)
    found = find()
    assert _accessions(found)["mrna"] == "NM_004985.5"
    assert any("No answer from MyGene" in warning for warning in found.warnings)


def test_an_unknown_symbol_stops_with_near_ones(services: Services, find: Find) -> None:
    documented.mygene(services)
    services.answer("/lookup/symbol/homo_sapiens/BRAC1", Answer(b'{"error":"none"}', status=400))
    with pytest.raises(UnknownSymbolError, match="Did you mean BRCA1") as raised:
        find("BRAC1")
    assert "BRCA1" in raised.value.near


def test_an_unknown_symbol_offline_stops_with_near_ones(find: Find) -> None:
    with pytest.raises(UnknownSymbolError, match="KRAS"):
        find("KRASS", mode=Mode.OFFLINE)


def test_another_name_of_a_gene_is_offered_not_taken(services: Services, find: Find) -> None:
    documented.mygene(services, documented.hit())
    services.answer("/lookup/symbol/homo_sapiens/KRAS2", Answer(b'{"error":"none"}', status=400))
    with pytest.raises(UnknownSymbolError) as raised:
        find("KRAS2")
    assert "KRAS" in raised.value.near


def test_a_symbol_of_several_genes_stops_with_the_choices(services: Services, find: Find) -> None:
    documented.mygene(services, documented.hit("ABC1", "19"), documented.hit("ABC1", "63897"))
    with pytest.raises(AmbiguousSymbolError) as raised:
        find("ABC1")
    assert [choice.partition(" ")[0] for choice in raised.value.choices] == ["19", "63897"]


def test_a_gene_is_asked_for_by_its_number_and_looked_up_by_its_ids(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    documented.mygene(services, documented.hit(), documented.hit(number="99"))
    with pytest.raises(AmbiguousSymbolError):
        find()
    documented.ensembl(services, path="/lookup/id/ENSG00000133703")
    found = find("3845")
    assert (found.symbol, found.ids["ncbi_gene"]) == ("KRAS", "3845")
    assert services.count("/lookup/id/ENSG00000133703") == 1
    assert services.count("/lookup/symbol/homo_sapiens/KRAS") == 0
    assert "accession:P01116" in services.asked[-1].params["query"]


def test_a_shipped_gene_is_found_by_its_number(find: Find) -> None:
    assert find("3845", mode=Mode.OFFLINE).symbol == "KRAS"


def test_a_gene_that_no_source_has_now_is_said_with_what_is_shipped(find: Find) -> None:
    with pytest.raises(SourceUnavailableError, match=r"CFTR.*--fasta.*KRAS"):
        find("CFTR", mode=Mode.OFFLINE)


@pytest.mark.parametrize("symbol", ["", "BRCA 1", "a" * 33, "../x", "BRCA1;DROP", "é"])
def test_what_no_symbol_can_be_is_refused(services: Services, find: Find, symbol: str) -> None:
    with pytest.raises(InvalidInputError, match="symbol"):
        find(symbol)
    assert services.asked == []


def test_an_unknown_organism_is_refused(find: Find) -> None:
    with pytest.raises(InvalidInputError, match="human, mouse"):
        find(organism="unicorn")


def test_a_run_is_replayed_from_its_record_alone(services: Services, find: Find) -> None:
    documented.all_of_kras(services)
    documented.down(services, "/lookup/symbol/homo_sapiens/KRAS")
    recorded = find(record="r1")
    (find.folder / "http.db").unlink()
    asked = len(services.asked)
    find.clock.seconds += 1e6
    replayed = find(record="r1", mode=Mode.REPLAY)
    assert replayed.text == recorded.text
    assert len(services.asked) == asked


def test_an_offline_run_is_replayed_too(find: Find) -> None:
    recorded = find("EGFR", record="r1", mode=Mode.OFFLINE)
    find.clock.seconds += 1e6
    assert find("EGFR", record="r1", mode=Mode.REPLAY).text == recorded.text
