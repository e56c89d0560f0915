"""Literature is what a source says, flagged where it was retracted; without any the run goes on."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.http import Mode
from clearance.apps.research.sources.bibliography import Literature
from clearance.apps.research.sources.literature import find_literature
from tests.research import documented
from tests.research.documented import as_json
from tests.research.local_server import Answer, Services, serve
from tests.research.network import Clock, fetcher

EUROPE = "/europepmc/webservices/rest/search"
SEARCH, FETCH = "/entrez/eutils/esearch.fcgi", "/entrez/eutils/efetch.fcgi"


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

    def __call__(self, symbol: str = "KRAS", objective: str = "", **more: Any) -> Literature:
        options = {name: more.pop(name) for name in ("mode", "record") if name in more}
        keys = {name: more.pop(name) for name in ("ncbi_api_key", "ncbi_email") if name in more}
        endpoints = documented.endpoints(self.services, **keys)
        with fetcher(self.folder, self.clock, **options) as fetching:
            return find_literature(symbol, objective, fetcher=fetching, endpoints=endpoints, **more)


@pytest.fixture
def find(services: Services, clock: Clock, tmp_path: Path) -> Find:
    return Find(services, clock, tmp_path)


def result(pmid: int, **more: Any) -> dict[str, Any]:
    """One result of Europe PMC."""
    return {
        "id": str(pmid),
        "source": "MED",
        "pmid": str(pmid),
        "doi": f"10.1000/{pmid}",
        "title": f"KRAS and the number {pmid}.",
        "authorString": "Doe J, Roe R.",
        "journalInfo": {"yearOfPublication": 2020, "journal": {"title": "A journal"}},
        "pubYear": "2020",
        "abstractText": "KRAS is a gene.",
        "pubTypeList": {"pubType": ["Journal Article"]},
        **more,
    }


def page(*results: dict[str, Any], following: str | None = None, hits: int | None = None) -> bytes:
    """One page of Europe PMC."""
    document: dict[str, Any] = {"version": "6.9", "hitCount": len(results) if hits is None else hits}
    if following is not None:
        document["nextCursorMark"] = following
    return as_json({**document, "resultList": {"result": list(results)}})


PUBMED = b"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" "https://dtd.nlm.nih.gov/x.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation><PMID Version="1">11</PMID><Article>
<Journal><JournalIssue><PubDate><Year>2001</Year></PubDate></JournalIssue><Title>A journal</Title></Journal>
<ArticleTitle>On <i>KRAS</i> in cells.</ArticleTitle>
<Abstract><AbstractText Label="AIM">To see.</AbstractText><AbstractText>We saw.</AbstractText></Abstract>
<AuthorList><Author><LastName>Doe</LastName><Initials>J</Initials></Author>
<Author><CollectiveName>The Group</CollectiveName></Author></AuthorList>
<PublicationTypeList>
<PublicationType UI="D016441">Retracted Publication</PublicationType>
</PublicationTypeList>
</Article></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="doi">10.1000/11</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle>
<PubmedArticle><MedlineCitation><PMID Version="1">12</PMID><Article>
<Journal><JournalIssue><PubDate><MedlineDate>1999 Jan-Feb</MedlineDate></PubDate></JournalIssue>
<Title>A journal</Title></Journal><ArticleTitle>Second.</ArticleTitle>
</Article></MedlineCitation></PubmedArticle>
</PubmedArticleSet>"""


def test_pages_are_followed_by_their_cursor_to_the_last(services: Services, find: Find) -> None:
    services.answer(f"{EUROPE}?cursorMark=*", page(result(1), result(2), following="AoE1", hits=3))
    services.answer(f"{EUROPE}?cursorMark=AoE1", page(result(3), following="AoE1", hits=3))
    found = find()
    assert [entry.id for entry in found.entries] == ["PMID:1", "PMID:2", "PMID:3"]
    assert found.source == "Europe PMC"
    assert services.asked[0].params["query"] == '(TITLE:"KRAS" OR ABSTRACT:"KRAS")'
    assert found.warnings == ()


def test_no_more_pages_are_asked_for_than_are_wanted(services: Services, find: Find) -> None:
    services.answer(f"{EUROPE}?cursorMark=*", page(result(1), result(2), following="AoE1", hits=900))
    assert len(find(limit=2).entries) == 2
    assert services.count(EUROPE) == 1


def test_an_entry_keeps_what_the_source_says(services: Services, find: Find) -> None:
    marked = {"title": "On <i>KRAS</i>.", "abstractText": "<h4>Aim</h4>To see <sub>it</sub>."}
    services.answer(EUROPE, page(result(7, pmcid="PMC9", **marked)))
    (entry,) = find().entries
    assert (entry.title, entry.abstract) == ("On KRAS.", "Aim To see it.")
    assert (entry.doi, entry.pmcid, entry.year, entry.journal) == ("10.1000/7", "PMC9", "2020", "A journal")
    record = find().document()["records"][0]
    assert {"id", "accession", "source", "retrieved_at", "sha256", "title", "abstract", "year"} <= set(record)


