"""What is not cleared does not run, whoever asks for it: every reason of `blocked_hitl`."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from clearance.apps.research import enforcement
from clearance.apps.research.analyst import SIZED_TOO_HIGH
from clearance.apps.research.hitl import HITLDecision, HITLGate
from clearance.apps.research.methods import cards
from clearance.apps.research.plan_calls import PROGRAM
from clearance.apps.research.state import Stage
from clearance.errors import ReviewConflictError
from clearance.policy import Policy, Rule
from clearance.review import ReviewStatus
from clearance.store import people, policies
from clearance.store.tables import run_files
from tests.research.pipelines import PATIENCE, Lab

pytestmark = pytest.mark.sqlite_by_day


@pytest.fixture
def approved(migrated_database_url: str, tmp_path: Path) -> Iterator[Lab]:
    """A run whose plan was approved, and that no worker has gone on with."""
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        lab.start()
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        lab.research.decide("run1", HITLDecision.APPROVE, by="ann")
        yield lab


def change(lab: Lab, name: str, content: bytes) -> None:
    """Change a kept file behind the product's back."""
    with lab.workspace.database.write() as tx:
        done = tx.execute(update(run_files).where(run_files.c.name == name).values(content=content))
        assert done.rowcount == 1


def blocked(lab: Lab) -> str:
    """Call the analyst from outside; it must refuse, and return why."""
    said = enforcement.execute_plan_steps(lab.research, "run1")
    assert said["status"] == "blocked_hitl"
    assert lab.executed() == []
    return str(said["reason"])


def goes_on(lab: Lab) -> Stage:
    """Let a worker go on, and return where the run stops."""
    lab.workspace.worker.start()
    return lab.research.wait_for("run1", wait=PATIENCE).stage


def test_a_plan_that_waits_is_not_approved(lab: Lab) -> None:
    lab.start()
    assert blocked(lab) == "not_approved"


def test_a_plan_that_was_rejected_is_not_approved(migrated_database_url: str, tmp_path: Path) -> None:
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        lab.start()
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        lab.research.decide("run1", HITLDecision.REJECT, by="ann", message="no")
        assert blocked(lab) == "not_approved"


def test_a_plan_that_was_approved_runs_once_whoever_calls(approved: Lab) -> None:
    said = enforcement.execute_plan_steps(approved.research, "run1")
    assert said["status"] == "done"
    ran = approved.executed()
    assert len(ran) == len(said["steps"])
    assert goes_on(approved) is Stage.DONE
    assert approved.executed() == ran
    assert all(row.attempt == 1 for row in approved.ledger())


def test_a_run_that_has_ended_is_executed_already(lab: Lab) -> None:
    lab.start()
    lab.decide("approve")
    ran = lab.executed()
    said = enforcement.execute_plan_steps(lab.research, "run1")
    assert (said["status"], said["reason"]) == ("blocked_hitl", "already_executed")
    assert lab.executed() == ran


def test_a_plan_that_was_changed_in_the_database_has_another_hash(approved: Lab) -> None:
    text = approved.research.store.plan("run1", 1).text
    change(approved, "plan.v1.json", text.replace('"retries":1', '"retries":2').encode() + b" ")
    assert blocked(approved) == "hash_mismatch"
    assert goes_on(approved) is Stage.BLOCKED_HITL
    assert "hash_mismatch" in str(approved.research.run("run1").reason)


def test_an_input_that_was_changed_in_the_database_has_drifted(approved: Lab) -> None:
    change(approved, "exon11.fasta", b">other\nATGATGATG\n")
    assert blocked(approved) == "input_drift"
    assert goes_on(approved) is Stage.BLOCKED_HITL
    assert approved.executed() == []


def test_a_template_that_was_changed_after_the_approval_has_drifted(
    approved: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "templates"
    shutil.copytree(cards.TEMPLATES, copied)
    for path in copied.glob("*.py"):
        path.write_text(path.read_text() + "\n# changed\n")
    monkeypatch.setattr(cards, "TEMPLATES", copied)
    assert blocked(approved) == "template_drift"
    assert goes_on(approved) is Stage.BLOCKED_HITL


def test_a_plan_that_nobody_decided_in_time_has_expired(lab: Lab) -> None:
    database = lab.workspace.database
    with database.write() as tx:
        soon = Policy(rules=(Rule("*", expire=timedelta(milliseconds=1)),))
        policies.activate(tx, PROGRAM, soon, now=database.now(tx))
    state = lab.start()
    while state.stage is Stage.HITL_PLAN_PENDING:
        state = lab.research.wait_for("run1", wait=PATIENCE)
    assert state.stage is Stage.HITL_EXPIRED
    assert lab.executed() == []


def test_a_review_that_expired_blocks_by_that_name(migrated_database_url: str, tmp_path: Path) -> None:
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        database = lab.workspace.database
        with database.write() as tx:
            later = Policy(rules=(Rule("*", expire=timedelta(seconds=30)),))
            policies.activate(tx, PROGRAM, later, now=database.now(tx))
        lab.start()
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        lab.workspace.database._clock = lambda: lab.waiting().review.asked_at + timedelta(hours=1)
        assert lab.workspace.gate.sweep() == 1
        assert blocked(lab) == "expired"


def test_an_approval_that_does_not_stand_any_more_is_revoked(approved: Lab) -> None:
    database = approved.workspace.database
    approved.add("omar")
    with database.write() as tx:
        people.disable(tx, "ann")
    assert blocked(approved) == "revoked"


def test_a_step_that_costs_more_than_was_told_waits_at_the_second_gate(
    approved: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearance.apps.research.analyst.SIZED_TOO_HIGH", SIZED_TOO_HIGH / 10)
    assert blocked(approved) == "budget_exceeded"
    assert goes_on(approved) is Stage.HITL_EXECUTE_PENDING
    waiting = approved.waiting()
    assert waiting.gate is HITLGate.S5_EXECUTE
    assert waiting.review.status is ReviewStatus.PENDING
    assert approved.executed() == []
    monkeypatch.undo()
    assert approved.decide("approve").stage is Stage.DONE
    assert len(approved.executed()) == len(waiting.plan.steps)


def test_a_step_that_reaches_further_waits_at_the_second_gate_and_may_be_rejected_there(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearance.apps.research.plan_calls.REACHES_FURTHER", frozenset({"compute"}))
    lab.start()
    assert lab.decide("approve").stage is Stage.HITL_EXECUTE_PENDING
    assert lab.executed() == []
    assert lab.decide("reject", message="not from here").stage is Stage.HITL_REJECTED
    assert lab.executed() == []
    assert {row.state.value for row in lab.ledger()} == {"rejected"}


def test_a_late_repetition_of_the_first_answer_is_none_at_the_second_gate(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearance.apps.research.plan_calls.REACHES_FURTHER", frozenset({"compute"}))
    lab.start()
    seen = lab.waiting()
    assert lab.decide("approve").stage is Stage.HITL_EXECUTE_PENDING
    for named in (None, seen.review.id):
        with pytest.raises(ReviewConflictError, match="name that review"):
            lab.research.decide(
                "run1", HITLDecision.APPROVE, by="ann", plan_sha256=seen.plan.sha256, review_id=named
            )
    assert lab.executed() == []
