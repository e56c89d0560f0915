"""What happened to a run, as the database says when its report is written: `proceedings.json`.

Kept among the run's files before anything is written from it, so that the report is a function of files that
never change, and a report that is written again after a crash is the same, byte for byte.
"""

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from sqlalchemy import Connection

from clearance.apps.research.hitl import HITLGate
from clearance.apps.research.plan import Plan
from clearance.apps.research.plan_calls import EXECUTE
from clearance.apps.research.plan_diff import diff
from clearance.apps.research.planning import EDITED
from clearance.apps.research.research_request import read_request
from clearance.apps.research.run_store import RunStore, plan_file
from clearance.review import Decision, Review, ReviewKind
from clearance.run import Run
from clearance.store import audit, calls, reviews, run_files
from clearance.store.calls import LedgerRow
from clearance.store.database import Database
from clearance.toolcall import canonical

PROCEEDINGS = "proceedings.json"
_MOST_REVIEWS = 200


def proceedings(database: Database, store: RunStore, run: Run, *, plan: Plan) -> str:
    """Return the document as canonical JSON. People are named by their ids alone."""
    with database.read() as tx:
        files = run_files.files_of(tx, run.id)
        stages = run_files.stages_of(tx, run.id)
        asked = reviews.of_thread(tx, run.thread_id, limit=_MOST_REVIEWS)
        ledger = calls.of_run(tx, run.id)
        trail = _trail(tx)
        now = database.now(tx)
    plans = [store.plan(run.id, number) for number in range(1, plan.version + 1)]
    versions = {each.sha256: each.version for each in plans}
    return canonical(
        {
            "schema": "proceedings.v1",
            "written_at": now.isoformat(),
            "run": _run(run),
            "request": _request(run),
            "stages": [{"stage": each.stage, "at": each.at.isoformat()} for each in stages],
            "plans": list(_plans(plans)),
            "reviews": [
                _review(each, versions) for each in sorted(asked, key=lambda each: (each.asked_at, each.id))
            ],
            "calls": [_call(row) for row in sorted(ledger, key=_started_last)],
            "trail": trail,
            "files": [
                {"name": each.name, "media_type": each.media_type, "sha256": each.sha256, "size": each.size}
                for each in files
            ],
            "tools": {"clearance": version("clearance"), "python": platform.python_version()},
        }
    )


def _trail(tx: Connection) -> dict[str, Any]:
    """Return how far the trail is sealed. What has no number yet cannot be counted by it, and is said so."""
    standing = audit.standing(tx)
    sealed = audit.read_seals(tx, standing.last_seal - 1, limit=1) if standing.last_seal else []
    return {
        "last_seal": standing.last_seal,
        "hash": sealed[0].hash if sealed else None,
        "head": sealed[0].head if sealed else None,
        "sealed_to": standing.sealed_to,
        "sealed_at": standing.sealed_at.isoformat() if standing.sealed_at else None,
        "last_number": standing.last_seq,
        "not_sealed": standing.last_seq - standing.sealed_to,
        "more_without_number": standing.waiting,
    }


def _run(run: Run) -> dict[str, Any]:
    return {"id": run.id, "requester": run.requester, "created_at": run.created_at.isoformat()}


def _request(run: Run) -> dict[str, Any]:
    """Return what was asked, without the letters of an own sequence: the run's files have them."""
    asked = read_request(run.input)
    return {
        "symbol": asked.subject,
        "objective": asked.objective,
        "organism": asked.organism,
        "own_sequence": asked.fasta is not None,
        "own_sequence_kind": asked.fasta_kind,
        "offline": asked.offline,
        "replay": asked.replay,
        "executor": asked.executor,
        "planner": asked.planner,
    }


def _plans(plans: Sequence[Plan]) -> Iterator[dict[str, Any]]:
    for at, each in enumerate(plans):
        total = each.total
        yield {
            "version": each.version,
            "file": plan_file(each.version),
            "sha256": each.sha256,
            "author": each.created_by.name,
            "author_kind": each.created_by.kind,
            "model": each.created_by.model,
            "steps": len(each.steps),
            "cpu_s": str(total.cpu_s),
            "cost": str(total.cost),
            "risk": each.risk,
            "differences": diff(plans[at - 1], each).lines() if at else [],
        }


def _review(review: Review, versions: Mapping[str, int]) -> dict[str, Any]:
    arguments = [json.loads(call.arguments) for call in review.calls]
    sha256 = arguments[0].get("plan_sha256") if arguments else None
    return {
        "id": review.id,
        "kind": review.kind.value,
        "gate": _gate(review),
        "plan_sha256": sha256,
        "plan_version": versions.get(sha256) if sha256 else None,
        "steps": [each.get("step") for each in arguments],
        "status": review.status.value,
        "answers": sorted({call.state.value for call in review.calls}),
        "risk": review.risk.value,
        "asked_at": review.asked_at.isoformat(),
        "ended_at": review.ended_at.isoformat() if review.ended_at else None,
        "reason": review.reason,
        "decisions": _decisions(review),
    }


def _gate(review: Review) -> str:
    """Return where people were asked; about a step with an unknown outcome they are asked at no gate."""
    if review.kind is ReviewKind.OUTCOME:
        return review.kind.value
    return (HITLGate.S4_PLAN if review.message < EXECUTE else HITLGate.S5_EXECUTE).value


def _decisions(review: Review) -> list[dict[str, Any]]:
    """Return who said what. People decide on a plan whole, and the rows have it once for each step."""
    said = sorted((item for call in review.calls for item in call.decisions), key=lambda item: item.at)
    found: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for item in said:
        key = (item.by, item.type.value, item.at.isoformat(), item.message)
        found.setdefault(key, _decision(item))
    return list(found.values())


def _decision(item: Decision) -> dict[str, Any]:
    changes: dict[str, Any] = json.loads(item.arguments) if item.arguments else {}
    edited = changes.pop(EDITED, None) is not None
    return {
        "by": item.by,
        "type": item.type.value,
        "at": item.at.isoformat(),
        "reason": item.message,
        "edited_plan": edited,
        "changes": changes,
    }


def _started_last(row: LedgerRow) -> tuple[bool, str]:
    """Order calls so that the one by which a step ran comes after those that asked about it."""
    return row.started_at is not None, row.key


def _call(row: LedgerRow) -> dict[str, Any]:
    arguments = json.loads(row.arguments)
    return {
        "key": row.key,
        "plan_sha256": arguments.get("plan_sha256"),
        "step": arguments.get("step"),
        "tool": row.tool,
        "fingerprint": row.fingerprint,
        "state": row.state.value,
        "attempt": row.attempt,
        "started_at": row.started_at.isoformat() if row.started_at else None,
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }
