"""Figures that the shipped records do not call for, and results with little in them."""

import hashlib
import json
from typing import Any

import pytest

from clearance.apps.research.report.facts import Book, Records
from clearance.apps.research.report.figures import figures_of
from clearance.apps.research.report.tracing import check_report

EXONS = [{"start": 1000, "end": 1099}, {"start": 1300, "end": 1449}, {"start": 1800, "end": 1999}]


def book(name: str, document: dict[str, Any]) -> Book:
    """A book about one result file of a step."""
    content = json.dumps(document).encode()
    file = f"steps/one/{name}"
    return Book(Records({file: content}.__getitem__, {file: hashlib.sha256(content).hexdigest()}))


def exon_map(**changed: Any) -> dict[str, Any]:
    """A transcript of three exons, whose coding part begins in the first and ends in the last."""
    known = {"start": 1000, "end": 1999, "span": 1000, "strand": "-", "exons": EXONS}
    return {**known, "cds": {"start": 1050, "end": 1850}, **changed}


def test_exons_are_drawn_with_their_coding_parts() -> None:
    drawn = book("exon-map.json", exon_map())
    (figure,) = figures_of(drawn, "exon-structure", "steps/one")
    assert figure.count('height="14" rx="0" class="fill-part"') == len(EXONS)
    assert figure.count('height="28" rx="0" class="fill-a"') == len(EXONS)
    assert "− strand" in figure
    check_report(figure, "", drawn.facts, drawn.records)


def test_a_transcript_that_does_not_code_has_no_coding_parts() -> None:
    (figure,) = figures_of(book("exon-map.json", exon_map(cds=None)), "exon-structure", "steps/one")
    assert 'height="28"' not in figure


@pytest.mark.parametrize(
    ("method", "name", "document"),
    [
        ("exon-structure", "exon-map.json", exon_map(exons=[])),
        ("orf-scan", "orfs.json", {"orfs": [], "sequence": {"length": 9}}),
        ("domain-search", "domains.json", {"domains": [], "sequence": {"length": 9}}),
        ("restriction-map", "restriction-map.json", {"enzymes": [], "sequence": {"length": 9}}),
        ("codon-usage", "codon-usage.json", {"usage": []}),
        ("codon-usage", "codon-usage.json", {"usage": [{"codon": "TAA", "per_thousand": 0.0}]}),
        (
            "msa-conservation",
            "conservation.json",
            {"windows": [{"start": 1, "end": 9, "bits": None}], "mean_bits": None, "columns": 9},
        ),
        ("gc-profile", "gc-profile.json", {"points": [], "gc": None, "sequence": {"length": 9}}),
        ("translate", "translation.json", {}),
    ],
)
def test_nothing_is_drawn_where_there_is_nothing(method: str, name: str, document: dict[str, Any]) -> None:
    assert figures_of(book(name, document), method, "steps/one") == ()


def test_a_track_that_never_changes_is_a_line() -> None:
    windows = [{"start": at, "end": at + 9, "bits": 2.0} for at in (1, 11, 21)]
    drawn = book("conservation.json", {"windows": windows, "mean_bits": 2.0, "columns": 30})
    (figure,) = figures_of(drawn, "msa-conservation", "steps/one")
    assert "nan" not in figure
    check_report(figure, "", drawn.facts, drawn.records)


def test_names_from_a_result_are_escaped_in_a_figure() -> None:
    enzyme = {"name": "<script>x</script>", "cuts": [3]}
    drawn = book("restriction-map.json", {"enzymes": [enzyme], "sequence": {"length": 9}})
    (figure,) = figures_of(drawn, "restriction-map", "steps/one")
    assert "<script>" not in figure
    assert "&lt;script&gt;" in figure
