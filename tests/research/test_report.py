"""The report of a run: what it says, that it is the same again, and that nothing in it can do anything."""

import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.state import Stage
from clearance.store import calls
from tests.research.reported import PATIENCE, RUN, InProcess, Reported

FORMS = ("report.html", "report.json", "report.md", "ro-crate-metadata.json")
EVERYTHING = (
    "restriction sites, conservation in mammals, CRISPR guides, PCR primers, codon usage, GC content, "
    "open reading frames, domains, protein properties, exon structure, motifs, literature"
)
BIDI = "\u202e"


class Seen(HTMLParser):
    """What a browser would find in a page: elements with their attributes, and the text outside styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._in_style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        """The text, with one space between words."""
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def brca1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    """An overview of BRCA1, whose plan was sent back once."""
    with Reported.open(tmp_path_factory.mktemp("brca1")) as lab:
        lab.pending()
        wish = {"exclude": ["domain-search"]}
        lab.decide(HITLDecision.REVISE, message="Leave the domains out.", changes=wish)
        lab.decide(HITLDecision.APPROVE, message="Good for a first look.")
        yield lab


@pytest.mark.parametrize("symbol", ["BRCA1", "TP53", "EGFR", "KRAS", "BRCA2", "BRAF", "ATM", "PTEN", "VHL"])
def test_every_shipped_gene_gets_a_report(symbol: str, tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        page = Seen(lab.report(symbol=symbol))
        assert lab.research.state(RUN).stage is Stage.DONE
        lab.writer.verify(RUN)
    assert page.text.count(symbol) > 1
    assert "0 done" not in page.words


def test_a_report_is_kept_in_every_form_with_its_kind(brca1: Reported) -> None:
    kept = {file.name: file.media_type for file in brca1.research.store.files(RUN)}
    assert {name: kept[name] for name in FORMS} == {
        "report.html": "text/html",
        "report.json": "application/json",
        "report.md": "text/markdown",
        "ro-crate-metadata.json": "application/ld+json",
    }
    assert brca1.research.state(RUN).report_artifact_path == "report.html"


def test_a_report_says_who_cleared_what_and_how_the_plan_changed(brca1: Reported) -> None:
    words = Seen(brca1.text("report.html")).words
    plans = [brca1.research.store.plan(RUN, version) for version in (1, 2)]
    for said in (
        "ann said approve to version 2 of the plan at S4_plan.",
        *(plan.sha256 for plan in plans),
        "Leave the domains out.",
        "Good for a first look.",
        "- domain-search",
        'exclude: ["domain-search"]',
        "A person excluded it.",
    ):
        assert said in words


def test_a_report_has_its_parts_in_their_order(brca1: Reported) -> None:
    parts = [
        "Summary",
        "What was asked",
        "Results",
        "The gene and its records",
        "Who cleared what",
        "What was left out, and why",
        "Literature",
        "Cost: actual against estimated",
        "Tools and templates",
        "How to verify",
    ]
    assert re.findall(r"<h2 [^>]*>([^<]*)</h2>", brca1.text("report.html")) == parts
    headings = re.findall(r"(?m)^## (.*)$", brca1.text("report.md"))
    assert headings == [part for part in parts if part != "Tools and templates"]


def test_a_report_names_every_record_with_where_it_is_from(brca1: Reported) -> None:
    words = Seen(brca1.text("report.html")).words
    for record in json.loads(brca1.text("sequence.json"))["records"]:
        for name in ("accession", "source", "sha256", "licence", "note"):
            assert record.get(name, "") in words
    assert "partial" in words


def test_a_step_names_the_clearance_that_it_took(brca1: Reported) -> None:
    with brca1.workspace.database.read() as tx:
        ran = {row.fingerprint for row in calls.of_run(tx, RUN) if row.started_at}
    steps = json.loads(brca1.text("report.json"))["report"]["steps"]
    assert {step["fingerprint"]["text"] for step in steps} == ran


def test_a_report_sets_what_was_spent_against_the_estimate(brca1: Reported) -> None:
    totals = json.loads(brca1.text("report.json"))["report"]["totals"]
    steps = brca1.research.store.plan(RUN, 2).steps
    assert totals["used"]["text"] == str(len(steps) * 0.5)
    assert totals["estimated"]["text"] == str(brca1.research.store.plan(RUN, 2).total.cpu_s)
    assert totals["cost"]["text"] == "0.0001"


def test_a_report_names_the_tools_and_how_to_check_the_trail(brca1: Reported) -> None:
    words = Seen(brca1.text("report.html")).words
    trail = json.loads(brca1.text("proceedings.json"))["trail"]
    assert "biopython 1." in words
    assert "clearance audit verify" in words
    assert f"--replay {RUN}" in words
    assert trail["hash"] is None or f"clearance audit verify --expect-head {trail['head']}" in words


def test_every_fact_of_the_json_names_its_place(brca1: Reported) -> None:
    document = json.loads(brca1.text("report.json"))
    assert [fact["id"] for fact in document["facts"]] == list(range(len(document["facts"])))
    assert all(source["file"] in document["files"] for fact in document["facts"] for source in fact["from"])

    def used(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict) and part.keys() == {"text", "fact"}:
            yield part
        elif isinstance(part, dict | list):
            for each in part.values() if isinstance(part, dict) else part:
                yield from used(each)

    for leaf in used(document["report"]):
        assert document["facts"][leaf["fact"]]["text"] == leaf["text"]


def test_a_report_that_was_cut_off_is_written_again_to_the_same_bytes(brca1: Reported) -> None:
    before = {name: brca1.text(name) for name in FORMS}
    run, state = brca1.research.run(RUN), brca1.research.state(RUN)
    # Files of a run never change: other bytes under the same name would be refused.
    assert brca1.writer.write(run, state, brca1.research.store.plan(RUN, 2)) == "report.html"
    assert {name: brca1.text(name) for name in FORMS} == before


def test_writing_a_report_is_cheap(brca1: Reported) -> None:
    run, state = brca1.research.run(RUN), brca1.research.state(RUN)
    began = time.process_time()
    brca1.writer.write(run, state, brca1.research.store.plan(RUN, 2))
    assert time.process_time() - began < 2


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    """EGFR with what has a figure: it is complete, and has a kinase domain."""
    with Reported.open(tmp_path_factory.mktemp("egfr")) as lab:
        lab.pending(symbol="EGFR", objective=EVERYTHING)
        lab.decide(
            HITLDecision.REVISE,
            changes={"require": ["restriction-map", "orf-scan", "domain-search", "codon-usage"]},
        )
        lab.decide(HITLDecision.APPROVE)
        yield lab


def test_a_figure_is_drawn_for_each_step_that_has_one(drawn: Reported) -> None:
    page = Seen(drawn.text("report.html"))
    steps = {step.method for step in drawn.research.store.plan(RUN, 2).steps}
    titled = {each["id"].removesuffix("-title") for each in page.named("title") if "id" in each}
    assert {"restriction-map", "orf-scan", "domain-search", "codon-usage"} <= steps
    assert titled == {
        f"steps-{method}"
        for method in steps
        & {
            "restriction-map",
            "orf-scan",
            "domain-search",
            "codon-usage",
            "gc-profile",
            "protein-properties",
            "msa-conservation",
        }
    }


def test_the_domain_of_egfr_stands_where_it_is(drawn: Reported) -> None:
    assert "712–968" in Seen(drawn.text("report.html")).words


def test_a_figure_has_words_for_those_who_do_not_see_it(drawn: Reported) -> None:
    page = Seen(drawn.text("report.html"))
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    figures = page.named("svg")
    assert figures
    for figure in figures:
        assert figure["role"] == "img"
        assert set(figure["aria-labelledby"].split()) <= ids


def test_a_page_can_be_read_by_its_structure(drawn: Reported) -> None:
    page = Seen(drawn.text("report.html"))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {each["href"].removeprefix("#") for each in page.named("a")} <= set(ids)
    assert all(each.get("scope") in ("col", "row") for each in page.named("th"))


def test_a_page_needs_nothing_but_itself(drawn: Reported) -> None:
    page = drawn.text("report.html")
    seen = Seen(page)
    assert not {tag for tag, _ in seen.elements} & {"script", "link", "img", "iframe", "object", "form"}
    assert not [name for _, each in seen.elements for name in each if name.startswith("on")]
    assert all(each["href"].startswith("#") for each in seen.named("a"))
    assert "url(" not in page
    assert "@import" not in page
    policy = next(each for each in seen.named("meta") if "http-equiv" in each)
    assert policy["content"].startswith("default-src 'none'")


def test_failed_and_skipped_steps_are_said_with_their_reasons(tmp_path: Path) -> None:
    executor = InProcess(broken={"translate": "the step took too long"})
    with Reported.open(tmp_path, executor=executor) as lab:
        words = Seen(lab.report(objective="protein properties, base composition")).words
        markdown = lab.text("report.md")
        lab.writer.verify(RUN)
    assert "the step took too long" in words
    assert "It needs translate, which gave nothing." in words
    assert re.search(r"\d done, 1 failed, \d skipped", words)
    assert "the step took too long" in markdown


def test_a_step_whose_outcome_nobody_knows_is_said_to_be_so(tmp_path: Path) -> None:
    with Reported.open(tmp_path, executor=InProcess(lost=frozenset({"gc-profile"}))) as lab:
        words = Seen(lab.report(objective="base composition and codon usage")).words
    assert "1 outcome unknown" in words
    assert "Asked what became of a step" in words
    assert "Nobody has decided." in words


def test_the_report_of_a_rejected_plan_says_that_nothing_ran(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        lab.pending()
        state = lab.decide(HITLDecision.REJECT, message="Too early.")
        plan = lab.research.store.plan(RUN, 1)
        lab.writer.write(lab.research.run(RUN), state, plan)
        words = Seen(lab.text("report.html")).words
        with lab.workspace.database.read() as tx:
            assert not [row for row in calls.of_run(tx, RUN) if row.started_at]
    assert "nothing of it was carried out" in words
    assert "Too early." in words
    assert "said approve" not in words


def test_a_plan_that_a_person_edited_is_said_to_be_theirs(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        lab.pending(objective="base composition and codon usage")
        document = lab.research.store.plan(RUN, 1).document()
        step = next(each for each in document["steps"] if each["method"] == "gc-profile")
        step["params"]["window"] = 200
        lab.research.edit(RUN, json.dumps(document), by="ann", wait=PATIENCE)
        assert lab.research.wait_for(RUN, wait=PATIENCE).stage is Stage.DONE
        words = Seen(lab.text("report.html")).words
    assert "Made by ann (human)" in words
    assert "with a plan edited by hand" in words
    assert "params.window: 100 → 200" in words


def test_what_was_cleared_at_the_second_gate_is_said(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        lab.pending(objective="base composition and codon usage")
        document = lab.research.store.plan(RUN, 1).document()
        step = next(each for each in document["steps"] if each["method"] == "gc-profile")
        step["risk"]["effects"] = ["compute", "publishes"]
        lab.research.edit(RUN, json.dumps(document), by="ann", wait=PATIENCE)
        assert lab.research.wait_for(RUN, wait=PATIENCE).stage is Stage.HITL_EXECUTE_PENDING
        lab.decide(HITLDecision.APPROVE, message="It may be published.")
        words = Seen(lab.text("report.html")).words
        with lab.workspace.database.read() as tx:
            ran = {row.fingerprint for row in calls.of_run(tx, RUN) if row.started_at}
    assert "ann said approve to version 2 of the plan at S5_execute." in words
    assert "It may be published." in words
    assert all(fingerprint in words for fingerprint in ran)


def test_an_empty_literature_is_said(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        own = f">mine <script>alert(1)</script>\n{'ATGGCTGAA' * 40}TAA\n"
        page = Seen(lab.report(symbol="MYGENE", fasta=own))
        assert "No literature was found" in lab.text("report.md")
    assert "No literature was found. Nothing in this report rests on a publication." in page.words
    assert "the person's own sequence" in page.words
    assert not page.named("script")


HOSTILE = (
    f"</style></title><script>alert(1)</script><img src=x onerror=alert(2)>{BIDI}[x](http://x.test)&lt;b"
)


def test_hostile_words_are_shown_and_do_nothing(tmp_path: Path) -> None:
    with Reported.open(tmp_path) as lab:
        lab.pending(objective=f"codon usage {HOSTILE}")
        lab.decide(HITLDecision.REVISE, message=HOSTILE, changes={"exclude": ["gc-profile"]})
        lab.decide(HITLDecision.APPROVE, message=f"{HOSTILE}\n# A heading\n| a | b |")
        page, markdown = lab.text("report.html"), lab.text("report.md")
        lab.writer.verify(RUN)
    seen = Seen(page)
    assert "<script>alert(1)</script>" in seen.text
    assert not {tag for tag, _ in seen.elements} & {"script", "img"}
    assert not [name for _, each in seen.elements for name in each if name.startswith("on")]
    assert BIDI not in page + markdown
    assert "<U+202E>" in seen.text
    rendered = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(markdown)
    tags = {tag for tag, _ in Seen(rendered).elements}
    assert not tags & {"script", "img", "a"}
    assert "A heading" not in re.findall(r"<h\d>([^<]*)", rendered)


def test_a_report_is_written_on_each_database(migrated_database_url: str, tmp_path: Path) -> None:
    with Reported.open(tmp_path, url=migrated_database_url) as lab:
        assert lab.report(objective="base composition and codon usage")
        lab.writer.verify(RUN)
