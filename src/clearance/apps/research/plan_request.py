"""What a planner is given: the run's inputs, its objective and its limits, and what a reader must be told."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from clearance.apps.research.plan import Budget, Evidence, Input, Subject, WorkflowTemplate
from clearance.apps.research.sources.bibliography import Literature
from clearance.apps.research.sources.records import Record, Sequences

OVERVIEW = (
    "Overview: base composition, open reading frames, codon usage, protein properties, conservation, domains "
    "and exon structure"
)
"""The objective of a run that names none."""
DEFAULT_BUDGET = Budget(cpu_hours="1", currency="EUR", max_cost="1.00")
LITERATURE_FILE = "literature.json"
_MOST_EVIDENCE = 5


@dataclass(frozen=True)
class PlanRequest:
    """One plan to be made. `references` are the publications that it may cite, as `PMID:…`."""

    run_id: str
    subject: Subject
    objective: str
    inputs: tuple[Input, ...]
    evidence: tuple[Evidence, ...] = ()
    references: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    budget: Budget = DEFAULT_BUDGET
    executor: str = "local"
    workflow_template: WorkflowTemplate | None = None


def plan_request(
    run_id: str,
    sequences: Sequences,
    *,
    literature: Literature,
    objective: str = "",
    budget: Budget = DEFAULT_BUDGET,
    executor: str = "local",
    workflow_template: WorkflowTemplate | None = None,
) -> PlanRequest:
    """Return the request for a run's plan, from what its first stages found.

    Each record is an input under its file name; the literature is one under `LITERATURE_FILE`, with the bytes
    of `literature.text`, where it is not empty. The evidence is the most relevant of what was not retracted.
    """
    citable = [entry for entry in literature.entries if not entry.retracted]
    return PlanRequest(
        run_id=run_id,
        subject=Subject(sequences.symbol, sequences.organism, sequences.taxon, dict(sequences.ids)),
        objective=objective.strip() or OVERVIEW,
        inputs=(*_records(sequences.records), *_literature(literature)),
        evidence=tuple(Evidence(entry.id, claim=entry.title) for entry in citable[:_MOST_EVIDENCE]),
        references=literature.ids,
        warnings=(*sequences.warnings, *literature.warnings),
        budget=budget,
        executor=executor,
        workflow_template=workflow_template,
    )


def _records(records: Iterable[Record]) -> list[Input]:
    return [
        Input(
            id=record.id,
            kind=record.kind,
            uri=record.file,
            sha256=record.sha256,
            size=record.size,
            source=record.source,
            accession=record.accession,
            licence=record.licence,
            retrieved_at=record.retrieved_at.isoformat(),
            note=record.note or None,
            partial=record.partial or None,
            stale=record.stale or None,
        )
        for record in records
    ]


def _literature(literature: Literature) -> list[Input]:
    if not literature.entries:
        return []
    content = literature.text.encode()
    return [
        Input(
            id="literature",
            kind="bibliography",
            uri=LITERATURE_FILE,
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
            source=literature.source,
            accession=f"{len(literature.entries)} publications",
            licence="metadata of publications; abstracts belong to their publishers",
            retrieved_at=max(entry.retrieved_at for entry in literature.entries).isoformat(),
            stale=any(entry.stale for entry in literature.entries) or None,
        )
    ]
