"""The public failure cases through the product's own doors: the API over HTTP, the command line, the graph.

The public ones that wait for a door stand in a table; what they say about doors that are there is in cases of
our own. A race and a crash run on PostgreSQL by day, too; every other case does by night.
"""

from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.databases import KINDS, Databases
from tests.journeys.cases.loading import OURS, Case, forms, load, load_fixtures
from tests.journeys.cases.running import Place, run_case
from tests.journeys.cases.waiting import WAITING

OFTEN_BY_DAY = 4
ON_BOTH_BY_DAY = {"H1", "H4"}
HERE = [form for case in [*load(), *load(OURS)] if case.id not in WAITING for form in forms(case)]
ROWS = [
    pytest.param(
        case,
        kind,
        id=case.name if kind == KINDS[0] else f"{case.name} on {kind}",
        marks=[] if kind == KINDS[0] or case.id in ON_BOTH_BY_DAY else [pytest.mark.nightly],
    )
    for kind in KINDS
    for case in HERE
]


@pytest.mark.parametrize(("case", "kind"), ROWS)
def test_the_case_ends_as_its_rule_says(
    case: Case,
    kind: str,
    databases: Databases,
    tmp_path: Path,
    fork_server: ForkServerContext,
    nightly: bool,
) -> None:
    url = databases.migrated(kind, tmp_path)
    often = None if nightly else OFTEN_BY_DAY
    report = run_case(case, Place(url, tmp_path, fork_server, load_fixtures(), repeat_at_most=often))
    if kind != KINDS[0]:
        databases.drop(url)
    assert report.verdict == "ok", "\n".join([report.verdict, *report.failures])
