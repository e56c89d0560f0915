"""Tracing: nothing stands in a report that its run's records do not have, and what is invented stops it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from clearance.apps.research.errors import ReportError
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.report.facts import Book, Fact, Records, Source, Way, text_of
from clearance.apps.research.report.markdown import escaped, unescaped
from clearance.apps.research.report.outline import outline
from clearance.apps.research.report.pages import page
from clearance.apps.research.report.scale import marks
from clearance.apps.research.report.tracing import check_report, read_facts
from clearance.run import RunState
from tests.research.reported import RUN, InProcess, Reported

ALL = "base composition, codon usage, open reading frames"


@dataclass(frozen=True)
class Report:
    """A finished report and the files of its run, for a test to change."""

    html: str
    markdown: str
    facts: tuple[Fact, ...]
    files: dict[str, bytes]
    known: dict[str, str]

    def check(self) -> None:
        """Read the report again."""
        check_report(self.html, self.markdown, self.facts, self.records)

    @property
    def records(self) -> Records:
        """The files of the run."""
        return Records(self.files.__getitem__, self.known)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """A report of BRCA1."""
    with Reported.open(tmp_path_factory.mktemp("traced")) as lab:
        html = lab.report(objective=ALL)
        kept = lab.research.store.files(RUN)
        document = json.loads(lab.text("report.json"))
        yield Report(
            html,
            lab.text("report.md"),
            read_facts(document),
            {file.name: lab.research.store.read(RUN, file.name) for file in kept},
            {file.name: file.sha256 for file in kept},
        )


def test_a_report_as_it_was_written_can_be_traced(report: Report) -> None:
    report.check()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("38.62 %", "48.62 %"),
        ("PMID:7545954", "PMID:7545955"),
        ("<h2 id=", "<p>See PMID:11111111.</p><h2 id="),
        ("<h2 id=", "<p>A score of 97.3.</p><h2 id="),
        ("<h2 id=", "<p>Twelve is ١٢.</p><h2 id="),
        ("<h2 id=", "<p>n=12</p><h2 id="),
        ("<h2 id=", '<p><span data-fact="99999">5</span></p><h2 id='),
        ("<h2 id=", '<p><span data-fact="0">BRCA2</span></p><h2 id='),
        ("<h2 id=", '<p title="97 of 100">all of them</p><h2 id='),
        ("<h2 id=", '<p aria-label="97 of 100">all of them</p><h2 id='),
        ("<h2 id=", "<!-- 97 --><h2 id="),
        (">2026-", ">2025-"),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_changed_or_added_in_a_page_is_found(report: Report, old: str, new: str) -> None:
    assert old in report.html
    with pytest.raises(ReportError, match="records do not have"):
        replace(report, html=report.html.replace(old, new)).check()


@pytest.mark.parametrize("added", ["It scores 97.31.", "See PMID:11111111.", "| gc | 61.99 % |"])
def test_what_is_added_in_markdown_is_found(report: Report, added: str) -> None:
    with pytest.raises(ReportError, match="stands in the Markdown"):
        replace(report, markdown=f"{report.markdown}\n{added}\n").check()


@pytest.mark.parametrize(
    "change",
    [
        lambda fact: replace(fact, text="99.99 %"),
        lambda fact: replace(fact, way=Way.PLAIN),
        lambda fact: replace(fact, sources=(replace(fact.sources[0], pointer="/nowhere"),)),
        lambda fact: replace(fact, sources=(replace(fact.sources[0], file="invented.json"),)),
        lambda fact: replace(fact, sources=(replace(fact.sources[0], pointer="/points/0/gc"),)),
    ],
    ids=["another text", "another way", "no such place", "no such file", "another place"],
)
def test_a_fact_that_its_source_does_not_make_is_found(
    report: Report, change: Callable[[Fact], Fact]
) -> None:
    at = next(fact.id for fact in report.facts if fact.way is Way.PERCENT and fact.text == "38.62 %")
    facts = tuple(change(fact) if fact.id == at else fact for fact in report.facts)
    with pytest.raises(ReportError):
        replace(report, facts=facts).check()


def test_a_file_that_changed_since_is_found(report: Report) -> None:
    name = "steps/gc-profile/gc-profile.json"
    changed = report.files[name].replace(b'"gc": 0.3862', b'"gc": 0.4862')
    assert changed != report.files[name]
    with pytest.raises(ReportError, match="its sha256 differs"):
        replace(report, files={**report.files, name: changed}).check()


@pytest.mark.parametrize("document", [{}, {"facts": None}, {"facts": [{"id": 1}]}, {"facts": [{"way": 2}]}])
def test_a_document_without_facts_is_no_report(document: dict[str, Any]) -> None:
    with pytest.raises(ReportError, match="does not list its facts"):
        read_facts(document)


@pytest.mark.parametrize(
    "words", ["As PMID:99999999 has shown.", "See 10.1000/invented.", "See PMC9999999.", "pmid 99999999"]
)
def test_a_step_that_cites_what_the_run_did_not_find_fails_the_report(tmp_path: Path, words: str) -> None:
    with Reported.open(tmp_path, executor=InProcess(headlines={"gc-profile": words})) as lab:
        lab.pending(objective=ALL)
        lab.decide(HITLDecision.APPROVE)
        ended = lab.research.run(RUN)
        assert ended.state is RunState.FAILED
        assert "is not in the run's literature" in (ended.reason or "")
        assert not {"report.html", "report.md", "report.json"} & {
            f.name for f in lab.research.store.files(RUN)
        }


def test_a_step_may_cite_what_the_run_found(tmp_path: Path) -> None:
    executor = InProcess(headlines={"gc-profile": "As PMID: 7545954 (10.1126/science.7545954) has it."})
    with Reported.open(tmp_path, executor=executor) as lab:
        assert "As PMID: 7545954" in lab.report(objective=ALL)


def test_people_may_name_any_publication_and_are_quoted(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        assert "PMID:99999999" in lab.report(objective=f"{ALL}, as in PMID:99999999")


def test_a_plan_that_was_not_the_one_carried_out_stops_the_report(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        lab.report(objective=ALL)
        store, run = lab.research.store, lab.research.run(RUN)
        plan = store.plan(RUN, 1)
        other = replace(plan, objective="another plan")
        with pytest.raises(ReportError, match="is not the plan that was carried out"):
            lab.writer.write(run, lab.research.state(RUN), other)


def test_a_publication_that_was_retracted_is_flagged(report: Report) -> None:
    literature = json.loads(report.files["literature.json"])
    literature["records"][0]["retracted"] = True
    changed = json.dumps(literature).encode()
    known = {**report.known, "literature.json": hashlib.sha256(changed).hexdigest()}
    files = {**report.files, "literature.json": changed}
    said = outline(Book(replace(report, files=files, known=known).records), "plan.v1.json")
    assert [each.retracted for each in said.literature].count(True) == 1
    assert page(said).count("retracted: supports nothing here") == 1
    assert "retracted: supports nothing here" not in report.html


def test_a_template_cannot_show_a_number_of_its_own(report: Report) -> None:
    said = outline(Book(report.records), "plan.v1.json")
    with pytest.raises(ReportError, match="is no fact of the run"):
        page(replace(said, steps_word="7 steps"))


FILE = b"""{
    "text": "as it is", "year": "1994", "big": 1234567, "taxon": 9606, "exact": 105430.0, "tiny": 1e-7,
    "yes": true, "none": null, "list": ["a", 2000], "share": 0.3862, "part": "0.7", "whole": "3.94",
    "zero": "0", "at": "2026-11-30T18:00:00+01:00", "a/b~c": 1,
    "steps": [{"state": "done"}, {"state": "failed"}, {"state": "done"}]
}"""


def _records() -> Records:
    return Records({"f.json": FILE}.__getitem__, {"f.json": hashlib.sha256(FILE).hexdigest()})


@pytest.mark.parametrize(
    ("way", "pointers", "argument", "text"),
    [
        (Way.PLAIN, ["/text"], "", "as it is"),
        (Way.PLAIN, ["/year"], "", "1994"),
        (Way.PLAIN, ["/big"], "", "1,234,567"),
        (Way.PLAIN, ["/exact"], "", "105,430.0"),
        (Way.PLAIN, ["/tiny"], "", "0.0000001"),
        (Way.PLAIN, ["/yes"], "", "yes"),
        (Way.PLAIN, ["/none"], "", "–"),
        (Way.PLAIN, ["/list"], "", '["a", 2000]'),
        (Way.RAW, ["/taxon"], "", "9606"),
        (Way.NAME, ["/a~1b~0c"], "", "a/b~c"),
        (Way.COUNT, ["/steps"], "", "3"),
        (Way.COUNT_OF, ["/steps"], "done", "2"),
        (Way.SUM, ["/part", "/whole"], "", "4.64"),
        (Way.PERCENT, ["/share"], "", "38.62 %"),
        (Way.SHARE, ["/part", "/whole"], "", "18 %"),
        (Way.SHARE, ["/part", "/zero"], "", "–"),
        (Way.PRICE, ["/part"], "", "0.0001"),
        (Way.PRICE, ["/zero"], "", "0.0000"),
        (Way.TIME, ["/at"], "", "2026-11-30 17:00:00 UTC"),
        (Way.RANGE, ["/taxon", "/big"], "", "9,606–1,234,567"),
        (Way.LIST, ["/list"], "", "a, 2,000"),
        (Way.MARK, ["/taxon"], "2", "4,000"),
    ],
)
def test_each_way_makes_its_text(way: Way, pointers: list[str], argument: str, text: str) -> None:
    sources = [Source("f.json", pointer) for pointer in pointers]
    assert text_of(_records(), way, sources, argument=argument) == text


@pytest.mark.parametrize(
    ("way", "pointer"),
    [
        (Way.COUNT, "/big"),
        (Way.TIME, "/text"),
        (Way.PERCENT, "/text"),
        (Way.MARK, "/text"),
        (Way.SUM, "/none"),
    ],
)
def test_a_way_that_does_not_fit_its_source_makes_nothing(way: Way, pointer: str) -> None:
    with pytest.raises(ReportError, match="can be made of"):
        text_of(_records(), way, [Source("f.json", pointer)])


@given(st.decimals(min_value=Decimal("0.001"), max_value=Decimal("1e9"), places=3))
def test_marks_are_few_even_and_within_the_scale(largest: Decimal) -> None:
    found = marks(largest)
    assert 3 <= len(found) <= 7
    assert found[0] == 0
    assert found[-1] <= largest
    assert len({after - before for before, after in pairwise(found)}) == 1


PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1).map(
    lambda text: " ".join(text.split())
)


@given(PRINTABLE)
def test_escaped_markdown_is_drawn_as_the_text(text: str) -> None:
    assert unescaped(escaped(text)) == text
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(f"> {escaped(text)}\n")
    inline = [token for token in tokens if token.type == "inline"]
    children = [child for token in inline for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children) == text.strip()
