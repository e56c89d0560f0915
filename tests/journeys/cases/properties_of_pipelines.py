"""Properties of kind N: what ran behind a gate, how often, and how runs come to their end."""

import re
from collections import Counter
from typing import Any
from urllib.parse import quote

from clearance.outcome import CallState
from tests.journeys.cases.loading import CaseError
from tests.journeys.cases.pipelines import record
from tests.journeys.cases.plan_door import PLACE, gate_reviews
from tests.journeys.cases.planning_by_model import read_told
from tests.journeys.cases.properties import says
from tests.journeys.cases.properties_of_decisions import number
from tests.journeys.cases.world import World

_FINAL = {"rejected": "hitl_rejected", "expired": "hitl_expired", "done": "done"}
_BEFORE = {"S4_plan": "hitl_plan_approved", "S5_execute": "hitl_execute_approved"}
_WORDS = {"once": 1, "twice": 2, "thrice": 3}
_TIMES = r"once|twice|thrice|\w+ times"


@says(r"(\w+): (\w+(?:(?:, | and )\w+)*) never runs?; final state (\w+)(; resume is refused)?")
def what_is_behind_never_runs(world: World, said: re.Match[str]) -> None:
    """The run has ended so; nothing behind the gate ran, and nothing will: it takes no decision any more."""
    run_id = world.run_of(said[1])
    run = record(world, run_id)
    reached = {stage["stage"] for stage in run["stages"]}
    assert not reached & set(re.split(", | and ", said[2])), reached
    assert run["stage"] == _known(_FINAL, said[3]), run["stage"]
    assert [row.key for row in world.site.ledger(run_id) if row.started_at is not None] == []
    if said[4]:
        for decision in ("approve", "reject", "revise"):
            body = {"decision": decision, "plan_sha256": run["plan_sha256"], "message": "once more"}
            answer = world.http.send("POST", f"{PLACE}/{quote(run_id)}/resume", by="rita", body=body)
            assert not answer.ok, f"{decision} was taken"
            assert answer.reason, decision
        assert record(world, run_id) == run, "the run went on"


@says(
    rf"(\w+): planner(?: and check)? ran ({_TIMES})(?:, with the remarks? as input)?; "
    rf"analyst ({_TIMES}), reporter ({_TIMES}), after (?:both gates|the gate)"
)
def each_ran_so_often(world: World, said: re.Match[str]) -> None:
    """Every version of the plan was planned and checked, each later one with what the person said."""
    run_id = world.run_of(said[1])
    run = record(world, run_id)
    _planned_and_checked(world, run, times=_times(said[2]))
    stages = [stage["stage"] for stage in run["stages"]]
    counted = Counter(stages)
    assert counted["planner"] == _times(said[2]), counted
    assert (counted["analyst"], counted["reporter"]) == (_times(said[3]), _times(said[4])), counted
    gates = {gate for gate, _ in gate_reviews(world.site, run_id)}
    if "both" in said[0]:
        assert len(gates) == 2, gates
    for gate in gates:
        assert stages.index(_BEFORE[gate]) < stages.index("analyst") < stages.index("reporter"), stages
    rows = world.site.ledger(run_id)
    ran = [row for row in rows if row.started_at is not None]
    assert ran, "the analyst carried nothing out"
    assert all(row.state is CallState.EXECUTED and row.attempt == 1 for row in ran), ran
    approved = {call.fingerprint for review in world.site.reviews([run_id]) for call in review.calls
                if review.status == "settled" and call.state == "approved"}  # fmt: skip
    assert {row.fingerprint for row in ran} <= approved, "what ran is not what was approved"


def _planned_and_checked(world: World, run: Any, *, times: int) -> None:
    """The planner was asked anew for each version, and each one's first, faulty proposal was found out."""
    told = read_told(world.site.folder, run["objective"])
    asked = [each for each in told if not each.correction]
    checked = [each for each in told if each.correction]
    assert len(asked) == len(checked) == times == run["plan_version"], told
    assert all("window" in each.correction for each in checked), checked
    remarks = [
        item.message
        for review in world.site.reviews([run["run_id"]])
        for item in review.calls[0].decisions
        if item.type == "revise"
    ]
    assert [each.comment for each in asked] == ["", *remarks], (asked, remarks)
    assert [each.replaces for each in asked] == [place > 0 for place in range(times)], asked


@says(r"round (\w+): refused, the run ends or is escalated")
def rounds_are_bounded(world: World, said: re.Match[str]) -> None:
    """The rounds before are taken; in this one the plan cannot be sent back, only approved or rejected."""
    parts = [
        part
        for place, step in enumerate(world.case.steps, start=1)
        if step.get("op") == "for_each" and "round" in step
        for part in world.results[place].parts
    ]
    last = next((part for part in parts if part.about["round"] == number(said[1])), None)
    assert last is not None, f"there was no round {said[1]}"
    for part in parts[: parts.index(last)]:
        assert [each.outcome for each in part.every] == ["accepted"], part.about["round"]
    [refused] = last.every
    assert refused.outcome == "refused", f"round {said[1]} was {refused.outcome}"
    assert refused.reason, "it was refused without a reason"
    _ends_by_a_rejection(world, str(refused.about))


def _ends_by_a_rejection(world: World, run_id: str) -> None:
    """What waits can be approved or rejected, by nobody sent back; a rejection ends the run."""
    waits = record(world, run_id)
    assert waits["interrupted"], waits["stage"]
    review = world.http.send("GET", f"/api/v1/reviews/{waits['review_id']}", by="rita").body
    allowed = {each for call in review["calls"] for each in call["allowed_decisions"]}
    assert allowed == {"approve", "reject"}, allowed
    old = [each for each in gate_reviews(world.site, run_id).values() if each.id != waits["review_id"]]
    assert all(each.status != "pending" for each in old), "an old revision is still open"
    body = {"decision": "reject", "message": "enough", "plan_sha256": waits["plan_sha256"]}
    answer = world.http.send("POST", f"{PLACE}/{quote(run_id)}/resume", by="rita", body=body)
    assert answer.ok, answer.reason
    world.site.rest(run_id)
    ended = record(world, run_id)
    assert ended["stage"] == "hitl_rejected", ended["stage"]
    assert "analyst" not in {stage["stage"] for stage in ended["stages"]}


def _times(said: str) -> int:
    return _WORDS[said] if said in _WORDS else number(said.removesuffix(" times"))


def _known(known: dict[str, str], word: str) -> str:
    if word not in known:
        raise CaseError(f"The interpreter knows no final state {word!r}.")
    return known[word]
