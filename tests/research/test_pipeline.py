"""A research run from its symbol to its report: what waits, what runs, and what stops it."""

import json
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.errors import PlanError
from clearance.apps.research.hitl import HITLDecision, HITLGate
from clearance.apps.research.plan_calls import PROGRAM
from clearance.apps.research.state import Stage
from clearance.errors import ConflictError, InvalidReviewDecisionError, ReviewConflictError
from clearance.membership import disable, enable
from clearance.outcome import CallState
from clearance.people import Role
from clearance.policy import Effect, Policy, Rule, Threshold
from clearance.review import ReviewKind, ReviewStatus
from clearance.run import RunState
from clearance.store import people, policies, reviews
from tests.research.pipelines import PATIENCE, Lab

pytestmark = pytest.mark.sqlite_by_day


def test_a_run_stops_with_its_plan_and_nothing_of_it_has_run(lab: Lab) -> None:
    state = lab.start()
    assert (state.stage, state.plan_version) == (Stage.HITL_PLAN_PENDING, 1)
    waiting = lab.waiting()
    assert (waiting.gate, waiting.review.kind) == (HITLGate.S4_PLAN, ReviewKind.PLAN)
    assert [call.tool for call in waiting.review.calls] == [step.method for step in waiting.plan.steps]
    assert all(json.loads(c.arguments)["plan_sha256"] == waiting.plan.sha256 for c in waiting.review.calls)
    assert lab.executed() == []


def test_an_approved_plan_is_carried_out_step_by_step_once(lab: Lab) -> None:
    lab.start()
    steps = [step.method for step in lab.waiting().plan.steps]
    state = lab.decide("approve")
    assert (state.stage, state.analyst_summary) == (Stage.DONE, f"{len(steps)} done")
    assert sorted(lab.executed()) == sorted(steps)
    assert lab.research.file("run1", state.report_artifact_path).is_file()
    assert lab.research.run("run1").state is RunState.DONE


def test_a_rejected_plan_ends_the_run_and_nothing_behind_the_gate_runs(lab: Lab) -> None:
    lab.start()
    state = lab.decide("reject", message="too costly")
    assert state.stage is Stage.HITL_REJECTED
    assert lab.executed() == []
    assert {row.state for row in lab.ledger()} == {CallState.REJECTED}
    with pytest.raises(ConflictError, match="waits for no decision"):
        lab.research.decide("run1", HITLDecision.APPROVE, by="ann")


def test_a_rejection_needs_its_reason(lab: Lab) -> None:
    lab.start()
    with pytest.raises(InvalidReviewDecisionError, match="reason"):
        lab.decide("reject")
    assert lab.decide("approve").stage is Stage.DONE


def test_a_revised_plan_is_a_new_version_that_obeys(lab: Lab) -> None:
    lab.start()
    first = lab.waiting().plan
    unwanted = first.steps[-1].method
    state = lab.decide("revise", message="without it", changes={"exclude": [unwanted]})
    waiting = lab.waiting()
    assert (state.stage, waiting.plan.version) == (Stage.HITL_PLAN_PENDING, 2)
    assert unwanted not in [step.method for step in waiting.plan.steps]
    assert waiting.plan.parent_sha256 == first.sha256
    assert waiting.plan.wishes is not None
    assert waiting.plan.wishes.comment == "without it"
    assert waiting.diff is not None
    assert [step.id for step in waiting.diff.removed] == [first.steps[-1].id]
    assert lab.research.store.plan("run1", 1) == first
    lab.decide("approve")
    assert sorted(lab.executed()) == sorted(step.method for step in waiting.plan.steps)


def test_a_decision_on_a_plan_that_was_replaced_is_refused(lab: Lab) -> None:
    lab.start()
    seen = lab.waiting().plan.sha256
    lab.decide("revise", message="m", changes={"exclude": [lab.waiting().plan.steps[-1].method]})
    with pytest.raises(ReviewConflictError, match="another plan than the one you saw"):
        lab.research.decide("run1", HITLDecision.APPROVE, by="ann", plan_sha256=seen)
    with pytest.raises(ReviewConflictError, match="2 versions"):
        lab.research.decide("run1", HITLDecision.APPROVE, by="ann")
    assert lab.executed() == []


def test_a_comment_that_the_rules_cannot_read_is_refused_and_the_plan_still_waits(lab: Lab) -> None:
    lab.start()
    with pytest.raises(PlanError, match="cannot read a comment"):
        lab.decide("revise", message="make it nicer")
    assert lab.waiting().plan.version == 1