def test_the_objective_narrows_the_search_and_an_empty_answer_widens_it(
    services: Services, find: Find
) -> None:
    services.answer(EUROPE, page(), page(result(1)))
    found = find(objective="Which resistance mutations are there?")
    assert [asked.params["query"] for asked in services.asked] == [
        '(TITLE:"KRAS" OR ABSTRACT:"KRAS") AND (resistance OR mutations OR there)',
        '(TITLE:"KRAS" OR ABSTRACT:"KRAS")',
    ]
    assert len(found.entries) == 1


RETRACTED = {
    "by its type": {"pubTypeList": {"pubType": ["Journal Article", "Retracted Publication"]}},
    "by a notice": {"commentCorrectionList": {"commentCorrection": [{"type": "Retraction in", "id": "9"}]}},
}


@pytest.mark.parametrize("facts", RETRACTED.values(), ids=RETRACTED.keys())
def test_a_retracted_one_is_flagged_and_cannot_be_cited(
    services: Services, find: Find, facts: dict[str, Any]
) -> None:
    services.answer(EUROPE, page(result(1), result(2, **facts)))
    found = find()
    assert [entry.retracted for entry in found.entries] == [False, True]
    assert found.ids == {"PMID:1"}
    assert found.warnings == ("PMID:2 was retracted; it is listed and supports nothing.",)


def test_pubmed_takes_over_when_europe_pmc_is_down(services: Services, find: Find) -> None:
    documented.down(services, EUROPE)
    services.answer(SEARCH, as_json({"esearchresult": {"count": "2", "idlist": ["12", "11"]}}))
    services.answer(FETCH, PUBMED)
    found = find(ncbi_api_key="k1", ncbi_email="ann@example.org")
    assert [entry.id for entry in found.entries] == ["PMID:12", "PMID:11"]
    second, first = found.entries
    assert first.title == "On KRAS in cells."
    assert first.authors == "Doe J, The Group"
    assert first.abstract == "To see. We saw."
    assert (first.year, second.year) == ("2001", "1999")
    assert (first.retracted, second.retracted) == (True, False)
    asked = next(each for each in services.asked if each.path == SEARCH)
    assert asked.params["term"] == "(KRAS[tiab] OR KRAS[tiab])"
    assert (asked.params["tool"], asked.params["email"], asked.params["api_key"]) == (
        "clearance", "ann@example.org", "k1",
    )  # fmt: skip


def test_kept_copies_stand_in_and_are_marked_stale(services: Services, clock: Clock, find: Find) -> None:
    services.answer(EUROPE, page(result(1)))
    find()
    clock.seconds += timedelta(days=3).total_seconds()
    documented.down(services, EUROPE, SEARCH)
    found = find()
    assert [entry.stale for entry in found.entries] == [True]
    assert any("could not confirm" in warning for warning in found.warnings)


def test_offline_the_shipped_entries_are_given_and_no_others(services: Services, find: Find) -> None:
    found = find("BRCA1", mode=Mode.OFFLINE)
    assert [(entry.id, entry.doi) for entry in found.entries] == [
        ("PMID:7545954", "10.1126/science.7545954"),
        ("PMID:30209399", "10.1038/s41586-018-0461-z"),
    ]
    assert all(entry.abstract is None for entry in found.entries)
    assert services.asked == []


def test_without_literature_the_run_goes_on_and_says_so(services: Services, find: Find) -> None:
    services.answer(EUROPE, page())
    found = find()
    assert (found.entries, found.source) == ((), "none")
    assert found.warnings == ("No literature on KRAS was found; nothing can be cited.",)


def test_the_shipped_entries_are_looked_up_by_their_number_when_a_search_leaves_them_out(
    services: Services, find: Find
) -> None:
    services.answer(EUROPE, page(result(30209399)))
    services.answer(
        f"{EUROPE}?query=EXT_ID:7545954 AND SRC:MED",
        page(result(7545954, pubTypeList={"pubType": ["Retracted Publication"]})),
    )
    found = find("BRCA1")
    assert {entry.id: entry.retracted for entry in found.entries} == {
        "PMID:30209399": False,
        "PMID:7545954": True,
    }


@pytest.mark.parametrize("body", [b"{}", b'{"resultList": {"result": [{"source": "MED"}]}}', b"[1]"])
def test_an_answer_of_another_shape_is_no_answer(services: Services, find: Find, body: bytes) -> None:
    services.answer(EUROPE, body)
    services.answer(SEARCH, Answer(b"{}"))
    found = find()
    assert found.entries == ()
    assert any("No answer from Europe PMC" in warning for warning in found.warnings)


def test_a_run_is_replayed_from_its_record_alone(services: Services, find: Find) -> None:
    documented.down(services, EUROPE)
    services.answer(SEARCH, as_json({"esearchresult": {"count": "1", "idlist": ["12", "11"]}}))
    services.answer(FETCH, PUBMED)
    recorded = find("BRCA1", record="r1")
    asked = len(services.asked)
    assert find("BRCA1", record="r1", mode=Mode.REPLAY).text == recorded.text
    assert len(services.asked) == asked
