"""The report: one table with the machine and the versions, on the screen, as a document and as a chart."""

import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Aim, Figure

DOCS = Path(__file__).resolve().parents[1] / "docs"
PACKAGES = (
    "clearance", "langchain", "langgraph", "langgraph-checkpoint-sqlite", "sqlalchemy", "procrastinate",
)  # fmt: skip
HEADER = ("figure", "Clearance", "LangChain", "ratio", "aim")
INTRODUCTION = """\
# Benchmarks

What a review costs, beside LangChain's `HumanInTheLoopMiddleware` with its `SqliteSaver`: the same fake
model, the same tool that does nothing, one run on one machine, medians. Times depend on the machine, ratios
much less. `make bench` measures again and writes this page; `python -m benchmarks --only NAME` measures one
part. How each figure is made stands in the modules of `benchmarks/`.

Figures without a second number have no counterpart: LangChain's middleware has no inbox, no trail and no
queue, and works in the process that asked.
"""
REASONS = """\
## What holds back what was missed

Profiled, and improved as decision 0013 says; this is what is left.

- **What a review adds.** LangChain's review is one more start of a graph. Ours has the same start,
  and five durable transactions beside it: ask, decide with its trail and clearances, claim, take,
  finish. A ratio under one on a fresh thread would need segments that do not run LangGraph.
- **From decision to tool.** On SQLite half of it is the claim and the take; on PostgreSQL it is the
  round trips of the same statements and the delivery of the job. A busier machine multiplies both.
- **An idle worker.** What is left is waking up: on SQLite the engine looks fifty times a second for
  commits of other processes, on PostgreSQL the notary asks four times a second for entries to number.
- **Creates and decisions a second.** A decision takes a few milliseconds of Python in one process,
  which holds one processor, and each is flushed to the disk on SQLite. Several processes on PostgreSQL
  share the work; one process does not reach it.
"""


def table_of(parts: Mapping[str, Sequence[Figure]]) -> Table:
    """Return the figures as a table for the screen."""
    table = Table(title=surroundings(), title_justify="left")
    for number, name in enumerate(HEADER):
        table.add_column(name, justify="right" if 0 < number < 4 else "left")
    for name, figures in parts.items():
        table.add_section()
        table.add_row(f"[bold]{name}")
        for figure in figures:
            table.add_row(*_cells(figure))
    return table


def write(parts: Mapping[str, Sequence[Figure]], *, to: Path = DOCS) -> None:
    """Write the page and its chart."""
    chart = "![Figures of Clearance as shares of LangChain's](images/benchmarks.svg)"
    rows = [INTRODUCTION, f"{chart}\n", f"{surroundings()}\n"]
    for name, figures in parts.items():
        rows += [f"## {name}\n", f"| {' | '.join(HEADER)} |", "| --- | ---: | ---: | ---: | --- |"]
        rows += [f"| {' | '.join(_cells(figure))} |" for figure in figures]
        rows.append("")
    rows.append(REASONS)
    (to / "benchmarks.md").write_text("\n".join(rows), encoding="utf-8")
    (to / "images").mkdir(exist_ok=True)
    draw(parts, to / "images" / "benchmarks.svg")


def draw(parts: Mapping[str, Sequence[Figure]], to: Path) -> None:
    """Draw the figures that LangChain has too, as shares of LangChain's."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "clearance", "svg.fonttype": "none"}
    from matplotlib import pyplot

    shared = [each for figures in parts.values() for each in figures if each.ratio is not None][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(shared) + 1.2))
    shares = [max(each.ratio or 0.0, 0.0) for each in shared]
    bars = axes.barh([each.what for each in shared], shares, color="#2f6f6d")
    axes.bar_label(bars, [f"{share:.2f}" for share in shares], padding=3)
    axes.axvline(1.0, color="#8a8a8a", linewidth=1)
    axes.set_xlabel("share of LangChain's (1.0 = the same; less is better)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)
    figure.tight_layout()
    figure.savefig(to, metadata={"Date": None})
    pyplot.close(figure)


def show(parts: Mapping[str, Sequence[Figure]], console: Console) -> None:
    """Print the table."""
    console.print(table_of(parts))


def surroundings() -> str:
    """Return one sentence about the machine, how busy it is, and the versions."""
    versions = [f"{name} {version(name)}" for name in PACKAGES]
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} × {_processor()}, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{', '.join(versions)}; load average at the end {load:.1f}."
    )


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or "CPU"


def _cells(figure: Figure) -> tuple[str, ...]:
    langchain = "" if figure.langchain is None else f"{_number(figure.langchain)} {figure.unit}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return figure.what, f"{_number(figure.value)} {figure.unit}", langchain, ratio, _aim(figure.aim, figure)


def _aim(aim: Aim | None, figure: Figure) -> str:
    if aim is None:
        return ""
    limit = f"{'at least' if aim.at_least else 'at most'} {aim.limit:g}"
    of = " of LangChain's" if aim.of_langchain else f" {figure.unit}"
    return f"{limit}{of}: {'met' if figure.is_met else 'missed'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"