UNMEETABLE: list[tuple[dict[str, Any], list[str]]] = [
    ({"exclude": ["gc-profil"]}, ["/changes/exclude/0"]),
    ({"require": ["orf-scan", "a/b"]}, ["/changes/require/1"]),
    ({"params": {"a/b": {}}}, ["/changes/params/a~1b"]),
    ({"params": {"orf-scan": {"min_aax": 5}}}, ["/changes/params/orf-scan/min_aax"]),
    ({"params": {"orf-scan": {"min_aa": "5"}}}, ["/changes/params/orf-scan/min_aa"]),
    ({"exclude": ["orf-scan"], "require": ["orf-scan"]}, ["/changes/exclude/0"]),
    ({"max_cost": "cheap"}, ["/changes/max_cost"]),
    ({"cheaper": True}, ["/changes/cheaper"]),
    ({}, ["/message"]),
]


def test_a_wish_that_no_plan_could_meet_is_refused_with_its_place_and_uses_no_round_up(lab: Lab) -> None:
    lab.start()
    for changes, places in UNMEETABLE:
        with pytest.raises(PlanError) as refused:
            lab.decide("revise", message="m", changes=changes)
        assert [fault.pointer for fault in refused.value.faults] == places
    assert (lab.waiting().plan.version, lab.waiting().review.version) == (1, 1)


def test_a_wish_that_cannot_be_met_leaves_the_plan_to_be_decided_anew(lab: Lab) -> None:
    lab.start()
    before = lab.waiting().plan
    lab.decide("revise", message="m", changes={"max_cost": "0.00"})
    after = lab.waiting().plan
    assert (after.version, after.steps) == (2, before.steps)
    assert any("could not be met" in warning for warning in after.warnings)


def test_a_plan_warns_of_the_last_wish_that_could_not_be_met_and_of_no_earlier_one(lab: Lab) -> None:
    lab.start()
    for message in ("cheaper", "cheaper still"):
        lab.decide("revise", message=message, changes={"max_cost": "0.00"})
    waiting = lab.waiting().plan
    assert waiting.version == 3
    assert len([warning for warning in waiting.warnings if "could not be met" in warning]) == 1


def test_after_five_revisions_the_sixth_is_refused_and_the_plan_still_waits(lab: Lab) -> None:
    lab.start(objective="everything about the coding sequence")
    for number in range(5):
        method = lab.waiting().plan.steps[0].method
        params = {"params": {method: {}}, "exclude": [], "max_cost": f"0.9{number}"}
        lab.decide("revise", message="cheaper", changes={"max_cost": params["max_cost"]})
    assert lab.waiting().plan.version == 6
    with pytest.raises(InvalidReviewDecisionError, match="its 5 rounds are over"):
        lab.decide("revise", message="again", changes={"max_cost": "0.5"})
    assert lab.decide("approve").stage is Stage.DONE


def edited(lab: Lab, **changes: object) -> str:
    """Return the waiting plan with other budget limits, as a person writes it into a file."""
    document = lab.waiting().plan.document()
    return json.dumps({**document, **changes})


def test_an_edited_plan_is_a_version_of_its_editor_and_is_what_runs(lab: Lab) -> None:
    lab.start()
    plan = lab.waiting().plan
    kept = [step for step in plan.document()["steps"] if not step["needs"]][:1]
    lab.research.edit("run1", edited(lab, steps=kept), by="ann", wait=PATIENCE)
    state = lab.research.wait_for("run1", wait=PATIENCE)
    made = lab.research.store.plan("run1", 2)
    assert (made.created_by.kind, made.created_by.name) == ("human", "ann")
    assert (state.stage, lab.executed()) == (Stage.DONE, [kept[0]["method"]])


def test_an_edit_with_faults_is_refused_whole_and_the_plan_still_waits(lab: Lab) -> None:
    lab.start()
    wrong = lab.waiting().plan.document()["steps"]
    wrong[0] = {**wrong[0], "method": "rm-rf"}
    with pytest.raises(PlanError, match="steps/0/method"):
        lab.research.edit("run1", edited(lab, steps=wrong), by="ann", wait=PATIENCE)
    assert lab.waiting().plan.version == 1


def test_two_people_who_must_agree_are_both_waited_for(lab: Lab) -> None:
    lab.add("omar")
    lab.add("rita")
    pair = Policy(rules=(Rule("*", who=(Threshold(approve=2),)),))
    activate(lab, pair)
    lab.start()
    assert lab.decide("approve", by="omar").stage is Stage.HITL_PLAN_PENDING
    assert lab.executed() == []
    assert lab.decide("approve", by="rita").stage is Stage.DONE


