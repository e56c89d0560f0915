"""Pipelines over HTTP: runs that are started, decided at their gates, and asked to go on.

The planner is a scripted model, and the cluster, which a flow with the second gate is carried out on, is this
machine under another name. Both are given to the product as an operator gives it them; the rest is its own.
"""

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from clearance.apps.research.planning import MAX_REVISIONS
from tests.journeys.cases.flows import SECOND_GATE, STEPS, check_flow
from tests.journeys.cases.loading import CaseError, Step
from tests.journeys.cases.plan_door import PLACE
from tests.journeys.cases.planning_by_model import OBJECTIVE, PLANNER
from tests.journeys.cases.steps import only, op, told
from tests.journeys.cases.world import Result, Scope, World


@op("pipeline")
def pipeline(world: World, scope: Scope, step: Step) -> Result:
    """Start a run, ask it to go on without people, or ask for a part of it once more."""
    only(step, "what", "run", "flow", "by")
    what = str(step["what"])
    if what == "start":
        check_flow(step["flow"])
        if scope is world.scope:
            world.started.append(step)
        label = step.get("run") or f"run{len(world.pipelines) + 1}"
        executor = "argo" if SECOND_GATE in step["flow"] else "local"
        return start(world, scope, label, by=step.get("by", "tom"), executor=executor)
    if what == "advance" or what.removeprefix("rerun ") in STEPS:
        return go_on_without_people(world, world.run_of(step.get("run")), by=step.get("by", "rita"))
    raise CaseError(f"The interpreter knows no pipeline to {what}.")


def start(world: World, scope: Scope, label: str, *, by: str, executor: str = "local") -> Result:
    """Start a run, and return when it has come to a stop."""
    site = world.site
    if not site.setup.research:
        site.configure(replace(site.setup, research=True))
    body = {
        "symbol": "BRCA1",
        "offline": True,
        "objective": f"{OBJECTIVE} ({label}{scope.name})",  # its own, to tell the planner's records apart
        "planner": PLANNER,
        "executor": executor,
    }
    answer = world.http.send("POST", PLACE, by=by, body=body)
    if answer.lost:
        return Result("lost")
    if not answer.ok:
        return Result("refused", answer.reason, answer.faults, about=answer)
    run_id = answer.body["run_id"]
    world.pipelines[label] = scope.threads[label] = run_id
    site.rest(run_id)
    return Result("accepted", about=answer)


def go_on_without_people(world: World, run_id: str, *, by: str) -> Result:
    """Ask a run to go on. One that waits goes on by a decision alone; one that has ended takes none."""
    before = record(world, run_id)
    body = {} if before["interrupted"] else {"decision": "approve", "plan_sha256": before["plan_sha256"]}
    answer = world.http.send("POST", f"{PLACE}/{quote(run_id)}/resume", by=by, body=body)
    world.site.rest(run_id)
    after = record(world, run_id)
    if answer.ok or after["stages"] != before["stages"]:
        return Result("accepted", f"it went on to {after['stage']}")
    return Result("refused", answer.reason, answer.faults, about=answer)


# --- a third run, round by round ---

_ORDER = ("first", "second", "third", "fourth", "fifth")


@told(rf"(revise|reject|approve) again on a ({'|'.join(_ORDER)}) run(?:, limit (\d+))?")
def decide_again(world: World, scope: Scope, said: re.Match[str]) -> Result:
    """Say the same to the newest plan of a run of its own, which is started when it is not there."""
    decision, number, limit = said.groups()
    if limit is not None and int(limit) < MAX_REVISIONS:
        raise CaseError(f"The product's limit is {MAX_REVISIONS}, which is less strict than {limit}.")
    label = f"run{_ORDER.index(number) + 1}"
    if label not in world.pipelines:
        start(world, world.scope, label, by="tom")
    run_id = world.pipelines[label]
    before = record(world, run_id)
    body = {
        "decision": decision,
        "message": f"once more: {sorted(scope.about.items())}",
        "plan_sha256": before["plan_sha256"],
        "review_id": before["review_id"],
    }
    answer = world.http.send("POST", f"{PLACE}/{quote(run_id)}/resume", by="rita", body=body)
    world.site.rest(run_id)
    if not answer.ok and record(world, run_id)["stages"] != before["stages"]:
        return Result("accepted", f"it was refused ({answer.reason}) and went on all the same")
    return Result("accepted" if answer.ok else "refused", answer.reason, answer.faults, about=run_id)


# --- looking ---


def record(world: World, run_id: str) -> Any:
    """Return a run as the API tells of it."""
    answer = world.http.send("GET", f"{PLACE}/{quote(run_id)}", by="rita")
    assert answer.ok, answer.reason
    return answer.body
