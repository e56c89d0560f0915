"""Run a file of cases, and say of each in one line how it ended: `make cases FILE=…`."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.databases import KINDS, Databases
from tests.journeys.cases.loading import FILE, Case, CaseError, fixtures_beside, forms, load
from tests.journeys.cases.running import Place, Report, run_case
from tests.journeys.processes import server


def main(given: Sequence[str] | None = None) -> int:
    """Run the cases; return 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="make cases", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=FILE, help="a file of cases")
    parser.add_argument("--database", choices=KINDS, default=KINDS[0], help="default: sqlite")
    parser.add_argument("--only", metavar="ID", action="append", help="run this case only; repeatable")
    asked = parser.parse_args(given)
    try:
        cases = [case for case in load(asked.file) if not asked.only or case.id in asked.only]
    except (CaseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    databases = Databases(Path(tempfile.mkdtemp(prefix="clearance-tests-")))
    try:
        return max([_run(case, databases, asked.database, asked.file) for case in cases], default=0)
    finally:
        databases.close()


def _run(case: Case, databases: Databases, kind: str, file: Path) -> int:
    try:
        reports = [_report(form, databases, kind, file) for form in forms(case)]
    except Exception as error:  # noqa: BLE001 - one case that cannot be read holds up no other
        reports = [Report(case, [str(error) or type(error).__name__])]
    failed = [report for report in reports if report.failures]
    print(f"{case.id:<6} {(failed or reports)[0].verdict}: {case.title}", flush=True)
    for report in failed:
        for reason in report.failures:
            form = f"({report.case.form}) " if report.case.form else ""
            print("      " + f"{form}{reason}".replace("\n", "\n      "), flush=True)
    return 1 if failed else 0


def _report(case: Case, databases: Databases, kind: str, file: Path) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="case-"))
    url = databases.migrated(kind, folder)
    try:
        return run_case(case, Place(url, folder, server(), fixtures_beside(file)))
    finally:
        if kind != KINDS[0]:
            databases.drop(url)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