def activate(lab: Lab, policy: Policy) -> None:
    """Make a policy the pipeline's active one."""
    database = lab.workspace.database
    with database.write() as tx:
        policies.activate(tx, PROGRAM, policy, now=database.now(tx))


def test_a_policy_cannot_wave_a_plan_through(lab: Lab) -> None:
    activate(lab, Policy(default=Effect.ALLOW))
    assert lab.start().stage is Stage.HITL_PLAN_PENDING
    assert lab.executed() == []


def test_a_plan_that_the_policy_denies_is_blocked(lab: Lab) -> None:
    activate(lab, Policy(rules=(Rule("*", effect=Effect.DENY),)))
    assert lab.start().stage is Stage.BLOCKED_HITL
    assert "blocked_hitl: not_approved" in str(lab.research.run("run1").reason)


def test_an_unknown_symbol_ends_the_run_with_near_ones(lab: Lab) -> None:
    lab.start(symbol="BRCA9")
    run = lab.research.run("run1")
    assert run.state is RunState.FAILED
    assert "BRCA1" in str(run.reason)


def test_another_objective_makes_another_plan(lab: Lab) -> None:
    lab.start("run1", objective="codon usage")
    lab.start("run2", objective="conservation over mammals")
    methods = [{step.method for step in lab.waiting(run).plan.steps} for run in ("run1", "run2")]
    assert methods[0] != methods[1]


def test_a_cancelled_run_runs_nothing(lab: Lab) -> None:
    lab.start()
    lab.research.cancel("run1", by="ann", reason="not needed")
    assert lab.research.run("run1").state is RunState.CANCELLED
    assert lab.executed() == []
    with lab.workspace.database.read() as tx:
        assert reviews.pending(tx, "run1") is None


def test_an_approval_of_somebody_who_was_disabled_since_is_asked_for_again(
    migrated_database_url: str, tmp_path: Path
) -> None:
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        lab.add("omar")
        lab.start()
    # No worker: the plan is approved, and not carried out yet.
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        plan = lab.waiting().plan.sha256
        lab.research.decide("run1", HITLDecision.APPROVE, by="omar", plan_sha256=plan)
        with lab.workspace.database.write() as tx:
            people.disable(tx, "omar")
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        assert lab.research.wait_for("run1", wait=PATIENCE).stage is Stage.HITL_PLAN_PENDING
        assert lab.executed() == []
        assert lab.waiting().review.status is ReviewStatus.PENDING


def test_a_plan_of_somebody_who_was_disabled_since_its_approval_is_asked_about_again(
    migrated_database_url: str, tmp_path: Path
) -> None:
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        lab.add("omar", role=Role.ADMIN)
        lab.start()
    # No worker: the plan is approved, and not carried out yet.
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        plan = lab.waiting().plan.sha256
        lab.research.decide("run1", HITLDecision.APPROVE, by="omar", plan_sha256=plan)
        disable(lab.workspace.database, "ann", by="omar")
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        assert lab.research.wait_for("run1", wait=PATIENCE).stage is Stage.HITL_PLAN_PENDING
        assert lab.executed() == []
        with pytest.raises(InvalidReviewDecisionError, match="ann is disabled here"):
            lab.decide("approve", by="omar")
        enable(lab.workspace.database, "ann", by="omar")
        assert lab.decide("approve", by="omar").stage is Stage.DONE
        assert len(lab.executed()) == len(set(lab.executed()))
        assert lab.executed() != []


def test_a_state_that_says_approved_lets_nothing_run(migrated_database_url: str, tmp_path: Path) -> None:
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        state = lab.start()
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        lab.research.store.reach(state, Stage.HITL_EXECUTE_APPROVED, fence=None, approved=True)
        with lab.workspace.database.write() as tx:
            lab.workspace.ledger.wake(tx, "run1")
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        state = lab.research.wait_for("run1", wait=PATIENCE)
        assert lab.executed() == []
        assert lab.waiting().review.status is ReviewStatus.PENDING


def test_a_decision_reaches_its_own_run_alone(lab: Lab) -> None:
    lab.start("run1")
    lab.start("run2")
    assert lab.decide("reject", "run1", message="no").stage is Stage.HITL_REJECTED
    assert lab.waiting("run2").review.status is ReviewStatus.PENDING
    assert lab.decide("approve", "run2").stage is Stage.DONE
    assert lab.executed("run1") == []
