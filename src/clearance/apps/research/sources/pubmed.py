"""PubMed: `esearch` for the numbers, `efetch` for the records (NCBI E-utilities)."""

from xml.etree import ElementTree

from clearance.apps.research.http import Body, Fetched, Fetcher
from clearance.apps.research.sources.agreement import documented
from clearance.apps.research.sources.bibliography import Entry
from clearance.apps.research.sources.endpoints import Endpoints


def search(
    term: str, *, fetcher: Fetcher, endpoints: Endpoints, limit: int, cached_only: bool = False
) -> tuple[Entry, ...]:
    """Return at most `limit` publications that match, most relevant first."""
    asked = fetcher.get(
        f"{endpoints.ncbi}/entrez/eutils/esearch.fcgi",
        {"db": "pubmed", "term": term, "retmode": "json", "retmax": str(limit), "sort": "relevance"}
        | endpoints.ncbi_params(),
        expect=Body.JSON,
        cached_only=cached_only,
    )
    with documented("PubMed"):
        pmids = [str(pmid) for pmid in asked.json()["esearchresult"]["idlist"]]
    if not pmids:
        return ()
    fetched = fetcher.get(
        f"{endpoints.ncbi}/entrez/eutils/efetch.fcgi",
        {"db": "pubmed", "id": ",".join(pmids), "retmode": "xml"} | endpoints.ncbi_params(),
        expect=Body.XML,
        cached_only=cached_only,
    )
    with documented("PubMed"):
        root = ElementTree.fromstring(fetched.body)
        entries = [_entry(article, fetched) for article in root.iter("PubmedArticle")]
    return tuple(sorted(entries, key=lambda entry: pmids.index(entry.pmid)))


def _entry(article: ElementTree.Element, fetched: Fetched) -> Entry:
    pmid = article.findtext("MedlineCitation/PMID", "")
    if not pmid.isdigit():
        raise ValueError("a record without PMID")
    ids = {each.get("IdType"): each.text for each in article.findall("PubmedData/ArticleIdList/ArticleId")}
    body = "MedlineCitation/Article"
    kinds = [each.text or "" for each in article.findall(f"{body}/PublicationTypeList/PublicationType")]
    corrections = article.findall("MedlineCitation/CommentsCorrectionsList/CommentsCorrections")
    abstract = " ".join(_text(each) for each in article.findall(f"{body}/Abstract/AbstractText"))
    return Entry(
        pmid=pmid,
        doi=ids.get("doi"),
        pmcid=ids.get("pmc"),
        title=_text(article.find(f"{body}/ArticleTitle")),
        authors=", ".join(_name(each) for each in article.findall(f"{body}/AuthorList/Author")),
        journal=article.findtext(f"{body}/Journal/Title", ""),
        year=_year(article),
        abstract=abstract or None,
        retracted=any(kind.lower() == "retracted publication" for kind in kinds)
        or any(each.get("RefType") == "RetractionIn" for each in corrections),
        source="PubMed",
        url=f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/",
        retrieved_at=fetched.retrieved_at,
        stale=fetched.stale,
    )


def _text(element: ElementTree.Element | None) -> str:
    """Return the text of an element with that of its marked-up parts."""
    return "" if element is None else "".join(element.itertext()).strip()


def _name(author: ElementTree.Element) -> str:
    collective = author.findtext("CollectiveName")
    return collective or f"{author.findtext('LastName', '')} {author.findtext('Initials', '')}".strip()


def _year(article: ElementTree.Element) -> str:
    date = "MedlineCitation/Article/Journal/JournalIssue/PubDate"
    return article.findtext(f"{date}/Year") or article.findtext(f"{date}/MedlineDate", "")[:4]
