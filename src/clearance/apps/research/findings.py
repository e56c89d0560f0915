"""The first stages: what is known of the gene, what was published about it, and which methods fit that.

What a source says may change from one moment to the next. So a stage keeps all of its files at once, and one
that was cut off behind that goes on with them and asks nobody again.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from clearance.apps.research.http import Fetcher, HttpCache, Mode, Recording
from clearance.apps.research.knowledge import KnowledgeBase
from clearance.apps.research.methods.cards import load_cards
from clearance.apps.research.methods.produced import counted
from clearance.apps.research.plan import WorkflowTemplate
from clearance.apps.research.plan_request import LITERATURE_FILE, PlanRequest, plan_request
from clearance.apps.research.research_request import OWN, ResearchRequest
from clearance.apps.research.run_store import NewFile, RunStore
from clearance.apps.research.sources.bibliography import Literature
from clearance.apps.research.sources.endpoints import Endpoints
from clearance.apps.research.sources.literature import find_literature
from clearance.apps.research.sources.records import Sequences
from clearance.apps.research.sources.sequence import find_sequences
from clearance.toolcall import canonical

SEQUENCE_FILE = "sequence.json"
KB_FILE = "method_kb.json"
REQUEST_FILE = "plan_request.json"
RECORDING = "http"
CACHE = "http-cache.db"
NOTHING_NAMED = Literature(
    OWN, "", "none", (), ("No gene was named, so no literature was searched; nothing can be cited.",)
)


class Findings:
    """Runs the stages before planning, and keeps what they find. `clock` gives aware times.

    `workflow_template` gives what steps on the cluster would run by now; plans for it name that.
    """

    def __init__(
        self,
        store: RunStore,
        home: Path,
        *,
        clock: Callable[[], datetime],
        endpoints: Endpoints | None = None,
        workflow_template: Callable[[], WorkflowTemplate] | None = None,
    ) -> None:
        self._store = store
        self._home = home
        self._clock = clock
        self._endpoints = endpoints
        self._workflow_template = workflow_template

    def sequence(self, run_id: str, request: ResearchRequest, *, fence: int) -> str:
        """Find the gene's records, keep them, and return one line about them. Raises what sources raise."""
        if not self._store.has(run_id, SEQUENCE_FILE):
            self._find_sequences(run_id, request, fence=fence)
        found = self._sequences(run_id)
        return f"{found.symbol}: " + ", ".join(f"{each.kind} {each.accession}" for each in found.records)

    def _find_sequences(self, run_id: str, request: ResearchRequest, *, fence: int) -> None:
        with self._fetcher(run_id, request) as fetcher:
            found = find_sequences(
                request.subject,
                fetcher=fetcher,
                endpoints=self._addresses(),
                organism=request.organism,
                fasta=None if request.fasta is None else request.fasta.encode(),
                fasta_kind=request.fasta_kind,
            )
        files = [NewFile(each.file, found.files[each.file], "text/plain") for each in found.records]
        self._store.put_all(run_id, [*files, NewFile(SEQUENCE_FILE, found.text)], fence=fence)

    def literature(self, run_id: str, request: ResearchRequest, *, fence: int) -> str:
        """Find publications, keep them with the request for a plan, and return one line about them."""
        if not self._store.has(run_id, LITERATURE_FILE):
            self._find_literature(run_id, request, fence=fence)
        found = json.loads(self._store.read(run_id, LITERATURE_FILE))
        count = len(found["records"])
        return f"{counted(count, 'publication')} from {found['source']}" if count else "no publications"

    def _find_literature(self, run_id: str, request: ResearchRequest, *, fence: int) -> None:
        sequences = self._sequences(run_id)
        found = self._published(run_id, request, sequences.symbol)
        asked = plan_request(
            run_id,
            sequences,
            literature=found,
            objective=request.objective,
            executor=request.executor,
            workflow_template=(
                self._workflow_template() if self._workflow_template and request.executor == "argo" else None
            ),
        )
        files = [NewFile(LITERATURE_FILE, found.text), NewFile(REQUEST_FILE, canonical(_plain(asked)))]
        self._store.put_all(run_id, files, fence=fence)

    def _published(self, run_id: str, request: ResearchRequest, symbol: str) -> Literature:
        if not request.symbol:
            return NOTHING_NAMED
        with self._fetcher(run_id, request) as fetcher:
            return find_literature(symbol, request.objective, fetcher=fetcher, endpoints=self._addresses())

    def method_kb(self, run_id: str, *, fence: int) -> str:
        """Rank the methods that fit what was found, keep the ranking, and return one line about it."""
        asked = self.plan_request(run_id)
        kinds = {each.kind for each in asked.inputs}
        with closing(KnowledgeBase(load_cards())) as base:
            ranked = base.rank(kinds, asked.objective)
            absent = base.left_out(kinds)
        document = {
            "objective": asked.objective,
            "ranked": [
                {"method": each.card.id, "score": f"{each.score:.6f}", "reasons": list(each.reasons)}
                for each in ranked
            ],
            "left_out": [{"method": each.card.id, "reason": each.reason} for each in absent],
        }
        self._store.put(run_id, KB_FILE, canonical(document), fence=fence)
        return f"{len(ranked)} methods fit, {len(absent)} do not"

    def plan_request(self, run_id: str) -> PlanRequest:
        """Return what the planner is given, as the literature stage kept it."""
        from pydantic import TypeAdapter

        kept = json.loads(self._store.read(run_id, REQUEST_FILE))
        request: PlanRequest = TypeAdapter(PlanRequest).validate_python(kept)
        return request

    def _sequences(self, run_id: str) -> Sequences:
        from pydantic import TypeAdapter

        kept = json.loads(self._store.read(run_id, SEQUENCE_FILE))
        kept.pop("schema")
        sequences: Sequences = TypeAdapter(Sequences).validate_python(kept)
        return sequences

    def _fetcher(self, run_id: str, request: ResearchRequest) -> Fetcher:
        """Return the way to the sources: live, from copies alone, or from the record of another run."""
        recording = Recording(self._store.folder(request.replay or run_id) / RECORDING)
        mode = Mode.REPLAY if request.replay else Mode.OFFLINE if request.offline else Mode.LIVE
        return Fetcher(
            HttpCache(self._home / CACHE),
            clock=self._clock,
            mode=mode,
            recording=recording,
            pace=self._addresses().pace(),
        )

    def _addresses(self) -> Endpoints:
        if self._endpoints is None:
            self._endpoints = Endpoints.read()
        return self._endpoints


def _plain(request: PlanRequest) -> Mapping[str, Any]:
    from pydantic import TypeAdapter

    plain: dict[str, Any] = TypeAdapter(PlanRequest).dump_python(request, mode="json")
    return {**plain, "references": sorted(plain["references"])}
