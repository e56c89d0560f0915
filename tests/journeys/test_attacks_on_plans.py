"""Plans under attack: walked round at the second gate, decided in parts, changed, sent back badly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from clearance.apps.research import enforcement
from clearance.apps.research.hitl import HITLDecision, HITLGate
from clearance.apps.research.plan_calls import PROGRAM, calls_of, plan_question
from clearance.apps.research.state import Stage
from clearance.errors import InvalidReviewDecisionError
from clearance.execution import AskAgain
from clearance.outcome import CallState, Outcome
from clearance.policy import DecisionType, Policy, Rule, Threshold
from clearance.store import policies
from clearance.store.tables import clearances
from tests.research.pipelines import PATIENCE, Lab

pytestmark = pytest.mark.sqlite_by_day

REACHES_FURTHER = "clearance.apps.research.plan_calls.REACHES_FURTHER"


@pytest.fixture
def lab(migrated_database_url: str, tmp_path: Path) -> Iterator[Lab]:
    """A run whose plan waits, in a workspace where no worker goes on with it by itself."""
    with Lab.open(migrated_database_url, home=tmp_path) as lab:
        lab.start()
    with Lab.open(migrated_database_url, home=tmp_path, worker=False) as lab:
        yield lab


def say(lab: Lab, *, by: str = "ann", **answer: Any) -> None:
    """Decide on the plan that waits by the door of all reviews, which knows nothing of plans."""
    review = lab.waiting().review
    lab.workspace.gate.decide(review.id, [answer], by=by, version=review.version)


def go_on(lab: Lab) -> Stage:
    """Let a worker go on, and return where the run stops."""
    lab.workspace.worker.start()
    return lab.research.wait_for("run1", wait=PATIENCE).stage


def execute(lab: Lab) -> set[CallState | None]:
    """Run every step as the first gate cleared it, straight by `execution`; return what became of them."""
    state = lab.research.state("run1")
    plan = lab.research.store.plan("run1", state.plan_version)
    question = plan_question(plan)
    program = lab.workspace.programs.get(PROGRAM)
    assert program is not None
    done: list[Outcome | AskAgain] = lab.workspace.execution.execute(
        lab.research.run("run1"),
        calls_of(plan, question, run_id="run1"),
        message=question.number,
        tools=program.tools,
        fence=None,
    )
    return {each.state if isinstance(each, Outcome) else None for each in done}


def minted(lab: Lab) -> list[str]:
    """Return the calls for which there ever was a clearance."""
    with lab.workspace.database.read() as tx:
        return list(tx.execute(select(clearances.c.key)).scalars())


def activate(lab: Lab, policy: Policy) -> None:
    """Make a policy the active one for research runs."""
    database = lab.workspace.database
    with database.write() as tx:
        policies.activate(tx, PROGRAM, policy, now=database.now(tx))


def ask_anew(lab: Lab, policy: Policy, *, by: str = "ann") -> None:
    """Have the plan asked about under another policy: as its next version."""
    activate(lab, policy)
    lab.research.decide("run1", HITLDecision.REVISE, by=by, changes={"max_cost": "1000000"})
    assert go_on(lab) is Stage.HITL_PLAN_PENDING
    lab.workspace.worker.stop()


def test_nobody_gets_round_the_second_gate_before_it_has_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(REACHES_FURTHER, frozenset({"compute"}))
    say(lab, type="approve")
    assert enforcement.execute_plan_steps(lab.research, "run1")["reason"] == "not_approved"
    assert execute(lab) == {CallState.FAILED}
    assert lab.executed() == []


def test_what_the_first_gate_cleared_runs_nothing_once_the_second_one_asks(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(REACHES_FURTHER, frozenset({"compute"}))
    say(lab, type="approve")
    assert go_on(lab) is Stage.HITL_EXECUTE_PENDING
    assert lab.waiting().gate is HITLGate.S5_EXECUTE
    assert execute(lab) == {CallState.REJECTED}
    assert lab.decide("approve").stage is Stage.DONE
    assert len(lab.executed()) == len({row.tool for row in lab.ledger()})


@pytest.mark.parametrize("changes", [{"bogus": 1}, {"edited_plan": {"schema": "?"}}, {"exclude": 7}, {}])
def test_a_plan_that_is_sent_back_badly_is_asked_about_again(lab: Lab, changes: dict[str, Any]) -> None:
    say(lab, type="revise", message="other, please", changes=changes)
    assert go_on(lab) is Stage.HITL_PLAN_PENDING
    assert lab.waiting().plan.version == 2
    assert "could not be met" in str(lab.waiting().plan.warnings)


def test_a_step_cannot_be_edited_whatever_the_policy_says(lab: Lab) -> None:
    ask_anew(lab, Policy(rules=(Rule("*", decisions=tuple(DecisionType)),)))
    [first, *_] = lab.waiting().review.calls
    edited = {"name": first.tool, "args": first.arguments.replace('"params":{', '"params":{"x":1,')}
    for answer in ({"type": "edit", "edited_action": edited}, {"type": "respond", "message": "done"}):
        with pytest.raises(InvalidReviewDecisionError, match="cannot be answered"):
            say(lab, **answer)


@pytest.mark.parametrize("answer", ["reject", "revise"])
def test_a_plan_whose_steps_need_different_people_is_cleared_whole_or_not_at_all(
    lab: Lab, answer: str
) -> None:
    lab.add("bob")
    lab.add("cem")
    allowed = (DecisionType.APPROVE, DecisionType.REJECT, DecisionType.REVISE)
    methods = sorted({call.tool for call in lab.waiting().review.calls})
    rules = [
        Rule(name, decisions=allowed, who=(Threshold(approve=1 if name == methods[0] else 2),))
        for name in methods
    ]
    assert len(methods) > 1
    ask_anew(lab, Policy(rules=tuple(rules)), by="bob")
    say(lab, by="bob", type="approve")
    say(lab, by="cem", type=answer, message="no", **({"changes": {}} if answer == "revise" else {}))
    assert minted(lab) == []
    assert {row.state for row in lab.ledger()} == {CallState.REJECTED}
