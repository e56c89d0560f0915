"""Research runs on a real workspace: offline, with the real executor and reporter, each step a process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clearance
from clearance.apps.research.hitl import HITLDecision
from clearance.apps.research.research_request import ResearchRequest
from clearance.apps.research.runs import ResearchRuns, Waiting
from clearance.apps.research.setup import open_research
from clearance.apps.research.state import PipelineState
from clearance.outcome import CallState
from clearance.people import Person, Role
from clearance.store import calls, people
from clearance.store.calls import LedgerRow
from clearance.workspace import Clearance

PATIENCE = 60.0
OBJECTIVE = "base composition and codon usage"
"""Short runs: an objective that few methods serve."""


@dataclass
class Lab:
    """A workspace with the pipeline, and what people do there."""

    workspace: Clearance
    research: ResearchRuns

    @classmethod
    @contextmanager
    def open(cls, url: str, *, home: Path, worker: bool = True) -> Iterator["Lab"]:
        """Open the workspace; the pipeline is known before the worker starts."""
        with clearance.open(url, home=home, person="ann", worker=False) as workspace:
            research = open_research(workspace)
            if worker:
                workspace.worker.start()
            yield cls(workspace, research)

    def start(self, run_id: str = "run1", **request: Any) -> PipelineState:
        """Start an offline run, and return where it stops."""
        given = {"symbol": "BRCA1", "objective": OBJECTIVE, "offline": True, **request}
        self.research.start(ResearchRequest(**given), run_id=run_id, by="ann")
        return self.research.wait_for(run_id, wait=PATIENCE)

    def waiting(self, run_id: str = "run1") -> Waiting:
        """Return what the run waits for; it must wait."""
        found = self.research.waiting(run_id, seen_by="ann")
        assert found is not None
        return found

    def decide(
        self,
        decision: str,
        run_id: str = "run1",
        *,
        message: str = "",
        changes: Mapping[str, Any] | None = None,
        by: str = "ann",
    ) -> PipelineState:
        """Decide on the plan that waits, and return where the run stops next."""
        waiting = self.waiting(run_id)
        self.research.decide(
            run_id,
            HITLDecision(decision),
            by=by,
            message=message,
            changes=changes,
            plan_sha256=waiting.plan.sha256,
            review_id=waiting.review.id,
        )
        return self.research.wait_for(run_id, wait=PATIENCE)

    def ledger(self, run_id: str = "run1") -> list[LedgerRow]:
        """Return the run's calls."""
        with self.workspace.database.read() as tx:
            return calls.of_run(tx, run_id)

    def executed(self, run_id: str = "run1") -> list[str]:
        """Return the methods that really ran, by call."""
        return [row.tool for row in self.ledger(run_id) if row.state is CallState.EXECUTED]

    def add(self, name: str, *, role: Role = Role.REVIEWER) -> None:
        """Let another person in."""
        database = self.workspace.database
        with database.write() as tx:
            people.add(tx, Person(id=name, name=name, role=role), now=database.now(tx))
