"""The benchmarks work, and their report holds what they found. How fast anything is, no test says."""

import math
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.__main__ import PARTS, measure
from benchmarks.figures import QUICK, Aim, Figure
from tests.databases import Databases


@pytest.mark.parametrize("name", PARTS)
def test_a_benchmark_finds_its_figures(name: str, databases: Databases) -> None:
    kinds = ["sqlite"] if name in ("many-parked", "research") else ["sqlite", "postgresql"]
    console = Console(quiet=True)
    [figures] = measure([name], console, sizes=QUICK, kinds=kinds, databases=databases).values()
    assert figures
    assert all(math.isfinite(figure.value) for figure in figures)
    assert len({figure.what for figure in figures}) == len(figures)


def test_the_report_holds_every_figure_and_says_which_aims_are_met(tmp_path: Path) -> None:
    figures = [
        Figure("a review adds", 10.0, "ms", langchain=40.0, aim=Aim(0.5, of_langchain=True)),
        Figure("decisions", 100.0, "a second", aim=Aim(800.0, at_least=True)),
        Figure("memory", 120.0, "MiB"),
    ]
    report.write({"A part": figures}, to=tmp_path)
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| a review adds | 10.0 ms | 40.0 ms | 0.25 | at most 0.5 of LangChain's: met |" in page
    assert "| decisions | 100 a second |  |  | at least 800 a second: missed |" in page
    assert "| memory | 120 MiB |  |  |  |" in page
    assert "a review adds" in (tmp_path / "images" / "benchmarks.svg").read_text()
