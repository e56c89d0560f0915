"""The writer: every form of a run's report, checked before any of it is kept."""

import dataclasses
import json
from contextlib import suppress
from typing import Any

from clearance.apps.research.errors import ReportError
from clearance.apps.research.plan import Plan
from clearance.apps.research.report.crate import CRATE, crate
from clearance.apps.research.report.facts import Book, Fact, Records
from clearance.apps.research.report.outline import ANALYSIS, outline
from clearance.apps.research.report.pages import markdown, page
from clearance.apps.research.report.parts import Outline
from clearance.apps.research.report.proceedings import PROCEEDINGS, proceedings
from clearance.apps.research.report.tracing import check_report, read_facts
from clearance.apps.research.run_store import RunStore, plan_file
from clearance.apps.research.state import PipelineState
from clearance.errors import ConflictError
from clearance.run import Run
from clearance.store.database import Database
from clearance.workspace import Clearance

PAGE, MARKDOWN, DATA = "report.html", "report.md", "report.json"
TYPES = {
    PAGE: "text/html",
    MARKDOWN: "text/markdown",
    DATA: "application/json",
    CRATE: "application/ld+json",
}
SCHEMA = "research_report.v1"


def open_reporter(workspace: Clearance, store: RunStore) -> "ReportWriter":
    """Return what writes the reports of a workspace."""
    return ReportWriter(workspace.database, store)


class ReportWriter:
    """Writes reports. The same records give the same bytes: a report that was cut off is written again."""

    def __init__(self, database: Database, store: RunStore) -> None:
        self._database = database
        self._store = store

    def write(self, run: Run, state: PipelineState, plan: Plan) -> str:
        """Write `report.html`, `.md`, `.json` and the research object, and return the name of the first.

        Raises `ReportError` for anything that cannot be traced to the run's files; then none of them is kept.
        """
        self._keep_proceedings(run, plan)
        records = self._records(run.id)
        _check_hashes(records, plan)
        book = Book(records)
        said = outline(book, plan_file(plan.version))
        forms = {PAGE: page(said), MARKDOWN: markdown(said)}
        check_report(forms[PAGE], forms[MARKDOWN], book.facts, self._records(run.id))
        forms[DATA] = _data(said, book, records)
        kept = [file for file in self._store.files(run.id) if file.name not in TYPES]
        forms[CRATE] = crate(records, plan, kept, forms=forms, types=TYPES)
        for name, text in forms.items():
            self._store.put(run.id, name, text, media_type=TYPES[name])
        return PAGE

    def verify(self, run_id: str) -> None:
        """Read a kept report again; `ReportError` with everything in it that the run's files do not have."""
        kept = {name: self._store.read(run_id, name).decode() for name in (PAGE, MARKDOWN, DATA)}
        check_report(kept[PAGE], kept[MARKDOWN], read_facts(json.loads(kept[DATA])), self._records(run_id))

    def _keep_proceedings(self, run: Run, plan: Plan) -> None:
        if not any(file.name == PROCEEDINGS for file in self._store.files(run.id)):
            # Where a segment that lost the run has just kept them, those count.
            with suppress(ConflictError):
                self._store.put(run.id, PROCEEDINGS, proceedings(self._database, self._store, run, plan=plan))

    def _records(self, run_id: str) -> Records:
        known = {file.name: file.sha256 for file in self._store.files(run_id) if file.name not in TYPES}
        return Records(lambda name: self._store.read(run_id, name), known)


def _check_hashes(records: Records, plan: Plan) -> None:
    """Hold the files of the steps and the plan itself to the hashes that the records name."""
    if records.known.get(plan_file(plan.version)) != plan.sha256:
        raise ReportError(f"{plan_file(plan.version)} is not the plan that was carried out.")
    if ANALYSIS not in records.known:
        return
    analysis = records.document(ANALYSIS)
    if analysis["plan_sha256"] != plan.sha256:
        raise ReportError("analysis.json is of another plan than the one that was carried out.")
    for step in analysis["steps"]:
        for output in step.get("outputs", ()):
            if records.known.get(output["name"]) != output["sha256"]:
                raise ReportError(f"{output['name']} is not the file that step {step['step']} gave.")


def _data(said: Outline, book: Book, records: Records) -> str:
    """Return `report.json`: what is said, each text with its fact's number, and the facts with sources."""
    document = {
        "schema": SCHEMA,
        "report": _plain(said),
        "facts": [fact.document() for fact in book.facts],
        "files": dict(sorted(records.known.items())),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _plain(value: Any) -> Any:
    """Return a part of the outline as JSON has it; figures are drawn from what is there anyway."""
    if isinstance(value, Fact):
        return {"text": value.text, "fact": value.id}
    if dataclasses.is_dataclass(value):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return {name: _plain(item) for name, item in fields if name != "figures"}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
